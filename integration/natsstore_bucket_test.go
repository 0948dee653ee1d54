package integration_test

import (
	"strings"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/lockgateway/lockgateway/backends/nats"
	"github.com/lockgateway/lockgateway/backends/replicated"
	"github.com/lockgateway/lockgateway/integration/natstest"
	"github.com/lockgateway/lockgateway/integration/process"
)

func TestNATSStoreMakesItsBucket(t *testing.T) {
	t.Parallel()
	cluster := natstest.StartCluster(t, 3, natstest.Options{})
	o := natsOptions(cluster.URLs()...)
	o.MaxBytes = 64 << 20
	s := openNATSSession(t, o)
	s.create("a")
	js := cluster.JetStream(t)
	stream, err := js.Stream(s.ctx, natsStream)
	s.must(err)
	c := stream.CachedInfo().Config
	if c.Replicas != 3 || c.MaxBytes != 64<<20 || c.MaxMsgsPerSubject != 1 || c.SubjectDeleteMarkerTTL != 0 || !c.AllowMsgTTL || c.Discard != jetstream.DiscardNew {
		t.Errorf("the bucket is %+v", c)
	}
	// Operators look at it with what they know.
	kv, err := js.KeyValue(s.ctx, natsBucket)
	s.must(err)
	if e, err := kv.Get(s.ctx, "locks.YQ"); err != nil || string(e.Value()) != "created" {
		t.Errorf("the key-value store has %v, error %v", e, err)
	}
}

// Somebody gives the bucket a TTL for delete markers while a store uses it: nothing
// tells of that, but a sweep looks.
func TestNATSB13StoreSeesThatItsBucketWasChanged(t *testing.T) {
	t.Parallel()
	cluster := natstest.Start(t, natstest.Options{})
	o := natsOptions(cluster.URLs()...)
	o.ForgetAfter = 10 * time.Second // a sweep every second
	s := openNATSSession(t, o)
	e := s.create("a")
	js := cluster.JetStream(t)
	stream, err := js.Stream(s.ctx, natsStream)
	s.must(err)
	safe := stream.CachedInfo().Config
	unsafe := safe
	unsafe.SubjectDeleteMarkerTTL = time.Minute
	_, err = js.UpdateStream(s.ctx, unsafe)
	s.must(err)
	swap := func() bool {
		res, err := s.swapWithin(process.Soon/2, replicated.Swap{Key: "a", Expect: e.Revision, Value: []byte("b")})
		if err != nil {
			s.refused(err, "subject_delete_marker_ttl")
			return false
		}
		e = res.Entry
		return res.Applied
	}
	process.Await(t, "swaps are refused", func() bool { return !swap() })
	_, err = js.UpdateStream(s.ctx, safe)
	s.must(err)
	process.Await(t, "swaps are taken", swap)
}

// The bucket is in the domain of servers that those we connect to are leaf nodes of.
func TestNATSStoreReachesAnotherDomain(t *testing.T) {
	t.Parallel()
	hub := natstest.Start(t, natstest.Options{Domain: "hub"})
	leaf := natstest.Start(t, natstest.Options{Hub: hub, WithoutJetStream: true})
	awaitDomain(t, leaf, "hub")
	o := natsOptions(leaf.URLs()...)
	o.Domain = "hub"
	expectEverythingWorks(t, o)
	if _, err := hub.JetStream(t).Stream(t.Context(), natsStream); err != nil {
		t.Errorf("looking for the bucket gave the error %v", err)
	}
	o.Domain = "elsewhere"
	s := openNATS(t, o)
	defer s.Close()
	s.refusesFor("check the setting domain")
}

// awaitDomain waits until the domain's JetStream is reached through a leaf node, which
// learns of it a moment after it is connected.
func awaitDomain(t *testing.T, leaf *natstest.Cluster, domain string) {
	t.Helper()
	conn, err := natsgo.Connect(leaf.URLs()[0])
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	js, err := jetstream.NewWithDomain(conn, domain)
	if err != nil {
		t.Fatal(err)
	}
	process.Await(t, "the domain answers", func() bool {
		_, err := js.AccountInfo(t.Context())
		return err == nil
	})
}

func TestNATSStorePlacesItsBucket(t *testing.T) {
	t.Parallel()
	cluster := natstest.StartCluster(t, 3, natstest.Options{})
	for _, m := range cluster.Members() {
		o := natsOptions(cluster.URLs()...)
		o.Name, o.Replicas, o.Placement = m.Name, 1, &nats.Placement{Tags: []string{m.Name}}
		openNATSSession(t, o).create("a")
		if leader := cluster.Leader(t, "KV_"+m.Name); leader != m {
			t.Errorf("the bucket for %s is on %s", m.Name, leader.Name)
		}
	}
	for name, wrong := range map[string]nats.Bucket{
		"tag":     {Placement: &nats.Placement{Tags: []string{"elsewhere"}}},
		"cluster": {Placement: &nats.Placement{Cluster: "elsewhere"}},
		"count":   {Replicas: 5},
	} {
		t.Run(name, func(t *testing.T) {
			o := natsOptions(cluster.URLs()...)
			o.Name, o.Bucket = "nowhere", wrong
			s := openNATS(t, o)
			defer s.Close()
			s.refusesFor("check the settings replicas and placement")
		})
	}
}

func TestNATSStoreNeedsAsManyServersAsReplicas(t *testing.T) {
	t.Parallel()
	o := natsOptions(natstest.Start(t, natstest.Options{}).URLs()...)
	o.Replicas = 3
	s := openNATS(t, o)
	defer s.Close()
	s.refusesFor("check the setting replicas")
}

func TestNATSStoreChecksABucketThatIsThere(t *testing.T) {
	t.Parallel()
	cluster := natstest.Start(t, natstest.Options{})
	js := cluster.JetStream(t)
	for _, c := range []struct {
		name    string
		change  func(*jetstream.StreamConfig)
		refusal string
		warning string
	}{
		{"AsItIsMade", func(*jetstream.StreamConfig) {}, "", ""},
		{"History", func(c *jetstream.StreamConfig) { c.MaxMsgsPerSubject = 5 }, "history", ""},
		{"MaxAge", func(c *jetstream.StreamConfig) { c.MaxAge = time.Hour }, "max_age", ""},
		{"MarkerTTL", func(c *jetstream.StreamConfig) { c.SubjectDeleteMarkerTTL = time.Minute }, "subject_delete_marker_ttl", ""},
		{"NoMessageTTL", func(c *jetstream.StreamConfig) { c.AllowMsgTTL = false }, "allow_msg_ttl", ""},
		{"DiscardOld", func(c *jetstream.StreamConfig) { c.Discard, c.MaxBytes = jetstream.DiscardOld, 1<<20 }, "discard must be new", ""},
		{"DiscardNewPerSubject", func(c *jetstream.StreamConfig) { c.DiscardNewPerSubject = true }, "discard_new_per_subject", ""},
		{"WorkQueue", func(c *jetstream.StreamConfig) { c.Retention = jetstream.WorkQueuePolicy }, "retention", ""},
		{"SmallMessages", func(c *jetstream.StreamConfig) { c.MaxMsgSize = 1 << 10 }, "max_msg_size", ""},
		{"OtherSubjects", func(c *jetstream.StreamConfig) { c.Subjects = append(c.Subjects, "more") }, "subjects", ""},
		{"Async", func(c *jetstream.StreamConfig) { c.PersistMode = jetstream.AsyncPersistMode }, "persist_mode", ""},
		{"NoRePublish", func(c *jetstream.StreamConfig) { c.RePublish = nil }, "", "publish changes again"},
		{"RePublishOfHeaders", func(c *jetstream.StreamConfig) { c.RePublish.HeadersOnly = true }, "", "publish changes again"},
		{"Memory", func(c *jetstream.StreamConfig) { c.Storage = jetstream.MemoryStorage }, "", "in memory"},
	} {
		t.Run(c.name, func(t *testing.T) {
			bucket := "bucket-" + c.name
			config := jetstream.StreamConfig{
				Name: "KV_" + bucket, Subjects: []string{"$KV." + bucket + ".>"}, MaxMsgsPerSubject: 1,
				Discard: jetstream.DiscardNew, AllowMsgTTL: true, AllowRollup: true, DenyDelete: true, AllowDirect: true,
				RePublish: &jetstream.RePublish{Source: "$KV." + bucket + ".locks.>", Destination: "lockgateway." + bucket + ".>"},
			}
			c.change(&config)
			if _, err := js.CreateStream(t.Context(), config); err != nil {
				t.Fatal(err)
			}
			o := natsOptions(cluster.URLs()...)
			o.Name = bucket
			core, logs := observer.New(zap.WarnLevel)
			o.Logger = zap.New(core)
			if c.refusal != "" {
				s := openNATS(t, o)
				defer s.Close()
				s.refusesFor(c.refusal)
				return
			}
			s := openNATSSession(t, o)
			e := s.create("a")
			news := s.follow("a")
			s.next(news)
			if got := s.get("a"); got.Revision != e.Revision {
				t.Errorf("the record has revision %d; want %d", got.Revision, e.Revision)
			}
			warned := ""
			for _, l := range logs.All() {
				warned += l.Message + "\n"
			}
			if (warned != "") != (c.warning != "") || !strings.Contains(warned, c.warning) {
				t.Errorf("the log says %q; want %q", warned, c.warning)
			}
		})
	}
}

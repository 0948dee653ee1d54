package integration_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/lockgateway/lockgateway/backends/nats"
	"github.com/lockgateway/lockgateway/backends/replicated"
	"github.com/lockgateway/lockgateway/integration/natstest"
	"github.com/lockgateway/lockgateway/integration/process"
	"github.com/lockgateway/lockgateway/integration/relay"
	"github.com/lockgateway/lockgateway/internal/testaddr"
)

func TestNATSStoreWithoutServerRefusesForCertain(t *testing.T) {
	t.Parallel()
	s := openNATS(t, natsOptions("nats://"+testaddr.Free(t)))
	defer s.Close()
	s.refusesFor("connection refused")
	ctx, cancel := context.WithTimeout(s.ctx, 300*time.Millisecond)
	defer cancel()
	if _, err := s.Get(ctx, "a"); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("reading gave the error %v", err)
	}
	if _, err := s.OpenSession(ctx, ""); err == nil {
		t.Error("a session was opened")
	}
}

func TestNATSStoreWaitsForItsServer(t *testing.T) {
	t.Parallel()
	cluster := natstest.Start(t, natstest.Options{})
	m := cluster.Members()[0]
	m.Kill(t)
	s := openNATS(t, natsOptions(m.URL()))
	defer s.Close()
	s.refusesFor("connection refused")
	m.Restart(t)
	session, err := s.OpenSession(s.ctx, "")
	s.must(err)
	s.session = session
	e := s.create("a")
	m.Kill(t)
	m.Restart(t)
	s.apply(replicated.Swap{Key: "a", Expect: e.Revision, Value: []byte("b")})
}

// A user that may look at the bucket, but not write: the server drops what is
// published and says so on the side.
func TestNATSStoreWithoutPermissionRefusesForCertain(t *testing.T) {
	t.Parallel()
	cluster := natstest.Start(t, natstest.Options{Auth: true, Bucket: natsBucket, ReadOnly: true})
	openNATSRoot(t, cluster).create("a") // makes the bucket
	o := natsOptions(cluster.URLs()...)
	o.Username, o.Password = natstest.User, natstest.UserPassword
	s := openNATS(t, o)
	defer s.Close()
	begun := time.Now()
	_, err := s.swapWithin(process.Soon/2, replicated.Swap{Key: "a-secret-lock", Expect: 7, Value: []byte("a")})
	s.refused(err, "no permission")
	if took := time.Since(begun); took > process.Soon/4 {
		t.Errorf("that took %v", took)
	}
	if strings.Contains(err.Error(), "locks.") {
		t.Errorf("the error names the lock: %v", err)
	}
}

func openNATSRoot(t *testing.T, cluster *natstest.Cluster) natsStore {
	t.Helper()
	o := natsOptions(cluster.URLs()...)
	o.Username, o.Password = natstest.Root, natstest.RootPassword
	return openNATSSession(t, o)
}

func TestNATSStoreDoesNotKnowWhatBecameOfASwapWhoseAnswerIsLost(t *testing.T) {
	t.Parallel()
	cluster := natstest.Start(t, natstest.Options{})
	line := relay.New(t, cluster.Members()[0].Address())
	s := openNATSSession(t, natsOptions("nats://"+line.Address()))
	e := s.create("a")

	line.Stall(relay.Answers)
	_, err := s.swapWithin(3*time.Second, replicated.Swap{Key: "a", Expect: e.Revision, Value: []byte("b")})
	s.inDoubt(err)
	line.Heal()
	process.Await(t, "the swap turns out to have been applied", func() bool { return string(s.get("a").Value) == "b" })

	// The connection breaks while the answer is awaited, which is known at once.
	e = s.get("a")
	line.Stall(relay.Answers)
	lost := make(chan error, 1)
	begun := time.Now()
	go func() {
		_, err := s.swapWithin(process.Soon/2, replicated.Swap{Key: "a", Expect: e.Revision, Value: []byte("c")})
		lost <- err
	}()
	direct := openNATSSession(t, natsOptions(cluster.URLs()...))
	process.Await(t, "the swap is applied", func() bool { return string(direct.get("a").Value) == "c" })
	line.Cut()
	s.inDoubt(<-lost)
	if took := time.Since(begun); took > process.Soon/4 {
		t.Errorf("that took %v", took)
	}
	line.Heal()
	s.create("b")
}

// What is sent while the servers are frozen may be applied when they thaw.
func TestNATSStoreLeavesOpenWhatAFrozenServerDoes(t *testing.T) {
	t.Parallel()
	cluster := natstest.Start(t, natstest.Options{})
	s := openNATSSession(t, natsOptions(cluster.URLs()...))
	e := s.create("a")
	m := cluster.Members()[0]
	m.Pause(t)
	_, err := s.swapWithin(5*time.Second, replicated.Swap{Key: "a", Expect: e.Revision, Value: []byte("b")})
	s.inDoubt(err)
	m.Resume(t)
	process.Await(t, "the swap turns out to have been applied", func() bool { return string(s.get("a").Value) == "b" })
}

func TestNATSStoreRecoversFromFullSpace(t *testing.T) {
	t.Parallel()
	cluster := natstest.Start(t, natstest.Options{})
	o := natsOptions(cluster.URLs()...)
	o.MaxBytes = 1 << 20
	s := openNATSSession(t, o)
	e := s.create("a")
	conn := cluster.Conn()
	for i := range 100 {
		key := "$KV." + natsBucket + ".ballast." + strings.Repeat("x", i+1)
		if _, err := conn.Request(key, make([]byte, 64<<10), process.Soon); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 200 {
		key := "$KV." + natsBucket + ".pebbles." + strings.Repeat("x", i+1)
		if _, err := conn.Request(key, make([]byte, 1<<10), process.Soon); err != nil {
			t.Fatal(err)
		}
	}
	swap := replicated.Swap{Key: "a", Expect: e.Revision, Value: make([]byte, 2<<10)}
	_, err := s.swapWithin(process.Soon, swap)
	s.refused(err, "max_bytes")
	stream, err := cluster.JetStream(t).Stream(s.ctx, natsStream)
	s.must(err)
	s.must(stream.Purge(s.ctx, jetstream.WithPurgeSubject("$KV."+natsBucket+".ballast.>")))
	s.apply(swap)
}

func TestNATSStoreRefusesWhatIsTooLarge(t *testing.T) {
	t.Parallel()
	s := openNATSSession(t, natsOptions(natstest.Start(t, natstest.Options{}).URLs()...))
	e := s.create("a")
	_, err := s.swapWithin(process.Soon, replicated.Swap{Key: "a", Expect: e.Revision, Value: make([]byte, 3<<20)})
	s.refused(err, "max_payload")
	s.apply(replicated.Swap{Key: "a", Expect: e.Revision, Value: make([]byte, 100<<10)})
}

func TestNATSStoreWithoutJetStreamSaysSo(t *testing.T) {
	t.Parallel()
	cluster := natstest.Start(t, natstest.Options{WithoutJetStream: true})
	s := openNATS(t, natsOptions(cluster.URLs()...))
	defer s.Close()
	s.refusesFor("JetStream")
}

// The stream is deleted under us: it is made anew, and the epoch tells.
func TestNATSStoreMakesADeletedBucketAnew(t *testing.T) {
	t.Parallel()
	cluster := natstest.Start(t, natstest.Options{})
	s := openNATSSession(t, natsOptions(cluster.URLs()...))
	for range 10 {
		s.create(time.Now().String())
	}
	e := s.create("a")
	epoch := s.Epoch()
	s.must(cluster.JetStream(t).DeleteStream(s.ctx, natsStream))
	// Nobody answers until the bucket was made; then the record is seen not to be
	// there.
	res, err := s.swapWithin(process.Soon/2, replicated.Swap{Key: "a", Expect: e.Revision, Value: []byte("b")})
	if err != nil || res.Applied || res.Entry.Revision != 0 {
		t.Errorf("a swap gave %+v, error %v", res, err)
	}
	if s.Epoch() == epoch {
		t.Error("the epoch is the same")
	}
	select {
	case <-s.session.Done():
	case <-s.ctx.Done():
		t.Error("the session has not ended")
	}
	if got := s.create("a"); got.Revision == 0 || got.Revision > e.Revision {
		t.Errorf("the new record has revision %d", got.Revision)
	}
}

// One that was purged is the same bucket, without locks.
func TestNATSStoreOverAPurgedBucket(t *testing.T) {
	t.Parallel()
	cluster := natstest.Start(t, natstest.Options{})
	s := openNATSSession(t, natsOptions(cluster.URLs()...))
	e := s.create("a")
	stream, err := cluster.JetStream(t).Stream(s.ctx, natsStream)
	s.must(err)
	s.must(stream.Purge(s.ctx))
	res, err := s.swapWithin(process.Soon, replicated.Swap{Key: "a", Expect: e.Revision, Value: []byte("b")})
	if err != nil || res.Applied || res.Entry.Revision != 0 {
		t.Errorf("a swap gave %+v, error %v", res, err)
	}
	if got := s.create("a"); got.Revision <= e.Revision {
		t.Errorf("the new record has revision %d, after %d", got.Revision, e.Revision)
	}
}

// Other credentials make another connection; followers and the session go on.
func TestNATSStoreTakesOtherSettings(t *testing.T) {
	t.Parallel()
	cluster := natstest.Start(t, natstest.Options{Auth: true, Bucket: natsBucket})
	o := natsOptions(cluster.URLs()...)
	o.Username, o.Password = natstest.User, natstest.UserPassword
	s := openNATSSession(t, o)
	news := s.follow("a")
	s.next(news)
	e := s.create("a")
	s.next(news)
	o.Login = nats.Login{NKey: cluster.Seed}
	o.RequestTimeout = time.Second
	s.Configure(o)
	if got := s.next(news); !got.Missed {
		t.Errorf("Follow told of %+v", got)
	}
	e = s.apply(replicated.Swap{Key: "a", Expect: e.Revision, Value: []byte("b")})
	for got := s.next(news); got.Entry.Revision != e.Revision; got = s.next(news) {
		if !got.Missed {
			t.Errorf("Follow told of %+v", got)
		}
	}
	if s.Epoch() != 0 {
		t.Error("the epoch has changed")
	}
	select {
	case <-s.session.Done():
		t.Error("the session has ended")
	default:
	}
}

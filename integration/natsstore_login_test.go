package integration_test

import (
	"testing"
	"time"

	"github.com/lockgateway/lockgateway/backends/nats"
	"github.com/lockgateway/lockgateway/backends/replicated"
	"github.com/lockgateway/lockgateway/integration/natstest"
)

func TestNATSStoreLogsIn(t *testing.T) {
	t.Parallel()
	cluster := natstest.Start(t, natstest.Options{Auth: true, Bucket: natsBucket})
	for _, c := range []struct {
		name   string
		login  nats.Login
		bucket string
		want   string
	}{
		{"WithoutUser", nats.Login{}, natsBucket, "check the settings"},
		{"WithWrongPassword", nats.Login{Username: natstest.User, Password: "wrong"}, natsBucket, "check the settings"},
		{"WithWrongToken", nats.Login{Token: "wrong"}, natsBucket, "check the settings"},
		{"OutsideOfItsBucket", nats.Login{Username: natstest.User, Password: natstest.UserPassword}, "other", "looking for the bucket"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := natsOptions(cluster.URLs()...)
			o.Login, o.Name, o.RequestTimeout = c.login, c.bucket, 500*time.Millisecond
			s := openNATS(t, o)
			defer s.Close()
			s.refusesFor(c.want)
		})
	}
	for name, login := range map[string]nats.Login{
		"password": {Username: natstest.User, Password: natstest.UserPassword},
		"nkey":     {NKey: cluster.Seed},
	} {
		t.Run(name, func(t *testing.T) {
			o := natsOptions(cluster.URLs()...)
			o.Login = login
			expectEverythingWorks(t, o)
		})
	}
}

// expectEverythingWorks does all that a gateway does with a bucket.
func expectEverythingWorks(t *testing.T, o nats.Options) {
	t.Helper()
	s := openNATSSession(t, o)
	key := t.Name()
	news := s.follow(key)
	s.next(news)
	e := s.create(key)
	if got := s.next(news).Entry.Revision; got != e.Revision {
		t.Errorf("Follow told of revision %d; want %d", got, e.Revision)
	}
	if got := s.get(key); got.Revision != e.Revision {
		t.Errorf("the record has revision %d; want %d", got.Revision, e.Revision)
	}
	// Without the permission for pages a list reads one record at a time.
	listed := false
	s.must(s.Records(s.ctx, func(k string, _ replicated.Entry) bool {
		listed = listed || k == key
		return true
	}))
	if !listed {
		t.Error("the record is not in the list")
	}
	x, err := s.NewExpiring(s.ctx, time.Minute)
	s.must(err)
	s.must(s.Restart(s.ctx, x))
	if left, err := s.Remaining(s.ctx, []uint64{x.ID}); err != nil || left[0] < 50*time.Second || left[0] > 61*time.Second {
		t.Errorf("%v left, error %v", left, err)
	}
	s.must(s.session.End(s.ctx))
}

func TestNATSStoreLogsInWithAToken(t *testing.T) {
	t.Parallel()
	cluster := natstest.Start(t, natstest.Options{Token: "the-token"})
	o := natsOptions(cluster.URLs()...)
	o.Token = "another"
	s := openNATS(t, o)
	defer s.Close()
	s.refusesFor("check the settings")
	o.Token = "the-token"
	expectEverythingWorks(t, o)
}

// The user may do no more than the docs say that it must.
func TestNATSStoreLogsInWithCredentials(t *testing.T) {
	t.Parallel()
	cluster := natstest.Start(t, natstest.Options{Operator: true, Bucket: natsBucket})
	o := natsOptions(cluster.URLs()...)
	o.Credentials = cluster.Credentials
	expectEverythingWorks(t, o)
	for _, c := range []struct {
		name   string
		login  nats.Login
		bucket string
		want   string
	}{
		{"OfAnotherOperator", nats.Login{Credentials: natstest.NewCredentials(t)}, natsBucket, "check the settings credentials"},
		{"WithoutAny", nats.Login{}, natsBucket, "check the settings credentials"},
		{"OutsideOfItsBucket", o.Login, "other", "looking for the bucket"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := natsOptions(cluster.URLs()...)
			o.Login, o.Name, o.RequestTimeout = c.login, c.bucket, 500*time.Millisecond
			s := openNATS(t, o)
			defer s.Close()
			s.refusesFor(c.want)
		})
	}
}

func TestNATSStoreChecksCertificates(t *testing.T) {
	t.Parallel()
	cluster := natstest.Start(t, natstest.Options{TLS: true})
	files := nats.TLS{CA: cluster.Certificates.CA, Cert: cluster.Certificates.ClientCert, Key: cluster.Certificates.ClientKey}
	with := func(files nats.TLS) nats.Options {
		o := natsOptions(cluster.URLs()...)
		o.TLS = &files
		return o
	}
	openNATSSession(t, with(files)).create("a")
	for name, c := range map[string]struct {
		files nats.TLS
		want  string
	}{
		"WithoutCA":          {nats.TLS{Cert: files.Cert, Key: files.Key}, "unknown authority"},
		"WithAnotherName":    {nats.TLS{CA: files.CA, Cert: files.Cert, Key: files.Key, ServerName: "elsewhere.example"}, "elsewhere.example"},
		"WithoutCertificate": {nats.TLS{CA: files.CA}, "connecting to NATS"},
	} {
		t.Run(name, func(t *testing.T) {
			s := openNATS(t, with(c.files))
			defer s.Close()
			s.refusesFor(c.want)
		})
	}
}

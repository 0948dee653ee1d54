package integration_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/lockgateway/lockgateway/backends/etcd"
	"github.com/lockgateway/lockgateway/backends/replicated"
	"github.com/lockgateway/lockgateway/integration/etcdtest"
	"github.com/lockgateway/lockgateway/integration/process"
	"github.com/lockgateway/lockgateway/integration/relay"
	"github.com/lockgateway/lockgateway/internal/testaddr"
)

func TestEtcdStoreWithoutServerRefusesForCertain(t *testing.T) {
	t.Parallel()
	address := testaddr.Free(t)
	s := openStore(t, storeOptions("http://"+address))
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

func TestEtcdStoreLogsIn(t *testing.T) {
	t.Parallel()
	cluster := etcdtest.Start(t, etcdtest.Options{Auth: true, UserPrefix: "/lockgateway/"})
	o := storeOptions(cluster.Endpoints()...)
	for _, c := range []struct {
		name, username, password, prefix, want string
	}{
		{"WithoutUser", "", "", "/lockgateway", "username and password"},
		{"WithWrongPassword", etcdtest.User, "wrong", "/lockgateway", "username and password"},
		{"WithUnknownUser", "nobody", "wrong", "/lockgateway", "username and password"},
		{"OutsideOfItsPrefix", etcdtest.User, etcdtest.UserPassword, "/other", "permission on the prefix"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := o
			o.Username, o.Password, o.Prefix = c.username, c.password, c.prefix
			s := openStore(t, o)
			defer s.Close()
			s.refusesFor(c.want)
			if _, err := s.Get(s.ctx, "a"); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("reading gave the error %v; want %q in it", err, c.want)
			}
		})
	}
	o.Username, o.Password = etcdtest.User, etcdtest.UserPassword
	s := openSession(t, o)
	news := s.follow("a")
	s.next(news)
	e := s.create("a")
	if got := s.next(news).Entry.Revision; got != e.Revision {
		t.Errorf("Follow told of revision %d; want %d", got, e.Revision)
	}
	x, err := s.NewExpiring(s.ctx, time.Minute)
	s.must(err)
	s.apply(replicated.Swap{Key: "b", Value: []byte("a"), Expiring: []replicated.Expiring{x}})
	begun := time.Now()
	for range 100 {
		s.must(s.Restart(s.ctx, x))
	}
	t.Logf("a restart takes %v", time.Since(begun)/100)
	if left, err := s.Remaining(s.ctx, []uint64{x.ID}); err != nil || left[0] < 50*time.Second {
		t.Errorf("%v left, error %v", left, err)
	}
	// All tokens are invalid from now on, as after a restart of the members.
	if _, err := cluster.Client().RoleAdd(s.ctx, "another"); err != nil {
		t.Fatal(err)
	}
	s.create("c")
	s.must(s.session.Fence(s.ctx))
	s.must(s.session.End(s.ctx))
}

func TestEtcdStoreChecksCertificates(t *testing.T) {
	t.Parallel()
	cluster := etcdtest.Start(t, etcdtest.Options{TLS: true})
	files := etcd.TLS{CA: cluster.Certificates.CA, Cert: cluster.Certificates.ClientCert, Key: cluster.Certificates.ClientKey}
	openSession(t, withTLS(cluster, files)).create("a")

	for name, c := range map[string]struct {
		files etcd.TLS
		want  string
	}{
		"WithoutCA":       {etcd.TLS{Cert: files.Cert, Key: files.Key}, "unknown authority"},
		"WithWrongCA":     {etcd.TLS{CA: etcdtest.Start(t, etcdtest.Options{TLS: true}).Certificates.CA, Cert: files.Cert, Key: files.Key}, "unknown authority"},
		"WithAnotherName": {etcd.TLS{CA: files.CA, Cert: files.Cert, Key: files.Key, ServerName: "elsewhere.example"}, "elsewhere.example"},
		// Depending on whether what the server says is read before it hangs up.
		"WithoutCertificate": {etcd.TLS{CA: files.CA}, "latest balancer error"},
	} {
		t.Run(name, func(t *testing.T) {
			s := openStore(t, withTLS(cluster, c.files))
			defer s.Close()
			s.refusesFor(c.want)
		})
	}
}

func withTLS(cluster *etcdtest.Cluster, files etcd.TLS) etcd.Options {
	o := storeOptions(cluster.Endpoints()...)
	o.TLS = files
	return o
}

func TestEtcdStoreRecoversFromFullSpace(t *testing.T) {
	t.Parallel()
	cluster := etcdtest.Start(t, etcdtest.Options{QuotaBytes: 4 << 20})
	s := openSession(t, storeOptions(cluster.Endpoints()...))
	e := s.create("a")
	cluster.Fill(t)
	swap := replicated.Swap{Key: "a", Expect: e.Revision, Value: []byte("b")}
	_, err := s.swapWithin(process.Soon, swap)
	s.refused(err, "disarm")
	swap.Idle = true
	_, err = s.swapWithin(process.Soon, swap)
	s.refused(err, "disarm")
	if _, err := s.NewExpiring(s.ctx, time.Minute); err == nil || !strings.Contains(err.Error(), "disarm") {
		t.Errorf("making an expiring key gave the error %v", err)
	}
	if got := s.get("a"); got.Revision != e.Revision {
		t.Errorf("the record has the revision %d; want %d", got.Revision, e.Revision)
	}
	cluster.MakeRoom(t)
	s.apply(swap)
	select {
	case <-s.session.Done():
		t.Error("the session has ended")
	default:
	}
}

func TestEtcdStoreRefusesWhatIsTooLarge(t *testing.T) {
	t.Parallel()
	s := openSession(t, storeOptions(etcdtest.Start(t, etcdtest.Options{}).Endpoints()...))
	e := s.create("a")
	for _, size := range []int{1600 << 10, 3 << 20, 20 << 20} {
		_, err := s.swapWithin(process.Soon, replicated.Swap{Key: "a", Expect: e.Revision, Value: make([]byte, size)})
		s.refused(err, "large")
	}
	s.apply(replicated.Swap{Key: "a", Expect: e.Revision, Value: make([]byte, 100<<10)})
}

func TestEtcdStoreDoesNotKnowWhatBecameOfASwapWhoseAnswerIsLost(t *testing.T) {
	t.Parallel()
	cluster := etcdtest.Start(t, etcdtest.Options{})
	line := relay.New(t, cluster.Members()[0].Address())
	s := openSession(t, storeOptions("http://"+line.Address()))
	e := s.create("a")

	line.Stall(relay.Answers)
	_, err := s.swapWithin(3*time.Second, replicated.Swap{Key: "a", Expect: e.Revision, Value: []byte("b")})
	s.inDoubt(err)
	line.Heal()
	if got := s.get("a"); string(got.Value) != "b" {
		t.Errorf("the record is %q", got.Value)
	}

	line.Stall(relay.Answers)
	fenced := make(chan error, 1)
	go func() { fenced <- s.session.Fence(s.ctx) }()
	_, err = s.swapWithin(3*time.Second, replicated.Swap{Key: "b", Value: []byte("b")})
	s.inDoubt(err)
	line.Cut()
	line.Heal()
	s.must(<-fenced)
	s.create("c")
}

func TestEtcdStoreWithoutMajorityRefusesForCertain(t *testing.T) {
	t.Parallel()
	cluster := etcdtest.StartCluster(t, 3, etcdtest.Options{})
	survivor := cluster.Follower(t)
	s := openSession(t, storeOptions(survivor.Endpoint()))
	e := s.create("a")
	others := cluster.Others(survivor)
	for _, m := range others {
		m.Kill(t)
	}
	// The member notices after an election time-out; until then it hopes.
	swap := replicated.Swap{Key: "a", Expect: e.Revision, Value: []byte("b")}
	process.Await(t, "the member says that it has no leader", func() bool {
		_, err := s.swapWithin(500*time.Millisecond, swap)
		return errors.Is(err, replicated.ErrNotApplied) && strings.Contains(err.Error(), "no leader")
	})
	for _, m := range others {
		m.Restart(t)
	}
	// Swaps of before, in doubt as they were, may have been applied.
	process.Await(t, "a swap is applied", func() bool {
		swap.Expect = s.get("a").Revision
		res, err := s.swapWithin(2*time.Second, swap)
		return err == nil && res.Applied
	})
}

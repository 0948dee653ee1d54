package integration_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/lockgateway/lockgateway/backends/replicated"
	"github.com/lockgateway/lockgateway/integration/etcdtest"
	"github.com/lockgateway/lockgateway/integration/process"
	"github.com/lockgateway/lockgateway/internal/testaddr"
)

func TestEtcdStoreNoticesAnotherHistory(t *testing.T) {
	t.Parallel()
	for name, swaps := range map[string]bool{"BySwap": true, "ByGet": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := newServer(t)
			server.start("data")
			s := openSession(t, storeOptions(server.endpoint))
			e := s.create("a")
			server.kill()
			if err := os.CopyFS(filepath.Join(server.dir, "backup"), os.DirFS(filepath.Join(server.dir, "data"))); err != nil {
				t.Fatal(err)
			}
			server.start("data")
			if before := s.Epoch(); s.get("a").Revision != e.Revision || s.Epoch() != before {
				t.Error("a restart was taken for another history")
			}
			s.must(s.session.Fence(s.ctx))
			for range 5 {
				e = s.apply(replicated.Swap{Key: "a", Expect: e.Revision, Value: []byte("b")})
			}

			for _, data := range []string{"backup", "new"} {
				before := s.Epoch()
				server.kill()
				server.start(data)
				if swaps {
					// The connection may break before the answer comes: that is in
					// doubt, too, and tells nothing of the data.
					process.Await(t, "that the data is that of "+data+" is noticed", func() bool {
						_, err := s.swapWithin(process.Soon, replicated.Swap{Key: "a", Expect: e.Revision, Value: []byte("c")})
						s.inDoubt(err)
						return s.Epoch() != before
					})
				} else if s.get("a"); s.Epoch() == before {
					t.Errorf("that the data is that of %q was not noticed", data)
				}
				before = s.Epoch()
				for range 10 {
					s.get("a")
				}
				// What the session was is no more, even if there is its key.
				_, err := s.swapWithin(process.Soon, replicated.Swap{Key: "b", Value: []byte("b")})
				if !errors.Is(err, replicated.ErrSessionEnded) || !errors.Is(err, replicated.ErrNotApplied) {
					t.Errorf("creating under the session from before gave the error %v", err)
				}
				if err := s.session.Fence(s.ctx); !errors.Is(err, replicated.ErrSessionEnded) {
					t.Errorf("fencing the session from before gave the error %v", err)
				}
				<-s.session.Done()
				if s.Epoch() != before {
					t.Error("the epoch changes again and again")
				}
			}
		})
	}
}

// server is an etcd whose data can be exchanged.
type server struct {
	t              *testing.T
	dir            string
	endpoint, peer string
	process        *process.Process
}

func newServer(t *testing.T) *server {
	return &server{t: t, dir: t.TempDir(), endpoint: "http://" + testaddr.Free(t), peer: "http://" + testaddr.Free(t)}
}

func (s *server) start(data string) {
	s.t.Helper()
	s.process = process.Start(s.t, process.Command{
		Name: "etcd on " + data,
		Path: etcdtest.Build(s.t),
		Dir:  s.dir,
		Args: []string{
			"--data-dir=" + filepath.Join(s.dir, data), "--initial-cluster-token=" + data,
			"--listen-client-urls=" + s.endpoint, "--advertise-client-urls=" + s.endpoint,
			"--listen-peer-urls=" + s.peer, "--initial-advertise-peer-urls=" + s.peer, "--initial-cluster=default=" + s.peer,
		},
	})
}

func (s *server) kill() { s.process.Kill(s.t) }

func TestEtcdStoreChangesItsConnection(t *testing.T) {
	t.Parallel()
	cluster := etcdtest.Start(t, etcdtest.Options{})
	o := storeOptions(cluster.Endpoints()...)
	s := openSession(t, o)
	news := s.follow("a")
	s.next(news)
	o.DialTimeout, o.RequestTimeout = 4*time.Second, 2*time.Second
	s.Configure(o)
	if e := s.next(news); !e.Missed {
		t.Errorf("Follow told of %+v", e)
	}
	e := s.create("a")
	if got := s.next(news); got.Entry.Revision != e.Revision {
		t.Errorf("Follow told of %+v; want revision %d", got, e.Revision)
	}
	x, err := s.NewExpiring(s.ctx, time.Minute)
	s.must(err)
	until := time.Now().Add(s.SessionTTL() * 3 / 2)
	for time.Now().Before(until) { // the old connection is closed meanwhile
		s.must(s.Restart(s.ctx, x))
		e = s.apply(replicated.Swap{Key: "a", Expect: e.Revision, Value: []byte("b")})
	}
	select {
	case <-s.session.Done():
		t.Error("the session has ended")
	default:
	}
}

package integration_test

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/lockgateway/lockgateway/backends/replicated"
	"github.com/lockgateway/lockgateway/integration/natstest"
	"github.com/lockgateway/lockgateway/integration/process"
	"github.com/lockgateway/lockgateway/integration/relay"
)

func TestNATSStoreFollowsOverGaps(t *testing.T) {
	t.Parallel()
	cluster := natstest.Start(t, natstest.Options{})
	line := relay.New(t, cluster.Members()[0].Address())
	s := openNATSSession(t, natsOptions("nats://"+line.Address()))
	direct := openNATSSession(t, natsOptions(cluster.URLs()...))
	news := s.follow("a")
	if e := s.next(news); !e.Missed {
		t.Fatalf("the first event is %+v", e)
	}
	e := direct.create("a")
	if got := s.next(news); got.Entry.Revision != e.Revision || string(got.Entry.Value) != "created" {
		t.Errorf("Follow told of %+v; want revision %d", got, e.Revision)
	}
	line.Cut()
	for range 20 {
		e = direct.apply(replicated.Swap{Key: "a", Expect: e.Revision, Value: []byte("changed")})
	}
	line.Heal()
	if got := s.next(news); !got.Missed {
		t.Errorf("after a gap Follow told of %+v", got)
	}
	e = direct.apply(replicated.Swap{Key: "a", Expect: e.Revision, Value: []byte("again")})
	if got := s.next(news); got.Entry.Revision != e.Revision {
		t.Errorf("Follow told of %+v; want revision %d", got, e.Revision)
	}
	// What stands for a removal has no record.
	if _, err := cluster.Conn().RequestMsg(&nats.Msg{
		Subject: "$KV." + natsBucket + ".locks.YQ", Header: nats.Header{"KV-Operation": {"PURGE"}},
	}, process.Soon); err != nil {
		t.Fatal(err)
	}
	if got := s.next(news); !got.Missed {
		t.Errorf("after a record was removed Follow told of %+v", got)
	}
}

// In a cluster the store goes on with another server, whichever dies. Its waiters
// are woken by what it reads when it follows again.
func TestNATSStoreFollowsAnotherServer(t *testing.T) {
	t.Parallel()
	cluster := natstest.StartCluster(t, 3, natstest.Options{})
	s := openNATSSession(t, natsOptions(cluster.URLs()...))
	news := s.follow("a")
	s.next(news)
	e := s.create("a")
	s.next(news)
	for range 2 {
		m := cluster.Leader(t, natsStream)
		m.Kill(t)
		begun := time.Now()
		process.Await(t, "a swap is applied without the server", func() bool {
			res, err := s.swapWithin(3*time.Second, replicated.Swap{Key: "a", Expect: e.Revision, Value: []byte("b")})
			if now, readErr := s.Get(s.ctx, "a"); readErr == nil {
				e = now
			}
			return err == nil && res.Applied
		})
		t.Logf("after the leader's death a swap was applied within %v", time.Since(begun))
		for told := uint64(0); told < e.Revision; {
			got := s.next(news)
			if got.Missed { // the news of the swap may be among what was missed, and never comes
				got.Entry = s.get("a")
			}
			told = got.Entry.Revision
		}
		m.Restart(t)
	}
}

// Those who follow other locks are not told; a thousand followers need no consumer.
func TestNATSStoreFollowsWithoutConsumers(t *testing.T) {
	t.Parallel()
	cluster := natstest.Start(t, natstest.Options{})
	s := openNATSSession(t, natsOptions(cluster.URLs()...))
	const many = 1000
	ready := make(chan struct{}, 2*many)
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	for i := range many {
		s.Follow(ctx, time.Duration(i).String(), func(e replicated.Event) {
			if e.Missed {
				ready <- struct{}{}
			}
		})
	}
	for range many {
		<-ready
	}
	stream, err := cluster.JetStream(t).Stream(s.ctx, natsStream)
	s.must(err)
	if n := stream.CachedInfo().State.Consumers; n != 0 {
		t.Errorf("there are %d consumers", n)
	}
}

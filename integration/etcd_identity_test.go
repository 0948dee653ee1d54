package integration_test

import (
	"fmt"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/lockgateway/lockgateway/integration/etcdtest"
	"github.com/lockgateway/lockgateway/integration/gatewaytest"
	"github.com/lockgateway/lockgateway/integration/relay"
)

// Locks whose names are alike have nothing to do with each other.
func TestB8LocksDoNotMeet(t *testing.T) {
	t.Parallel()
	etcd := etcdtest.Start(t, etcdtest.Options{})
	gateways := startGateways(t, 2, patient, etcd)
	// Another system on the same cluster, below the first.
	below := gatewaytest.Start(t, "below", etcdBackend(prefix+"/1", patient, etcd.Endpoints()))
	beside := gatewaytest.Start(t, "beside", etcdBackend(prefix+"1", patient, etcd.Endpoints()))
	var locks []string
	for _, id := range []string{
		"path", "path%", "path%25", "path%2F", "a", "a1", "A", "1", "11", "a b", " a", "a ", ".", "..", "...", "a?b", "a#b", "a+b",
		"🔒", "é", "e\u0301", "\x00", "\x00a", "a\n", "locks", "sessions", "expiring", "1:a", "1\\a", "a:1",
		strings.Repeat("a", 255), strings.Repeat("a", 256), strings.Repeat("🔒", 256), strings.Repeat("%", 256),
	} {
		for _, slots := range []string{"1", "2", "11", "99999999999999999999999"} {
			locks = append(locks, slots+"/"+url.PathEscape(id))
		}
	}
	for i, lock := range locks {
		gateways[i%2].Take(t, lock, "")
	}
	for i, lock := range locks {
		gateways[(i+1)%2].ExpectState(t, lock, 1, 0)
		for _, other := range []*gatewaytest.Gateway{below, beside} {
			if a := other.State(t, lock); a.Value != nil {
				t.Errorf("%s has the state %v with another prefix", lock, a)
			}
		}
	}
	for i, lock := range locks {
		gateways[i%2].ExpectRelease(t, lock, "", true)
		gateways[(i+1)%2].ExpectState(t, lock, 0, 0)
	}
}

// More releases than acquires do not make slots.
func TestB14DoubleReleaseNeverExceedsMax(t *testing.T) {
	t.Parallel()
	g1, g2 := startTwo(t)
	gateways := []*gatewaytest.Gateway{g1, g2}
	g1.Take(t, "3/x", "")
	g1.ExpectRelease(t, "3/x", "", true)
	g2.ExpectRelease(t, "3/x", "", false)
	for range 10 {
		g1.Take(t, "3/x", "")
		g2.Take(t, "3/x", "")
		var (
			clients sync.WaitGroup
			freed   atomic.Int64
		)
		for i := range 12 {
			clients.Go(func() {
				if a := gateways[i%2].Release(t.Context(), "3/x", ""); !a.OK() {
					t.Errorf("a release was answered %v", a)
				} else if a.Released {
					freed.Add(1)
				}
			})
		}
		clients.Wait()
		if n := freed.Load(); n != 2 {
			t.Fatalf("2 slots were held, and %d were freed", n)
		}
		g1.ExpectState(t, "3/x", 0, 0)
	}
	for i := range 3 {
		gateways[i%2].Take(t, "3/x", "")
	}
	g1.ExpectTaken(t, "3/x", "")
	g2.ExpectTaken(t, "3/x", "")
}

// A request's connection dies and its sender's HTTP stack sends it again, by
// way of another gateway.
func TestB23RepeatedGetTakesOneSlot(t *testing.T) {
	t.Parallel()
	g1, g2 := startTwo(t)
	line := relay.New(t, g1.Address())
	client := gatewaytest.NewClient(line.Address())
	for _, test := range []struct {
		name, query string
		both        int64 // places of both
	}{
		{"while it waits", "", 2},
		{"while the holder waits", gatewaytest.Named("h"), 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			lock := "1/" + url.PathEscape(test.name)
			g2.Take(t, lock, "")
			first := client.Begin(t, lock, gatewaytest.ForLong(test.query))
			g2.AwaitState(t, lock, 1, 1)
			second := g2.Queue(t, lock, test.query, test.both)
			line.Cut()
			if a := first.Answer(t); a.Err == nil {
				t.Errorf("the dead connection brought %v", a)
			}
			line.Heal()
			g2.AwaitState(t, lock, 1, 1)
			g1.ExpectRelease(t, lock, "", true)
			if a := second.ExpectGrant(t); a.Held() != 1 {
				t.Errorf("the grant is %v", a)
			}
			g1.ExpectState(t, lock, 1, 0)
		})
	}

	t.Run("when it was answered", func(t *testing.T) {
		line.LoseAnswers(1)
		if a := client.Acquire(t.Context(), "5/answered", gatewaytest.Named("h")); a.Err == nil {
			t.Errorf("the dead connection brought %v", a)
		}
		held := g2.State(t, "5/answered").Holders
		if len(held) != 1 {
			t.Fatalf("the holders are %v", held)
		}
		if a := g2.Take(t, "5/answered", gatewaytest.Named("h")); a.Token != held[0].Token || a.Held() != 1 {
			t.Errorf("the second request got %v, want token %d", a, held[0].Token)
		}
	})
}

// The whole way with certificates and a user who may do no more than he must.
func TestCertificatesAndPassword(t *testing.T) {
	t.Parallel()
	etcd := etcdtest.Start(t, etcdtest.Options{TLS: true, Auth: true, UserPrefix: prefix + "/"})
	c := etcd.Certificates
	config := etcdBackend(prefix, patient, etcd.Endpoints(),
		"username "+etcdtest.User,
		"password "+etcdtest.UserPassword,
		fmt.Sprintf("tls {\n\t\tca %s\n\t\tcert %s\n\t\tkey %s\n\t}", c.CA, c.ClientCert, c.ClientKey),
	)
	g1 := gatewaytest.Start(t, "gateway-1", config)
	g2 := gatewaytest.Start(t, "gateway-2", config)
	load := startLoad(t, g1, g2)
	g1.Take(t, "1/x", gatewaytest.Named(firstHolder, "ttlMs=600000"))
	expectInOrder(t, "1/x", queueAll(t, "1/x", 4, g1, g2), g2, g1)
	etcd.Members()[0].Kill(t)
	etcd.Members()[0].Restart(t)
	load.expectRecovery(t)
	load.stop(t)
}

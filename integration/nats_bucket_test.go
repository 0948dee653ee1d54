package integration_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/lockgateway/lockgateway/integration/gatewaytest"
	"github.com/lockgateway/lockgateway/integration/natstest"
	"github.com/lockgateway/lockgateway/integration/process"
)

// What operators do to the bucket under running gateways.

// Locks are lost with the bucket, which the log says; whoever waits is told. After
// that the gateways serve, with tokens that need not be greater than those before.
func TestNATSBucketIsTakenAwayUnderGateways(t *testing.T) {
	t.Parallel()
	for name, take := range map[string]func(t *testing.T, c natsCluster) error{
		"deleted": func(t *testing.T, c natsCluster) error {
			return c.JetStream(t).DeleteStream(t.Context(), natsStream)
		},
		"purged": func(t *testing.T, c natsCluster) error {
			s, err := c.JetStream(t).Stream(t.Context(), natsStream)
			if err != nil {
				return err
			}
			return s.Purge(t.Context())
		},
	} {
		for _, servers := range []int{1, 3} {
			t.Run(fmt.Sprint(name, servers), func(t *testing.T) {
				t.Parallel()
				c := startNATSWith(t, servers, natstest.Options{})
				gateways := startGateways(t, 2, quick, c)
				g1, g2 := gateways[0], gateways[1]
				g1.Take(t, "1/x", "")
				g1.Take(t, "1/named", gatewaytest.Named("a"))
				waiters := []*gatewaytest.Request{g1.Queue(t, "1/x", "", 1), g2.Queue(t, "1/x", gatewaytest.Named("w"), 2)}
				if err := take(t, c); err != nil {
					t.Fatal(err)
				}
				for i, w := range waiters {
					if a := w.Answer(t); !a.Refused() && !a.OK() {
						t.Errorf("waiter %d was answered %v", i, a)
					}
				}
				for _, g := range gateways {
					g.Await(t, "1/x", "no more than its slot held", func(a gatewaytest.Answer) bool { return a.Held() <= 1 && a.Waiting == 0 })
				}
				g2.ExpectReset(t, "1/x")
				g1.Take(t, "1/x", "")
				g2.ExpectTaken(t, "1/x", "")
				g2.Take(t, "1/named", gatewaytest.Named("b"))
				g1.ExpectTaken(t, "1/named", gatewaytest.Named("a"))
				load := startLoad(t, gateways...)
				load.stop(t)
				if name == "deleted" && !strings.Contains(g1.Output(t)+g2.Output(t), "made anew") {
					t.Error("the log does not say that the bucket was made anew")
				}
			})
		}
	}
}

// A bucket that was made with a TTL for delete markers loses writes. The gateway
// says so and does not serve, until it is away.
func TestNATSB13BucketWithMarkersIsRefused(t *testing.T) {
	t.Parallel()
	c := natsCluster{natstest.Start(t, natstest.Options{})}
	js := c.JetStream(t)
	if _, err := js.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: natsBucket, LimitMarkerTTL: time.Minute}); err != nil {
		t.Fatal(err)
	}
	g := startGateway(t, "gateway", quick, c)
	for _, query := range []string{"", gatewaytest.Wait(time.Second)} {
		if a := g.Acquire(t.Context(), "1/x", query); !a.Refused() {
			t.Errorf("an acquire was answered %v, want 503", a)
		}
	}
	process.Await(t, "the log names the setting", func() bool {
		return strings.Contains(g.Output(t), "subject_delete_marker_ttl")
	})
	if err := js.DeleteKeyValue(t.Context(), natsBucket); err != nil {
		t.Fatal(err)
	}
	process.Await(t, "the gateway serves", func() bool { return g.Acquire(t.Context(), "1/x", gatewaytest.Named("h")).OK() })
}

// A full bucket refuses what needs more room, and loses nothing. Of several servers the
// one that refuses may be deposed and not know, so that the outcome is left open. All
// goes on once an operator has given it more.
func TestNATSFullBucket(t *testing.T) {
	t.Parallel()
	for _, servers := range []int{1, 3} {
		t.Run(fmt.Sprint(servers), func(t *testing.T) {
			t.Parallel()
			c := startNATSWith(t, servers, natstest.Options{})
			gateways := startGateways(t, 2, timing{session: patient.session, request: quick.request}, c)
			g1, g2 := gateways[0], gateways[1]
			g1.Take(t, "1/x", "")
			named := g1.Take(t, "1/named", gatewaytest.Named("h"))
			waiters := []*gatewaytest.Request{g1.Queue(t, "1/x", "", 1), g2.Queue(t, "1/x", "", 2)}
			limit(t, c, 2<<20)
			stopFilling := keepFull(t, c)
			for _, g := range gateways {
				for _, query := range []string{"", gatewaytest.Named("h"), gatewaytest.Wait(time.Second)} {
					a := g.Acquire(t.Context(), "1/new", query)
					if open := servers > 1 && a.Unknown(); !a.Refused() && !open {
						t.Errorf("an acquire of a new lock was answered %v, want 503, or 504 if there are several servers", a)
					}
				}
			}
			for _, w := range waiters {
				w.ExpectWaiting(t)
			}
			stopFilling()
			limit(t, c, 64<<20)
			// Before, it would make room for others whenever a record gets shorter.
			load := startLoad(t, gateways...)
			g2.ExpectState(t, "1/x", 1, 2)
			if again := g2.Take(t, "1/named", gatewaytest.Named("h")); again.Token != named.Token {
				t.Errorf("the holder is %v, was %v", again, named)
			}
			for _, w := range waiters {
				g2.ExpectRelease(t, "1/x", "", true)
				w.ExpectGrant(t)
			}
			g1.Take(t, "1/new", "")
			load.stop(t)
			if !strings.Contains(g1.Output(t), "max_bytes") {
				t.Error("the log does not say what to do about a full bucket")
			}
		})
	}
}

// limit changes the size of the bucket.
func limit(t *testing.T, c natsCluster, size int64) {
	t.Helper()
	js := c.JetStream(t)
	stream, err := js.Stream(t.Context(), natsStream)
	if err != nil {
		t.Fatal(err)
	}
	config := stream.CachedInfo().Config
	config.MaxBytes = size
	if _, err := js.UpdateStream(t.Context(), config); err != nil {
		t.Fatal(err)
	}
}

// keepFull fills the bucket, and fills it up whenever something in it expires, until
// the returned function is called.
func keepFull(t *testing.T, c natsCluster) (stop func()) {
	t.Helper()
	fill(t, c)
	js := c.JetStream(t)
	ctx, cancel := context.WithCancel(t.Context())
	var filling sync.WaitGroup
	filling.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			_, _ = js.Publish(ctx, fmt.Sprintf("$KV.%s.ballast.more-%d", natsBucket, i), nil)
		}
	})
	return func() {
		cancel()
		filling.Wait()
	}
}

// fill writes other keys to the bucket until it refuses the smallest.
func fill(t *testing.T, c natsCluster) {
	t.Helper()
	js := c.JetStream(t)
	for size := 1 << 18; size >= 1; size /= 8 {
		for i := 0; ; i++ {
			_, err := js.Publish(t.Context(), fmt.Sprintf("$KV.%s.ballast.%d-%d", natsBucket, size, i), bytes.Repeat([]byte("x"), size))
			var api *jetstream.APIError
			if errors.As(err, &api) && strings.HasPrefix(api.Description, "maximum bytes") {
				break
			}
			if err != nil {
				t.Fatal("filling the bucket:", err)
			}
		}
	}
}

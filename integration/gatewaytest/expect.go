package gatewaytest

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/lockgateway/lockgateway/integration/process"
)

// Take acquires a slot that must be free. It returns the answer.
func (c *Client) Take(t testing.TB, lock, query string) Answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), process.Soon)
	defer cancel()
	a := c.Acquire(ctx, lock, query)
	if !a.OK() || !a.Acquired {
		t.Fatalf("acquire of %s (%s): %v, want a slot", lock, query, a)
	}
	return a
}

// ExpectTaken tries once for a slot, of which none must be free.
func (c *Client) ExpectTaken(t testing.TB, lock, query string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), process.Soon)
	defer cancel()
	if a := c.Acquire(ctx, lock, query); !a.OK() || a.Acquired {
		t.Fatalf("acquire of %s (%s): %v, want acquired false", lock, query, a)
	}
}

// ExpectRelease releases, and checks whether that freed a slot.
func (c *Client) ExpectRelease(t testing.TB, lock, query string, want bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), process.Soon)
	defer cancel()
	if a := c.Release(ctx, lock, query); !a.OK() || a.Released != want {
		t.Fatalf("release of %s (%s): %v, want released %t", lock, query, a, want)
	}
}

// ExpectReset empties a lock.
func (c *Client) ExpectReset(t testing.TB, lock string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), process.Soon)
	defer cancel()
	if a := c.Reset(ctx, lock); !a.OK() || !a.Reset {
		t.Fatalf("reset of %s: %v", lock, a)
	}
}

// State reads a lock.
func (c *Client) State(t testing.TB, lock string) Answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), process.Soon)
	defer cancel()
	a := c.Value(ctx, lock)
	if !a.OK() {
		t.Fatalf("value of %s: %v", lock, a)
	}
	return a
}

// ExpectState checks how many slots are held and how many requests wait.
func (c *Client) ExpectState(t testing.TB, lock string, held, waiting int64) {
	t.Helper()
	if a := c.State(t, lock); a.Held() != held || a.Waiting != waiting {
		t.Fatalf("value of %s: %v, want %d held and %d waiting", lock, a, held, waiting)
	}
}

// AwaitState waits until so many slots are held and so many requests wait. The
// gateway need not answer well all the while.
func (c *Client) AwaitState(t testing.TB, lock string, held, waiting int64) {
	t.Helper()
	c.Await(t, lock, fmt.Sprintf("%d held and %d waiting", held, waiting), func(a Answer) bool {
		return a.Held() == held && a.Waiting == waiting
	})
}

// Await waits until the state of a lock is as asked for.
func (c *Client) Await(t testing.TB, lock, what string, so func(Answer) bool) {
	t.Helper()
	var last Answer
	defer func() {
		if t.Failed() {
			t.Logf("the last value of %s was %v", lock, last)
		}
	}()
	process.Await(t, lock+" has "+what, func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), process.Soon)
		defer cancel()
		last = c.Value(ctx, lock)
		return last.OK() && so(last)
	})
}

// AwaitNoticed returns when the gateway has noticed what happened to other
// connections before: whoever hung up. It has to be asked some things for that,
// which do not concern its store.
func (c *Client) AwaitNoticed(t testing.TB) {
	t.Helper()
	for range 50 {
		ctx, cancel := context.WithTimeout(t.Context(), process.Soon)
		if a := c.Get(ctx, "0/no-lock", "value", ""); a.Status != http.StatusBadRequest {
			t.Errorf("a bad request was answered %v", a)
		}
		cancel()
	}
}

// Request is a request under way.
type Request struct {
	cancel context.CancelFunc
	done   chan struct{} // closed once the answer is there
	answer Answer
}

// Begin sends an acquire and does not wait for its answer. It ends with the
// test at the latest.
func (c *Client) Begin(t testing.TB, lock, query string) *Request {
	return c.begin(t, lock, "acquire", query)
}

// BeginRelease is Begin for a release.
func (c *Client) BeginRelease(t testing.TB, lock, query string) *Request {
	return c.begin(t, lock, "release", query)
}

func (c *Client) begin(t testing.TB, lock, action, query string) *Request {
	ctx, cancel := context.WithCancel(context.Background())
	r := &Request{cancel: cancel, done: make(chan struct{})}
	go func() { // ends with the answer, at the latest in the cleanup
		defer close(r.done)
		r.answer = c.Get(ctx, lock, action, query)
	}()
	t.Cleanup(func() {
		cancel()
		<-r.done
	})
	return r
}

// Queue sends an acquire that waits for long, and returns once the queue has
// so many places.
func (c *Client) Queue(t testing.TB, lock, query string, places int64) *Request {
	t.Helper()
	r := c.Begin(t, lock, ForLong(query))
	c.Await(t, lock, fmt.Sprintf("a queue of %d", places), func(a Answer) bool {
		if r.Ended() {
			t.Fatalf("an acquire of %s (%s) that should wait has ended: %v", lock, query, r.answer)
		}
		return a.Waiting == places
	})
	return r
}

// HangUp closes the request's connection, and returns what came before, if
// something did.
func (r *Request) HangUp() Answer {
	r.cancel()
	<-r.done
	return r.answer
}

// Done is closed once there is an answer or an error.
func (r *Request) Done() <-chan struct{} { return r.done }

// Ended reports whether there is an answer or an error.
func (r *Request) Ended() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

// Answer waits for the answer, which must come soon, or the error.
func (r *Request) Answer(t testing.TB) Answer {
	t.Helper()
	select {
	case <-r.done:
	case <-time.After(process.Soon):
		t.Fatalf("a request has no answer after %v", process.Soon)
	}
	return r.answer
}

// ExpectGrant waits for the answer, which must be a slot.
func (r *Request) ExpectGrant(t testing.TB) Answer {
	t.Helper()
	a := r.Answer(t)
	if !a.OK() || !a.Acquired {
		t.Fatalf("a waiting acquire: %v, want a slot", a)
	}
	return a
}

// ExpectDenied waits for the answer, which must be acquired false.
func (r *Request) ExpectDenied(t testing.TB) {
	t.Helper()
	if a := r.Answer(t); !a.OK() || a.Acquired {
		t.Fatalf("a waiting acquire: %v, want acquired false", a)
	}
}

// ExpectRefused waits for the answer, which must say that it did not happen.
func (r *Request) ExpectRefused(t testing.TB) {
	t.Helper()
	if a := r.Answer(t); !a.Refused() {
		t.Fatalf("a waiting acquire: %v, want 503", a)
	}
}

// ExpectWaiting checks that there is no answer yet.
func (r *Request) ExpectWaiting(t testing.TB) {
	t.Helper()
	if r.Ended() {
		t.Fatalf("a request that should wait has ended: %v", r.answer)
	}
}

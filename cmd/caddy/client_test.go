package main_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"
)

// forLong is the wait of requests that must be ended by something else. It is
// longer than a test may take, so that a request that nobody ends hangs.
const forLong = "waitTimeoutMs=600000"

// answer is a complete answer to a request.
type answer struct {
	status int
	header http.Header
	body   string
}

// fetch sends a GET and reads the answer. Any goroutine may call it.
func fetch(ctx context.Context, client *http.Client, url string) (answer, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return answer{}, err
	}
	res, err := client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return answer{}, err
	}
	return answer{status: res.StatusCode, header: res.Header, body: string(body)}, nil
}

// mustFetch is fetch for a request that does not wait.
func mustFetch(t *testing.T, client *http.Client, url string) answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	a, err := fetch(ctx, client, url)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// get sends a request that does not wait to the site.
func (s *server) get(path string) answer {
	s.t.Helper()
	url := "http://" + s.site + path
	if !s.reloaded {
		return mustFetch(s.t, s.client, url)
	}
	a, err := fetchThroughReload(s.t, s.client, url)
	if err != nil {
		s.t.Fatal(err)
	}
	return a
}

// expect sends a request that does not wait and compares the answer's body.
func (s *server) expect(path, body string) {
	s.t.Helper()
	if a := s.get(path); a.status != http.StatusOK || a.body != body {
		s.t.Fatalf("GET %s: %d %s, want 200 %s", path, a.status, a.body, body)
	}
}

// expectRefusal sends a request that must get 503, and not wait.
func (s *server) expectRefusal(path, detail string) {
	s.t.Helper()
	a := s.get(path)
	if a.status != http.StatusServiceUnavailable || a.header.Get("Content-Type") != "application/problem+json" || !strings.Contains(a.body, detail) {
		s.t.Fatalf("GET %s: %d %s, want a problem 503 with %q", path, a.status, a.body, detail)
	}
}

// take acquires a slot of a lock that has one free.
func (s *server) take(lock, query string) grant {
	s.t.Helper()
	a := s.get("/v1/" + lock + "/acquire?" + query)
	g, err := parseGrant(a)
	if err != nil {
		s.t.Fatalf("acquire of %s: %v", lock, err)
	}
	return g
}

// grant is the answer of an acquire that took a slot.
type grant struct {
	Acquired bool
	Value    int64
	Token    uint64
}

func parseGrant(a answer) (grant, error) {
	var g grant
	if err := json.Unmarshal([]byte(a.body), &g); a.status != http.StatusOK || err != nil || !g.Acquired {
		return g, fmt.Errorf("not granted: %d %s", a.status, a.body)
	}
	return g, nil
}

// state is the answer to value?detail=1.
type state struct {
	Value   int64
	Waiting int64
	Holders []struct {
		Holder string
		Token  uint64
	}
}

func (s *server) state(lock string) state {
	s.t.Helper()
	a := s.get("/v1/" + lock + "/value?detail=1")
	var st state
	if err := json.Unmarshal([]byte(a.body), &st); a.status != http.StatusOK || err != nil {
		s.t.Fatalf("value of %s: %d %s", lock, a.status, a.body)
	}
	return st
}

// awaitWaiting waits until n requests, no more and no less, wait for a lock.
func (s *server) awaitWaiting(lock string, n int64) {
	s.t.Helper()
	await(s.t, fmt.Sprintf("%d requests wait for %s", n, lock), func() bool {
		return s.state(lock).Waiting == n
	})
}

// waiter is an acquire under way.
type waiter struct {
	done   chan struct{} // closed once the answer or the error is there
	answer answer
	err    error
}

// queue sends an acquire that waits for long, through the site.
func (s *server) queue(lock, query string) *waiter {
	return queueAt(s.t, s.site, lock, query)
}

// queueAt is queue through another address. The request has a connection of its
// own: a client that sends many at once opens some that it does not use, and Go
// servers give those 5 seconds before they exit.
func queueAt(t *testing.T, address, lock, query string) *waiter {
	transport := &http.Transport{}
	w := queueBy(t, &http.Client{Transport: transport}, address, lock, query)
	t.Cleanup(transport.CloseIdleConnections)
	return w
}

// queueBy is queueAt by a client that there is already.
func queueBy(t *testing.T, client *http.Client, address, lock, query string) *waiter {
	url := "http://" + address + "/v1/" + lock + "/acquire?" + forLong + "&" + query
	w := &waiter{done: make(chan struct{})}
	go func() { // ends with the answer, at the latest with the test
		w.answer, w.err = fetch(t.Context(), client, url)
		close(w.done)
	}()
	return w
}

// expectGrant waits for the answer, which must be a slot.
func (w *waiter) expectGrant(t *testing.T) grant {
	t.Helper()
	w.await(t)
	g, err := parseGrant(w.answer)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// expectClosing waits for the answer, which must be the one at a shutdown. It
// returns the seconds after which to try again.
func (w *waiter) expectClosing(t *testing.T) int {
	t.Helper()
	w.await(t)
	var problem struct {
		Type   string
		Title  string
		Status int
		Detail string
	}
	a := w.answer
	if err := json.Unmarshal([]byte(a.body), &problem); err != nil || a.status != http.StatusServiceUnavailable ||
		problem.Status != a.status || !strings.Contains(problem.Detail, "shutting down") {
		t.Fatalf("answer %d %s, want 503 for the shutdown", a.status, a.body)
	}
	if got := a.header.Get("Content-Type"); got != "application/problem+json" {
		t.Fatalf("Content-Type %q", got)
	}
	seconds, err := strconv.Atoi(a.header.Get("Retry-After"))
	if err != nil || seconds < 1 {
		t.Fatalf("Retry-After %q", a.header.Get("Retry-After"))
	}
	return seconds
}

func (w *waiter) await(t *testing.T) {
	t.Helper()
	select {
	case <-w.done:
	case <-time.After(soon):
		t.Fatalf("a waiting request has no answer after %v", soon)
	}
	if w.err != nil {
		t.Fatalf("a waiting request failed: %v", w.err)
	}
}

// expectWaiting checks that a request has no answer yet.
func (w *waiter) expectWaiting(t *testing.T) {
	t.Helper()
	select {
	case <-w.done:
		t.Fatalf("a request that should wait has ended: %d %s %v", w.answer.status, w.answer.body, w.err)
	default:
	}
}

// rawConn is a connection on which nothing happens by itself: no repetition, no
// pool, no reading ahead.
type rawConn struct {
	net.Conn

	t *testing.T
}

func (s *server) dial(address string) rawConn {
	s.t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(soon)); err != nil {
		s.t.Fatal(err)
	}
	return rawConn{conn, s.t}
}

// send writes a GET request.
func (c rawConn) send(path string) {
	c.t.Helper()
	if _, err := fmt.Fprintf(c.Conn, "GET %s HTTP/1.1\r\nHost: %s\r\n\r\n", path, c.RemoteAddr()); err != nil {
		c.t.Fatal(err)
	}
}

// receive reads an answer.
func (c rawConn) receive() answer {
	c.t.Helper()
	// Nothing is read ahead beyond the answer, since nothing follows it.
	res, err := http.ReadResponse(bufio.NewReader(c.Conn), nil)
	if err != nil {
		c.t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return answer{status: res.StatusCode, header: res.Header, body: string(body)}
}

// close closes the connection as a client does that is done.
func (c rawConn) close() {
	c.t.Helper()
	if err := c.Close(); err != nil {
		c.t.Fatal(err)
	}
}

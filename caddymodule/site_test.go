package caddymodule_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	_ "github.com/caddyserver/caddy/v2/modules/standard"

	_ "github.com/lockgateway/lockgateway/caddymodule"
	"github.com/lockgateway/lockgateway/internal/testaddr"
)

// patience bounds events that happen at once on any machine that works.
const patience = 2 * time.Minute

// forEver is a wait longer than any test, as a query parameter.
const forEver = "waitTimeoutMs=3600000"

// site is a site of a real Caddy in this process.
type site struct {
	t    *testing.T
	addr string // host:port
	http *http.Client
	base string // what paths are appended to

	// reloaded says that the config was reloaded. While Caddy replaces its
	// listener, the kernel resets connections that are new and that no server has
	// accepted; what was sent on them was seen by nobody.
	reloaded bool
}

// reload loads another config for the site.
func (s *site) reload(cfg []byte) {
	s.t.Helper()
	load(s.t, cfg)
	s.reloaded = true
}

// serve starts Caddy with a plain HTTP site that has the given directives. Only
// one Caddy runs in a process, so tests that serve are not parallel.
func serve(t *testing.T, directives string) *site {
	t.Helper()
	return serveGlobal(t, "", directives)
}

func serveGlobal(t *testing.T, global, directives string) *site {
	t.Helper()
	addr := testaddr.Free(t)
	load(t, config(t, global, plainSite(addr, directives)))
	stopAtEnd(t)
	return newSite(t, addr)
}

func stopAtEnd(t *testing.T) {
	t.Helper()
	t.Cleanup(func() {
		if err := caddy.Stop(); err != nil {
			t.Errorf("stopping Caddy: %v", err)
		}
	})
}

// plainSite is a site for any host on one address.
func plainSite(addr, directives string) string {
	host, port, _ := net.SplitHostPort(addr)
	return fmt.Sprintf("http://:%s {\n bind %s\n %s\n}\n", port, host, directives)
}

func newSite(t *testing.T, addr string) *site {
	t.Helper()
	transport := &http.Transport{DisableCompression: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &site{t: t, addr: addr, http: &http.Client{Transport: transport}, base: "http://" + addr}
}

// config completes and adapts a Caddyfile.
func config(t *testing.T, global, sites string) []byte {
	t.Helper()
	return adapt(t, fmt.Sprintf("{\n admin off\n persist_config off\n auto_https disable_redirects\n skip_install_trust\n storage file_system %s\n log {\n level ERROR\n }\n %s\n}\n%s\n", t.TempDir(), global, sites))
}

func adapt(t *testing.T, text string) []byte {
	t.Helper()
	cfg, err := tryAdapt(text)
	if err != nil {
		t.Fatalf("adapting: %v\n%s", err, text)
	}
	return cfg
}

func tryAdapt(text string) ([]byte, error) {
	cfg, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(text), map[string]any{"filename": "Caddyfile"})
	return cfg, err
}

func load(t *testing.T, cfg []byte) {
	t.Helper()
	if err := caddy.Load(cfg, true); err != nil {
		t.Fatalf("loading: %v\n%s", err, cfg)
	}
}

// answer is an HTTP response, read.
type answer struct {
	status int
	header http.Header
	body   string
}

// get requests a path that needs no special spelling.
func (s *site) get(path string) answer {
	s.t.Helper()
	a, err := s.try(context.Background(), path, s.reloaded)
	if err != nil {
		s.t.Fatalf("GET %s: %v", path, err)
	}
	return a
}

// try requests a path. With again it does so on another connection if one is
// reset: for requests that were begun after a reload, see reloaded.
func (s *site) try(ctx context.Context, path string, again bool) (answer, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.base+path, nil)
	if err != nil {
		return answer{}, err
	}
	res, err := s.http.Do(req)
	for tries := 0; again && tries < 5 && (errors.Is(err, syscall.ECONNRESET) || errors.Is(err, io.EOF)); tries++ {
		res, err = s.http.Do(req)
	}
	if err != nil {
		return answer{}, err
	}
	return read(res)
}

func read(res *http.Response) (answer, error) {
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return answer{res.StatusCode, res.Header, string(body)}, err
}

// want requests a path and checks the body of a success.
func (s *site) want(path, body string) {
	s.t.Helper()
	if a := s.get(path); a.status != http.StatusOK || a.body != body {
		s.t.Fatalf("GET %s gave %d %s; want 200 %s", path, a.status, a.body, body)
	}
}

// raw sends a request as it is written, and reads the answer.
func (s *site) raw(request string) answer {
	s.t.Helper()
	c := s.dial()
	defer c.Close()
	c.send(request)
	return c.answer()
}

// rawGet sends a GET with the target as it is written.
func (s *site) rawGet(target string) answer {
	s.t.Helper()
	return s.raw("GET " + target + " HTTP/1.1\r\nHost: test\r\n\r\n")
}

// conn is a connection on which requests are written by hand.
type conn struct {
	*net.TCPConn
	t *testing.T
	r *bufio.Reader
}

func (s *site) dial() *conn {
	s.t.Helper()
	c, err := net.Dial("tcp", s.addr)
	if err != nil {
		s.t.Fatal(err)
	}
	if err := c.SetReadDeadline(time.Now().Add(patience)); err != nil {
		s.t.Fatal(err)
	}
	return &conn{TCPConn: c.(*net.TCPConn), t: s.t, r: bufio.NewReader(c)}
}

func (c *conn) send(text string) {
	c.t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		c.t.Fatal(err)
	}
}

// sendGet sends a GET without waiting for its answer.
func (c *conn) sendGet(target string) {
	c.t.Helper()
	c.send("GET " + target + " HTTP/1.1\r\nHost: test\r\n\r\n")
}

func (c *conn) answer() answer {
	c.t.Helper()
	res, err := http.ReadResponse(c.r, nil)
	if err != nil {
		c.t.Fatalf("reading the answer: %v", err)
	}
	a, err := read(res)
	if err != nil {
		c.t.Fatalf("reading the answer's body: %v", err)
	}
	return a
}

// pending is a request under way.
type pending struct {
	t      *testing.T
	cancel context.CancelFunc
	done   chan struct{} // closed once answer and err are set
	answer answer
	err    error
}

// begin requests a path without waiting for the answer.
func (s *site) begin(path string) *pending {
	s.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	p := &pending{t: s.t, cancel: cancel, done: make(chan struct{})}
	s.t.Cleanup(cancel)
	again := s.reloaded
	go func() { // ends with the request, at the latest when the test does
		defer close(p.done)
		p.answer, p.err = s.try(ctx, path, again)
	}()
	return p
}

// end waits for the answer.
func (p *pending) end() answer {
	p.t.Helper()
	select {
	case <-p.done:
	case <-time.After(patience):
		p.t.Fatal("a request got no answer")
	}
	if p.err != nil {
		p.t.Fatalf("a request failed: %v", p.err)
	}
	return p.answer
}

// ended waits for the answer and checks the body of a success.
func (p *pending) ended(body string) {
	p.t.Helper()
	if a := p.end(); a.status != http.StatusOK || a.body != body {
		p.t.Fatalf("a request got %d %s; want 200 %s", a.status, a.body, body)
	}
}

// waiting checks that there is no answer yet.
func (p *pending) waiting() {
	p.t.Helper()
	select {
	case <-p.done:
		p.t.Fatalf("a request that was to wait got %+v, error %v", p.answer, p.err)
	default:
	}
}

// queued waits until the queue of a lock has so many places.
func (s *site) queued(lockPath string, places int) {
	s.t.Helper()
	s.eventually(fmt.Sprintf("%d waiting", places), func() bool {
		return s.state(lockPath).Waiting == places
	})
}

// held waits until a lock has so many holders.
func (s *site) held(lockPath string, holders int) {
	s.t.Helper()
	s.eventually(fmt.Sprintf("%d holders", holders), func() bool {
		return s.state(lockPath).Value == holders
	})
}

// state is a lock's value with detail.
type state struct {
	Value   int
	Waiting int
	Holders []struct {
		Holder      string
		Token       uint64
		ExpiresInMs int64
	}
}

func (s *site) state(lockPath string) (v state) {
	s.t.Helper()
	a := s.get(lockPath + "/value?detail=1")
	if err := json.Unmarshal([]byte(a.body), &v); err != nil || a.status != http.StatusOK {
		s.t.Fatalf("the value was %d %s: %v", a.status, a.body, err)
	}
	return v
}

// eventually waits for what nothing announces: a server's view of a queue or a
// connection.
func (s *site) eventually(what string, ok func() bool) {
	s.t.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			s.t.Fatalf("%s: not after %v", what, patience)
		}
	}
}

// encode spells an id so that it is one path segment.
func encode(id string) string {
	return strings.NewReplacer(".", "%2E").Replace(url.PathEscape(id))
}

// acquired is the answer to an acquire, decoded.
type acquired struct {
	Acquired    bool
	Value       int
	Token       uint64
	ExpiresInMs int64
}

func (a answer) acquired(t *testing.T) (out acquired) {
	t.Helper()
	if err := json.Unmarshal([]byte(a.body), &out); err != nil || a.status != http.StatusOK {
		t.Fatalf("the answer to an acquire was %d %s", a.status, a.body)
	}
	return out
}

package caddymodule_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"

	"github.com/lockgateway/lockgateway/internal/testaddr"
)

const (
	acquiredFirst = `{"acquired":true,"value":1}`
	notAcquired   = `{"acquired":false}`
)

func TestWaitersAreServedInOrder(t *testing.T) {
	s := serve(t, "lock_gateway")
	const p = "/v1/1/q"
	s.want(p+"/acquire", acquiredFirst)
	var waiters []*pending
	for n := range 20 {
		waiters = append(waiters, s.begin(p+"/acquire?"+forEver))
		s.queued(p, n+1)
	}
	s.want(p+"/acquire", notAcquired)
	for i, w := range waiters {
		w.waiting()
		if i%5 == 4 { // its client goes away
			w.cancel()
			s.queued(p, len(waiters)-1-i)
			continue
		}
		s.want(p+"/release", `{"released":true}`)
		w.ended(acquiredFirst)
	}
	s.want(p+"/release", `{"released":true}`)
	s.want(p+"/value", `{"value":0}`)
}

// Eight clients queue, and each holds for a moment: the slot goes from one to
// the next at the release, not when somebody's timer says so.
func TestB25HandoverNeedsNoTimer(t *testing.T) {
	s := serve(t, "lock_gateway")
	const p = "/v1/1/b25"
	s.want(p+"/acquire", acquiredFirst)
	order := make(chan int, 8)
	var wg sync.WaitGroup
	for n := range 8 {
		w := s.begin(p + "/acquire?" + forEver)
		s.queued(p, n+1)
		wg.Go(func() {
			w.ended(acquiredFirst)
			order <- n
			s.want(p+"/release", `{"released":true}`)
		})
	}
	s.want(p+"/release", `{"released":true}`)
	wg.Wait()
	for n := range 8 {
		if got := <-order; got != n {
			t.Fatalf("client %d was served as number %d", got, n)
		}
	}
}

func TestResetEndsWaiting(t *testing.T) {
	s := serve(t, "lock_gateway")
	const p = "/v1/1/r"
	s.want(p+"/acquire", acquiredFirst)
	w := s.begin(p + "/acquire?" + forEver)
	s.queued(p, 1)
	s.want(p+"/reset", `{"reset":true}`)
	w.ended(notAcquired)
	s.want(p+"/value", `{}`)
}

func TestTTLOverHTTP(t *testing.T) {
	s := serve(t, "lock_gateway")
	const p = "/v1/1/ttl"
	first := s.get(p + "/acquire?holder=a&ttlMs=50").acquired(t)
	if first.ExpiresInMs != 50 {
		t.Fatalf("got %+v; want 50 ms", first)
	}
	second := s.get(p + "/acquire?holder=b&" + forEver).acquired(t)
	if !second.Acquired || second.Token <= first.Token || second.ExpiresInMs != 0 {
		t.Fatalf("after %+v came %+v", first, second)
	}
	// B29, B30: the late holder queues, and its own time starts at its grant.
	late := s.begin(p + "/acquire?holder=a&ttlMs=3600000&" + forEver)
	s.queued(p, 1)
	s.want(p+"/release?holder=b", `{"released":true}`)
	if third := late.end().acquired(t); third.Token <= second.Token || third.ExpiresInMs != 3600000 {
		t.Fatalf("after %+v came %+v", second, third)
	}
}

// protocols are ways to reach one server.
func protocols(t *testing.T) map[string]*site {
	t.Helper()
	plain, secure := testaddr.Free(t), testaddr.Free(t)
	_, port, _ := net.SplitHostPort(secure)
	load(t, config(t, "servers {\n protocols h1 h2 h2c h3\n }",
		plainSite(plain, "lock_gateway")+"https://localhost:"+port+" {\n bind 127.0.0.1\n tls "+certificate(t)+"\n lock_gateway\n}\n"))
	stopAtEnd(t)
	trusting := func() *tls.Config { return &tls.Config{InsecureSkipVerify: true, ServerName: "localhost"} }
	only := func(set func(*http.Protocols)) *http.Protocols {
		p := new(http.Protocols)
		set(p)
		return p
	}
	dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, secure)
	}
	h3 := &http3.Transport{
		TLSClientConfig: trusting(),
		Dial: func(ctx context.Context, _ string, tlsConfig *tls.Config, config *quic.Config) (*quic.Conn, error) {
			return quic.DialAddrEarly(ctx, secure, tlsConfig, config)
		},
	}
	t.Cleanup(func() { _ = h3.Close() })
	sites := map[string]*site{
		"HTTP/1.1":     {addr: plain, base: "http://" + plain, http: &http.Client{Transport: &http.Transport{}}},
		"HTTP/1.1 TLS": {addr: secure, base: "https://localhost:" + port, http: &http.Client{Transport: &http.Transport{TLSClientConfig: trusting(), DialContext: dial, Protocols: only(func(p *http.Protocols) { p.SetHTTP1(true) })}}},
		"HTTP/2 plain": {addr: plain, base: "http://" + plain, http: &http.Client{Transport: &http.Transport{Protocols: only(func(p *http.Protocols) { p.SetUnencryptedHTTP2(true) })}}},
		"HTTP/2":       {addr: secure, base: "https://localhost:" + port, http: &http.Client{Transport: &http.Transport{TLSClientConfig: trusting(), DialContext: dial, Protocols: only(func(p *http.Protocols) { p.SetHTTP2(true) })}}},
		"HTTP/3":       {addr: secure, base: "https://localhost:" + port, http: &http.Client{Transport: h3}},
	}
	for _, s := range sites {
		s.t = t
		t.Cleanup(s.http.CloseIdleConnections)
	}
	return sites
}

// certificate makes one for localhost, and returns its file and that of its key.
func certificate(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"localhost"}, NotAfter: time.Now().Add(time.Hour)}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	keyBytes, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, block := range map[string]*pem.Block{"cert.pem": {Type: "CERTIFICATE", Bytes: cert}, "key.pem": {Type: "PRIVATE KEY", Bytes: keyBytes}} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "cert.pem") + " " + filepath.Join(dir, "key.pem")
}

func TestEveryProtocol(t *testing.T) {
	sites := protocols(t)
	control := sites["HTTP/1.1"]
	majors := map[string]int{"HTTP/1.1": 1, "HTTP/1.1 TLS": 1, "HTTP/2 plain": 2, "HTTP/2": 2, "HTTP/3": 3}
	n := 0
	for name, s := range sites {
		n++
		p := fmt.Sprintf("/v1/1/protocol-%d", n)
		t.Run(name, func(t *testing.T) {
			s.t = t
			res, err := s.http.Get(s.base + p + "/acquire")
			if err != nil {
				t.Fatal(err)
			}
			if res.ProtoMajor != majors[name] {
				t.Fatalf("the protocol is %s", res.Proto)
			}
			a, err := read(res)
			if err != nil || a.body != acquiredFirst {
				t.Fatalf("got %s, error %v", a.body, err)
			}
			checkHeaders(t, a)
			checkProblem(t, s.get("/v1/0/a/acquire"), 400, "maxValue")
			s.want(p+"/acquire?waitTimeoutMs=1", notAcquired)

			// A client that goes away leaves the queue, and takes nothing.
			gone := s.begin(p + "/acquire?" + forEver)
			control.queued(p, 1)
			stays := s.begin(p + "/acquire?" + forEver)
			control.queued(p, 2)
			gone.cancel()
			control.queued(p, 1)
			stays.waiting()
			s.want(p+"/release", `{"released":true}`)
			stays.ended(acquiredFirst)
			s.want(p+"/release", `{"released":true}`)
			s.want(p+"/value", `{"value":0}`)
		})
	}
}

// A client that goes at the very moment of its grant: if the server knew, the
// slot goes on; if the answer crossed the close, it stays held. Never does a
// waiter stand beside a free slot.
func TestB3CloseAtTheGrant(t *testing.T) {
	for name, s := range protocols(t) {
		t.Run(name, func(t *testing.T) {
			s.t = t
			p := "/v1/1/b3-" + encode(strings.ReplaceAll(name, "/", ""))
			for range 100 {
				s.want(p+"/acquire", acquiredFirst)
				leaving := s.begin(p + "/acquire?" + forEver)
				s.queued(p, 1)
				next := s.begin(p + "/acquire?" + forEver)
				s.queued(p, 2)
				go leaving.cancel()
				s.want(p+"/release", `{"released":true}`)
				<-leaving.done
				s.eventually("the slot is held and has gone to one of the two", func() bool {
					v := s.state(p)
					return v.Value == 1 && v.Waiting <= 1
				})
				if s.state(p).Waiting == 1 {
					// It stays held, or is just being given back; then the
					// release takes it from the next one.
					s.get(p + "/release")
				}
				next.ended(acquiredFirst)
				s.get(p + "/release")
				s.want(p+"/value", `{"value":0}`)
			}
		})
	}
}

// A one-shot client closes its connection as soon as it has read the answer. Its
// slot must not be given back: it has been told.
func TestCloseAfterTheAnswerKeepsTheSlot(t *testing.T) {
	s := serve(t, "lock_gateway")
	for n := range 100 {
		p := fmt.Sprintf("/v1/1/oneshot-%d", n)
		wait := ""
		if n%2 == 0 {
			s.want(p+"/acquire", acquiredFirst)
			wait = "?" + forEver
		}
		c := s.dial()
		c.sendGet(p + "/acquire" + wait)
		if n%2 == 0 {
			s.queued(p, 1)
			s.want(p+"/release", `{"released":true}`)
		}
		if a := c.answer(); a.body != acquiredFirst {
			t.Fatalf("got %s", a.body)
		}
		if err := c.SetLinger(0); err != nil { // close with a reset, as rudely as can be
			t.Fatal(err)
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		s.want(p+"/acquire", notAcquired)
		s.want(p+"/value", `{"value":1}`)
	}
}

// When the answer to a grant cannot be written, the slot goes on.
func TestUndeliverableGrantIsGivenBack(t *testing.T) {
	const writeTimeout = 3 * time.Second // all requests have it
	s := serveGlobal(t, fmt.Sprintf("servers {\n timeouts {\n write %s\n }\n }", writeTimeout), "lock_gateway")
	for _, holder := range []string{"", "holder=a&"} {
		p := "/v1/1/undeliverable" + strings.Trim(holder, "=&")
		s.want(p+"/acquire", acquiredFirst)
		// By hand, since Go's client would send it again on its own.
		cut := s.dial()
		cut.sendGet(p + "/acquire?" + holder + forEver)
		s.queued(p, 1)
		<-time.After(writeTimeout) // from here on the server cannot answer it
		next := s.begin(p + "/acquire?" + forEver)
		s.queued(p, 2)
		s.want(p+"/release", `{"released":true}`)
		if text, err := io.ReadAll(cut); err != nil || len(text) > 0 {
			t.Fatalf("the request got the answer %q, error %v", text, err)
		}
		cut.Close()
		next.ended(acquiredFirst)
		s.want(p+"/release", `{"released":true}`)
		s.want(p+"/value", `{"value":0}`)
	}
}

func TestHalfClosedClientLeavesTheQueue(t *testing.T) {
	s := serve(t, "lock_gateway")
	const p = "/v1/1/half"
	s.want(p+"/acquire", acquiredFirst)
	c := s.dial()
	defer c.Close()
	c.sendGet(p + "/acquire?" + forEver)
	s.queued(p, 1)
	if err := c.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	s.queued(p, 0)
}

func TestPipelinedRequestsAreAnsweredInOrder(t *testing.T) {
	s := serve(t, "lock_gateway")
	const p = "/v1/1/pipe"
	c := s.dial()
	defer c.Close()
	c.sendGet(p + "/acquire")
	c.sendGet(p + "/value")
	c.sendGet(p + "/acquire?" + forEver)
	c.sendGet(p + "/release")
	c.sendGet(p + "/value")
	s.queued(p, 1)
	s.want(p+"/release", `{"released":true}`)
	for _, want := range []string{acquiredFirst, `{"value":1}`, acquiredFirst, `{"released":true}`, `{"value":0}`} {
		if a := c.answer(); a.body != want {
			t.Fatalf("got %s; want %s", a.body, want)
		}
	}
}

// A client that reads late is a client that was answered.
func TestSlowReaderKeepsItsSlot(t *testing.T) {
	s := serve(t, "lock_gateway")
	const p = "/v1/1/slow"
	c := s.dial()
	defer c.Close()
	for _, b := range []byte("GET " + p + "/acquire HTTP/1.1\r\nHost: test\r\n\r\n") {
		c.send(string(b))
	}
	s.held(p, 1)
	s.want(p+"/acquire", notAcquired)
	if a := c.answer(); a.body != acquiredFirst {
		t.Fatalf("got %s", a.body)
	}
}

func TestBodies(t *testing.T) {
	s := serve(t, "lock_gateway")
	const p = "/v1/1/body"
	get := func(rest string) answer {
		t.Helper()
		return s.raw("GET " + p + "/acquire HTTP/1.1\r\nHost: test\r\n" + rest)
	}
	chunked := func(n int) string {
		return fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", n, strings.Repeat("x", n))
	}
	sized := func(n int) string {
		return fmt.Sprintf("Content-Length: %d\r\n\r\n%s", n, strings.Repeat("x", n))
	}
	for name, small := range map[string]string{
		"none": "Content-Length: 0\r\n\r\n", "a byte": sized(1), "64 KiB": sized(64 << 10),
		"chunked": chunked(5), "64 KiB chunked": chunked(64 << 10), "100-continue": "Expect: 100-continue\r\n" + sized(5),
	} {
		t.Run(name, func(t *testing.T) {
			c := s.dial()
			defer c.Close()
			c.send("GET " + p + "/acquire HTTP/1.1\r\nHost: test\r\n" + small)
			c.sendGet(p + "/release") // the connection must be good for another
			a := c.answer()
			if a.status == http.StatusContinue {
				a = c.answer()
			}
			if a.body != acquiredFirst {
				t.Errorf("got %d %s", a.status, a.body)
			}
			if a := c.answer(); a.body != `{"released":true}` {
				t.Errorf("got %d %s", a.status, a.body)
			}
		})
	}
	checkProblem(t, get(sized(64<<10+1)), 400, "65536 bytes are ignored")
	checkProblem(t, get(chunked(64<<10+1)), 400, "65536 bytes are ignored")
	checkProblem(t, get("Content-Length: 1000000000000\r\n\r\n"), 400, "1000000000000 bytes")
	s.want(p+"/value", `{"value":0}`)

	// With its body read, a request that waits is seen to go away.
	s.want(p+"/acquire", acquiredFirst)
	c := s.dial()
	c.send("GET " + p + "/acquire?" + forEver + " HTTP/1.1\r\nHost: test\r\n" + sized(5))
	s.queued(p, 1)
	c.Close()
	s.queued(p, 0)
}

func TestBodyThatNeverComesIsRefused(t *testing.T) {
	s := serve(t, "lock_gateway")
	checkProblem(t, s.raw("GET /v1/1/a/acquire HTTP/1.1\r\nHost: test\r\nContent-Length: 5\r\n\r\nxx"), 400, "5s")
	s.want("/v1/1/a/value", `{}`)
}

func TestEarlyDataIsRefusedWhereItHasAnEffect(t *testing.T) {
	s := serve(t, "lock_gateway")
	get := func(action string) answer {
		t.Helper()
		return s.raw("GET /v1/1/early/" + action + " HTTP/1.1\r\nHost: test\r\nEarly-Data: 1\r\n\r\n")
	}
	for _, action := range []string{"acquire", "release", "reset"} {
		checkProblem(t, get(action), 425, "early data")
	}
	if a := get("value"); a.status != 200 || a.body != `{}` {
		t.Errorf("value gave %d %s", a.status, a.body)
	}
	checkProblem(t, get("frobnicate"), 404, "path")
}

// B23: a client's HTTP stack repeats a GET whose connection died.
func TestB23RepeatedGet(t *testing.T) {
	s := serve(t, "lock_gateway")
	const p = "/v1/2/b23"
	s.want(p+"/acquire", acquiredFirst)
	s.want(p+"/acquire", `{"acquired":true,"value":2}`)
	first := s.dial()
	first.sendGet(p + "/acquire?" + forEver)
	s.queued(p, 1)
	first.Close()
	repeat := s.begin(p + "/acquire?" + forEver)
	s.queued(p, 1)
	s.want(p+"/release", `{"released":true}`)
	repeat.ended(`{"acquired":true,"value":2}`)

	// With a holder, also an answer that was lost is safe to ask for again.
	token := s.get("/v1/2/b23h/acquire?holder=a").acquired(t).Token
	if again := s.get("/v1/2/b23h/acquire?holder=a").acquired(t); again.Token != token || again.Value != 1 {
		t.Errorf("the repeat got %+v; want the token %d", again, token)
	}
}

func TestB4RepeatedRelease(t *testing.T) {
	s := serve(t, "lock_gateway")
	const p = "/v1/1/b4"
	s.get(p + "/acquire?holder=a")
	b := s.begin(p + "/acquire?holder=b&" + forEver)
	s.queued(p, 1)
	s.want(p+"/release?holder=a", `{"released":true}`)
	b.end()
	s.want(p+"/release?holder=a", `{"released":false}`)
	s.want(p+"/value", `{"value":1}`)
}

func TestClientGoneWritesNothing(t *testing.T) {
	s := serve(t, "lock_gateway")
	const p = "/v1/1/gone"
	s.want(p+"/acquire", acquiredFirst)
	w := s.begin(p + "/acquire?" + forEver)
	s.queued(p, 1)
	w.cancel()
	<-w.done
	if !errors.Is(w.err, context.Canceled) || w.answer.status != 0 {
		t.Errorf("got %+v, error %v", w.answer, w.err)
	}
	s.queued(p, 0)
}

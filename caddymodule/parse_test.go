package caddymodule

import (
	"bufio"
	"context"
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// TLS early data reaches a handler before the handshake is complete.
func TestEarlyDataOverTLS(t *testing.T) {
	r := httptest.NewRequest(http.MethodGet, "/v1/1/a/acquire", nil)
	r.TLS = &tls.ConnectionState{HandshakeComplete: false}
	if _, bad := parseRequest(r); bad == nil || bad.status != http.StatusTooEarly {
		t.Errorf("early data gave %+v", bad)
	}
	r.TLS.HandshakeComplete = true
	if _, bad := parseRequest(r); bad != nil {
		t.Errorf("a complete handshake gave %+v", bad)
	}
	r = httptest.NewRequest(http.MethodGet, "/v1/1/a/value", nil)
	r.TLS = &tls.ConnectionState{HandshakeComplete: false}
	if _, bad := parseRequest(r); bad != nil {
		t.Errorf("early data that reads gave %+v", bad)
	}
}

// handlerForTest is a handler on a memory backend of its own.
func handlerForTest(t testing.TB) *Handler {
	t.Helper()
	ctx, cancel := caddy.NewContext(caddy.Context{Context: context.Background()})
	t.Cleanup(cancel)
	h := new(Handler)
	if err := h.Provision(ctx); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Cleanup(); err != nil {
			t.Error(err)
		}
	})
	return h
}

// Whatever is in a request line: no panic, no status that the contract does not
// know, and all spellings of an identity reach the same lock.
func FuzzRequest(f *testing.F) {
	for _, seed := range []string{
		"/v1/1/a/acquire", "/v1/01/%61/release?holder=a", "/v1/1/a%2Fb/value?detail=1", "/v1/1/../reset", "/v1/99999999999999999999999/%F0%9F%94%92/acquire?waitTimeoutMs=0.5",
		"/v1/1/a/acquire?ttlMs=5&HOLDER=%zz", "//v1/1/a/acquire", "/v1/1/\"%2F/value", "/v1/%31/%252F/acquire?holder=a+b&holder=a%20b", "/v1/1/;/acquire?;=&&=;", "http://x/v1/1/a/value",
	} {
		f.Add(seed)
	}
	h := handlerForTest(f)
	next := caddyhttp.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) error {
		w.WriteHeader(http.StatusTeapot)
		return nil
	})
	f.Fuzz(func(t *testing.T, target string) {
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader("GET " + target + " HTTP/1.1\r\nHost: test\r\n\r\n")))
		if err != nil {
			return // it does not get past Go's server
		}
		req, bad := parseRequest(r)
		// One that would wait, waits for nothing here.
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		w := httptest.NewRecorder()
		if err := h.ServeHTTP(w, r.WithContext(ctx), next); err != nil {
			t.Fatalf("%q: %v", target, err)
		}
		switch w.Code {
		case 200, 400, 404, statusClientGone:
		case http.StatusTeapot:
			if strings.HasPrefix(r.URL.Path, "/v1/") {
				t.Fatalf("%q went to the next handler", target)
			}
			return
		default:
			t.Fatalf("%q gave %d", target, w.Code)
		}
		if (bad == nil) != (w.Code == 200 || w.Code == statusClientGone) {
			t.Fatalf("%q gave %d, parsed as %+v", target, w.Code, bad)
		}
		if bad != nil {
			return
		}
		spelled := "/v1/000" + req.key.MaxValue() + "/" + everyByteEscaped(req.key.ID()) + "/value"
		u, err := url.Parse(spelled)
		if err != nil {
			t.Fatal(err)
		}
		same, bad := parseRequest(&http.Request{Method: http.MethodGet, URL: u})
		if bad != nil || same.key != req.key {
			t.Fatalf("%q is the lock %q, but %q is %q (%+v)", target, req.key.Name(), spelled, same.key.Name(), bad)
		}
		_ = h.instance.backend.Reset(context.Background(), req.key)
	})
}

func everyByteEscaped(s string) string {
	var b strings.Builder
	for i := range len(s) {
		b.WriteString("%")
		b.WriteByte("0123456789ABCDEF"[s[i]>>4])
		b.WriteByte("0123456789ABCDEF"[s[i]&15])
	}
	return b.String()
}

// Any query is an error or is understood; none panics.
func FuzzQuery(f *testing.F) {
	for _, seed := range []string{"waitTimeoutMs=1.5", "holder=a&ttlMs=5", "detail=1", "WAITTIMEOUTMS=00000000000.0&waitTimeoutMs=-1", "%68older=%F0%9F%94%92", "holder=a&holder=b"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, query string) {
		for a := acquire; a <= reset; a++ {
			req := request{action: a}
			if err := req.readQuery(query); err != nil {
				if len(err.Error()) > 300 {
					t.Errorf("an error of %d characters", len(err.Error()))
				}
				continue
			}
			if req.wait < 0 || req.ttl < 0 || req.ttl > 0 && req.holder == "" {
				t.Errorf("%q was understood as %+v", query, req)
			}
		}
	})
}

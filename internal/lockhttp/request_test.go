package lockhttp

import (
	"bufio"
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// TLS early data reaches a handler before the handshake is complete.
func TestEarlyDataOverTLS(t *testing.T) {
	r := httptest.NewRequest(http.MethodGet, "/v1/1/a/acquire", nil)
	r.TLS = &tls.ConnectionState{HandshakeComplete: false}
	if _, bad := Parse(r); bad == nil || bad.Status != http.StatusTooEarly {
		t.Errorf("early data gave %+v", bad)
	}
	r.TLS.HandshakeComplete = true
	if _, bad := Parse(r); bad != nil {
		t.Errorf("a complete handshake gave %+v", bad)
	}
	r = httptest.NewRequest(http.MethodGet, "/v1/1/a/value", nil)
	r.TLS = &tls.ConnectionState{HandshakeComplete: false}
	if _, bad := Parse(r); bad != nil {
		t.Errorf("early data that reads gave %+v", bad)
	}
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
	f.Fuzz(func(t *testing.T, target string) {
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader("GET " + target + " HTTP/1.1\r\nHost: test\r\n\r\n")))
		if err != nil {
			return // it does not get past Go's server
		}
		if !strings.HasPrefix(r.URL.Path, Prefix) {
			return // it is the next handler's
		}
		req, bad := Parse(r)
		if bad != nil {
			if bad.Status != http.StatusBadRequest && bad.Status != http.StatusNotFound {
				t.Fatalf("%q gave %+v", target, bad)
			}
			return
		}
		spelled := "/v1/000" + req.Key.MaxValue() + "/" + everyByteEscaped(req.Key.ID()) + "/value"
		u, err := url.Parse(spelled)
		if err != nil {
			t.Fatal(err)
		}
		same, bad := Parse(&http.Request{Method: http.MethodGet, URL: u})
		if bad != nil || same.Key != req.Key {
			t.Fatalf("%q is the lock %q, but %q is %q (%+v)", target, req.Key.Name(), spelled, same.Key.Name(), bad)
		}
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
		for a := Acquire; a <= Reset; a++ {
			req := Request{Action: a}
			if err := req.readQuery(query); err != nil {
				if len(err.Error()) > 300 {
					t.Errorf("an error of %d characters", len(err.Error()))
				}
				continue
			}
			if req.Wait < 0 || req.TTL < 0 || req.TTL > 0 && req.Holder == "" {
				t.Errorf("%q was understood as %+v", query, req)
			}
		}
	})
}

package main_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/lockgateway/lockgateway/internal/testaddr"
)

// The log filters that the documentation recommends.
const (
	// For a site that has nothing but locks. What is left of a request's
	// address is its action.
	filterOfLockSite = `request>uri regexp ` + "`^.*?(/(?:acquire|release|value|reset))?(?:\\?.*)?$` `/v1/-/-$1`" + `
			request>headers delete
			resp_headers delete`

	// For a site that has more. Other addresses stay as they are.
	filterOfMixedSite = `request>uri regexp ` + "`^(?:[^/?]*://[^/?]*)?/*(?:v|%76)(?:1|%31)/.*?(/(?:acquire|release|value|reset))?(?:\\?.*)?$` `/v1/-/-$1`" + `
			request>headers delete
			resp_headers delete`
)

// A lock's id is a capability and a holder's name may be a person's: logs must
// have neither.
func TestAccessLogWithoutLockIDs(t *testing.T) {
	const config = `{
	admin ADMIN
	default_bind 127.0.0.1
	log {
		format filter {
			FILTER
		}
	}
}
http://SITE {
	log {
		output file DIR/access.log
		format filter {
			FILTER
		}
	}
	lock_gateway
	respond "another page"
}
http://OTHER {
	reverse_proxy NOBODY
}
`
	for _, test := range []struct {
		name, filter string
		page         string // how the address of another page is logged
	}{
		{"lock site", filterOfLockSite, `"uri":"/v1/-/-"`},
		{"mixed site", filterOfMixedSite, `"uri":"/page?query=1"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := startServer(t, config, map[string]string{"FILTER": test.filter, "NOBODY": testaddr.Free(t)})
			sendSecrets(s)
			s.get("/page?query=1")
			// A handler's error is in the default log, with its request.
			if a := mustFetch(t, s.client, "http://"+s.other+"/v1/1/"+secret+"/acquire"); a.status != http.StatusBadGateway {
				t.Fatal(a)
			}
			s.take("1/"+secret+"-held", "")
			w := s.queue("1/"+secret+"-held", "holder="+secret)
			s.awaitWaiting("1/"+secret+"-held", 1)
			s.signal(syscall.SIGTERM)
			w.expectClosing(t)
			s.expectExit()

			access, err := os.ReadFile(filepath.Join(s.dir, "access.log"))
			if err != nil {
				t.Fatal(err)
			}
			expectNoSecret(t, string(access))
			expectNoSecret(t, s.process.output(t))
			for _, want := range []string{
				`"uri":"/v1/-/-/acquire"`, `"uri":"/v1/-/-/release"`, `"uri":"/v1/-/-/value"`, `"uri":"/v1/-/-/reset"`,
				`"status":503`, `"status":400`, `"status":404`, `"status":405`, test.page,
			} {
				if !strings.Contains(string(access), want) {
					t.Errorf("the access log has no %s:\n%s", want, access)
				}
			}
			if !strings.Contains(s.process.output(t), `"uri":"/v1/-/-/acquire"`) {
				t.Errorf("the default log has not the proxy's error:\n%s", s.process.output(t))
			}
		})
	}
}

// Without an access log nothing is logged of a request, bad or cut.
func TestDefaultLogHasNoLockIDs(t *testing.T) {
	s := startServer(t, strings.Replace(onlySite, "{\n", "{\n\tdebug\n", 1), nil)
	sendSecrets(s)
	s.take("1/"+secret+"-held", "")
	before := s.queue("1/"+secret+"-held", "holder="+secret)
	s.awaitWaiting("1/"+secret+"-held", 1)
	s.mustReload(strings.Replace(onlySite, "lock_gateway", "lock_gateway {\n\t\tmax_wait 1h\n\t}", 1))
	after := s.queue("1/"+secret+"-held", "holder=other-"+secret)
	s.awaitWaiting("1/"+secret+"-held", 2)
	s.signal(syscall.SIGTERM)
	before.expectClosing(t)
	after.expectClosing(t)
	s.expectExit()
	expectNoSecret(t, s.process.output(t))
}

// secret is part of every id and holder here.
const secret = "hush-hush"

// expectNoSecret looks for a part of it, which also an encoded spelling has.
func expectNoSecret(t *testing.T, log string) {
	t.Helper()
	for line := range strings.Lines(log) {
		if strings.Contains(strings.ToLower(line), "ush-hu") {
			t.Errorf("a secret is logged: %s", line)
		}
	}
}

// sendSecrets sends requests with secrets in all places, of which most are bad.
func sendSecrets(s *server) {
	s.t.Helper()
	long := strings.Repeat(secret, 200)
	for _, request := range []string{
		"GET /v1/1/" + secret + "/acquire?holder=" + secret + "&ttlMs=60000",
		"GET /v1/1/" + secret + "/acquire?waitTimeoutMs=1&HOLDER=other-" + secret,
		"GET /v1/1/" + secret + "/value?detail=1",
		"GET /v1/1/" + secret + "/release?holder=" + secret,
		"GET /v1/1/" + secret + "/reset",
		"GET /v1/1/%68ush-hush/%76alue",
		"GET /%76%31/1/" + secret + "/value",
		"GET http://" + s.site + "/v1/1/" + secret + "/value",

		"GET /v1/0/" + secret + "/acquire",
		"GET /v1/" + secret + "/1/acquire",
		"GET /v1/1/" + secret + "%2F/acquire",
		"GET /v1/1/" + secret + "%FF/acquire",
		"GET /v1/1/" + secret + "%zz/acquire",
		"GET /v1/1/" + long + "/acquire",
		"GET /v1/1/" + secret,
		"GET /v1/1/" + secret + "/acquire/",
		"GET /v1/1/" + secret + "/" + secret + "/acquire",
		"GET /v1/1/" + secret + "/" + secret,
		"GET /v1//" + secret + "/acquire",
		"GET //v1/1/" + secret + "/acquire",
		"POST /v1/1/" + secret + "/acquire",
		"GET /v1/1/" + secret + "/acquire?waitTimeoutMs=" + secret,
		"GET /v1/1/" + secret + "/acquire?holder=a-" + secret + "&holder=b-" + secret,
		"GET /v1/1/" + secret + "/acquire?holder=" + long,
		"GET /v1/1/" + secret + "/acquire?ttlMs=" + secret,
		"GET /v1/1/" + secret + "/value?detail=/" + secret + "/acquire",
		"GET /v1/1/x/value?holder=" + secret + "/acquire",
		"GET /v1/1/x/value?" + secret + "?" + secret + "/acquire",
	} {
		conn := s.dial(s.site)
		if _, err := fmt.Fprintf(conn, "%s HTTP/1.1\r\nHost: %s\r\nReferer: http://%s/v1/1/%s/acquire\r\n\r\n", request, s.site, s.site, secret); err != nil {
			s.t.Fatal(err)
		}
		conn.receive()
		conn.close()
	}
}

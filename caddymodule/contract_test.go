package caddymodule_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// checkHeaders checks what every answer of the API carries.
func checkHeaders(t *testing.T, a answer) {
	t.Helper()
	contentType := "application/json"
	if a.status != http.StatusOK {
		contentType = "application/problem+json"
	}
	for name, want := range map[string]string{
		"Content-Type":           contentType,
		"Cache-Control":          "no-store",
		"X-Content-Type-Options": "nosniff",
		"Content-Length":         fmt.Sprint(len(a.body)),
	} {
		if got := a.header.Values(name); len(got) != 1 || got[0] != want {
			t.Errorf("%s is %q; want %q", name, got, want)
		}
	}
}

// checkProblem checks an answer that is not a success, and that its detail
// says what was wrong.
func checkProblem(t *testing.T, a answer, status int, detail string) {
	t.Helper()
	var p struct {
		Type, Title, Detail string
		Status              int
	}
	if err := json.Unmarshal([]byte(a.body), &p); err != nil {
		t.Fatalf("%d %s is no problem: %v", a.status, a.body, err)
	}
	if a.status != status || p.Status != status || p.Type != "about:blank" || p.Title != http.StatusText(status) || !strings.Contains(p.Detail, detail) {
		t.Errorf("got %d %s; want a problem %d whose detail has %q", a.status, a.body, status, detail)
	}
	checkHeaders(t, a)
}

func TestSuccessBodies(t *testing.T) {
	s := serve(t, "lock_gateway")
	for _, step := range []struct{ path, body string }{
		{"/v1/2/a/value", `{}`},
		{"/v1/2/a/value?detail=1", `{"waiting":0}`},
		{"/v1/2/a/release", `{"released":false}`},
		{"/v1/2/a/value", `{}`},
		{"/v1/2/a/acquire", `{"acquired":true,"value":1}`},
		{"/v1/2/a/acquire?waitTimeoutMs=0", `{"acquired":true,"value":2}`},
		{"/v1/2/a/acquire", `{"acquired":false}`},
		{"/v1/2/a/acquire?waitTimeoutMs=1", `{"acquired":false}`},
		{"/v1/2/a/value", `{"value":2}`},
		{"/v1/2/a/value?detail=1", `{"value":2,"waiting":0}`},
		{"/v1/2/a/value?detail=0", `{"value":2}`},
		{"/v1/1/a/value", `{}`},
		{"/v1/2/a/release", `{"released":true}`},
		{"/v1/2/a/release", `{"released":true}`},
		{"/v1/2/a/release", `{"released":false}`},
		{"/v1/2/a/value", `{"value":0}`},
		{"/v1/2/a/acquire", `{"acquired":true,"value":1}`},
		{"/v1/2/a/reset", `{"reset":true}`},
		{"/v1/2/a/value", `{}`},
		{"/v1/2/a/reset", `{"reset":true}`},
		{"/v1/2/a/release", `{"released":false}`},
	} {
		a := s.get(step.path)
		if a.status != http.StatusOK || a.body != step.body {
			t.Fatalf("GET %s gave %d %s; want 200 %s", step.path, a.status, a.body, step.body)
		}
		checkHeaders(t, a)
	}
}

func TestNamedBodies(t *testing.T) {
	s := serve(t, "lock_gateway")
	const p = "/v1/3/n"
	a := s.get(p + "/acquire?holder=a").acquired(t)
	if a.Token == 0 || a.Token >= 1<<53 {
		t.Fatalf("the token is %d", a.Token)
	}
	s.want(p+"/acquire?holder=a", fmt.Sprintf(`{"acquired":true,"value":1,"token":%d}`, a.Token))
	got := s.get(p + "/acquire?holder=b%20%22%3C&ttlMs=3600000")
	b := got.acquired(t)
	if want := fmt.Sprintf(`{"acquired":true,"value":2,"token":%d,"expiresInMs":3600000}`, b.Token); got.body != want || b.Token <= a.Token {
		t.Fatalf("got %s after token %d; want %s", got.body, a.Token, want)
	}
	s.want(p+"/acquire", `{"acquired":true,"value":3}`)
	w := s.begin(p + "/acquire?holder=c&" + forEver)
	s.queued(p, 1)
	v := s.state(p)
	detail := fmt.Sprintf(`{"value":3,"waiting":1,"holders":[{"holder":"a","token":%d},{"holder":"b \"<","token":%d,"expiresInMs":`, a.Token, b.Token)
	if body := s.get(p + "/value?detail=1").body; !strings.HasPrefix(body, detail) || v.Holders[1].ExpiresInMs > 3600000 {
		t.Fatalf("the detail is %s; want %s…", body, detail)
	}
	s.want(p+"/value", `{"value":3}`)
	s.want(p+"/release?holder=nobody", `{"released":false}`)
	s.want(p+"/release?holder=c", `{"released":false}`)
	w.ended(`{"acquired":false}`)
	s.want(p+"/release", `{"released":true}`)
	s.want(p+"/release", `{"released":false}`)
	s.want(p+"/value", `{"value":2}`)
	s.want(p+"/release?HOLDER=a", `{"released":true}`)
	s.want(p+"/release?holder=a", `{"released":false}`)
	s.want(p+"/reset", `{"reset":true}`)
	if again := s.get(p + "/acquire?holder=a").acquired(t); again.Token <= b.Token || again.Value != 1 {
		t.Fatalf("after a reset: %+v; want a token above %d", again, b.Token)
	}
}

func TestPaths(t *testing.T) {
	s := serve(t, "lock_gateway\nrespond next")
	for _, c := range []struct {
		target string
		status int // 0 for the next handler
	}{
		{"/v1/1/a/acquire", 200},
		{"/v1/1/a/release", 200},
		{"/v1/1/a/value", 200},
		{"/v1/1/a/reset", 200},
		{"/v1/1/a/%61cquire", 200},
		{"/%76%31/1/a/value", 200},
		{"http://test/v1/1/a/value", 200},
		{"/v1/", 404},
		{"/v1/1", 404},
		{"/v1/1/", 404},
		{"/v1/1/a", 404},
		{"/v1/1/a/", 404},
		{"/v1/1/a/acquire/", 404},
		{"/v1//a/acquire", 404},
		{"/v1/1//acquire", 404},
		{"/v1///acquire", 404},
		{"/v1/1/a//acquire", 404},
		{"/v1//1/a/acquire", 404},
		{"/v1/1/a/b/acquire", 404},
		{"/v1/1/a/acquire/b", 404},
		{"/v1/1/a/Acquire", 404},
		{"/v1/1/a/acquir", 404},
		{"/v1/1/a/acquires", 404},
		{"/v1/1/a/acquire%20", 404},
		{"/v1/1/a/%2Facquire", 404},
		{"/v1/0/a/frobnicate", 404}, // before 400
		{"/v1/1/a%2Fb/frobnicate", 404},
		{"/v1%2F1%2Fa%2Facquire", 404},
		{"/v1%2F1/a/acquire", 404},
		{"/v1/1%2Fa\"/acquire", 404}, // a quote makes the path's spelling one that net/url gives up on
		{"/", 0},
		{"/v1", 0},
		{"/v2/1/a/acquire", 0},
		{"/V1/1/a/acquire", 0},
		{"/v11/1/a/acquire", 0},
		{"//v1/1/a/acquire", 0},
		{"/x/v1/1/a/acquire", 0},
		{"/x/../v1/1/a/acquire", 0},
		{"/?/v1/1/a/acquire", 0},
	} {
		t.Run(c.target, func(t *testing.T) {
			switch a := s.rawGet(c.target); {
			case c.status == 0 && a.body != "next":
				t.Errorf("got %d %s; want the next handler", a.status, a.body)
			case c.status == 404:
				checkProblem(t, a, 404, "path")
			case c.status == 200 && a.status != 200:
				t.Errorf("got %d %s", a.status, a.body)
			}
		})
	}
}

func TestMethods(t *testing.T) {
	s := serve(t, "lock_gateway\nrespond next")
	for _, method := range []string{"HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND", "get"} {
		request, err := http.NewRequest(method, s.base+"/v1/0/a/acquire?waitTimeoutMs=x", nil) // 405 comes before 400
		if err != nil {
			t.Fatal(err)
		}
		res, err := s.http.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		a, err := read(res)
		if err != nil {
			t.Fatal(err)
		}
		if method == "HEAD" {
			if a.status != 405 || a.header.Get("Cache-Control") != "no-store" || a.header.Get("Content-Type") != "application/problem+json" {
				t.Errorf("HEAD gave %d %v", a.status, a.header)
			}
		} else {
			checkProblem(t, a, 405, "GET")
		}
		if got := a.header.Values("Allow"); len(got) != 1 || got[0] != "GET" {
			t.Errorf("%s: Allow is %q", method, got)
		}
	}
	checkProblem(t, s.raw("POST /v1/1/a/frobnicate HTTP/1.1\r\nHost: test\r\nContent-Length: 0\r\n\r\n"), 404, "path")
	s.want("/v1/1/a/value", `{}`)
}

func TestMaxValues(t *testing.T) {
	s := serve(t, "lock_gateway")
	for _, bad := range []string{
		"0", "00", "-1", "-0", "+1", "1.5", "1.0", "1e3", "0x1", "1_000", "1,000", "%201", "1%20", "%09", "one", "a", "%00", "1%00",
		"%D9%A1", "%EF%BC%91", "%C2%B2", "Infinity", "NaN", "1;2", "1%2F2", "%2F", "..", ".", "%FF", strings.Repeat("x", 5000),
	} {
		for _, action := range []string{"acquire", "release", "value", "reset"} {
			checkProblem(t, s.rawGet("/v1/"+bad+"/a/"+action), 400, "maxValue")
		}
	}
	for maxValue, same := range map[string]string{
		"1":                       "01",
		"7":                       "%37",
		"10":                      "0000000000000000000000000000000000000010",
		"9223372036854775807":     "09223372036854775807",
		"9223372036854775808":     "%39223372036854775808",
		"99999999999999999999999": "099999999999999999999999",
		strings.Repeat("9", 3000): "0" + strings.Repeat("9", 3000),
	} {
		s.want("/v1/"+maxValue+"/m/acquire", `{"acquired":true,"value":1}`)
		s.want("/v1/"+same+"/m/value", `{"value":1}`)
		s.want("/v1/"+same+"/m/release", `{"released":true}`)
		s.want("/v1/"+maxValue+"/m/value", `{"value":0}`)
	}
	s.want("/v1/99999999999999999999998/m/value", `{}`)
}

func TestLockIDs(t *testing.T) {
	s := serve(t, "lock_gateway")
	for _, c := range []struct{ target, detail string }{
		{"/v1/1/%2F/acquire", "lockId"},
		{"/v1/1/a%2Fb/acquire", "lockId"},
		{"/v1/1/a%2fb/acquire", "lockId"},
		{"/v1/1/a%2Fb\"/acquire", "lockId"},
		{"/v1/1/%FF/acquire", "lockId"},
		{"/v1/1/a\xff/acquire", "lockId"},
		{"/v1/1/%C3/acquire", "lockId"},
		{"/v1/1/%ED%A0%80/acquire", "lockId"}, // a surrogate
		{"/v1/1/" + strings.Repeat("x", 257) + "/acquire", "257"},
		{"/v1/1/" + strings.Repeat("%C3%A9", 257) + "/acquire", "257"},
		{"/v1/1/" + strings.Repeat("%E2%82%AC", 257) + "/acquire", "257"},
		{"/v1/1/" + strings.Repeat("%F0%9F%94%92", 257) + "/acquire", "257"},
	} {
		checkProblem(t, s.rawGet(c.target), 400, c.detail)
	}
	// A broken escape never gets past Go's HTTP server, which answers itself.
	for _, target := range []string{"/v1/1/%zz/acquire", "/v1/1/%/acquire", "/v1/1/%4/acquire", "/v1/%zz/a/acquire"} {
		if a := s.rawGet(target); a.status != 400 {
			t.Errorf("GET %s gave %d", target, a.status)
		}
	}
	// Each row spells one id in several ways; rows are different ids.
	ids := [][]string{
		{"a", "%61"}, {"A", "%41"}, {"a%20b"}, {"a+b", "a%2Bb", "a%2bb"}, {"%2B"}, {"%25"}, {"%252F"}, {"%25zz"},
		{".", "%2E", "%2e"}, {"..", "%2E%2E", ".%2e"}, {"..."}, {"%3F"}, {"%23"}, {";", "%3B"}, {"a;b"}, {"a,b"}, {"&", "%26"}, {"=", "%3D"},
		{"%00"}, {"%0A"}, {"%7F"}, {"%C2%85"}, {":", "%3A"}, {"@"}, {"*"}, {"~", "%7E"}, {"\"", "%22"}, {"<", "%3C"}, {"[", "%5B"}, {"\\", "%5C"}, {"|", "%7C"},
		{"\u00e9", "%C3%A9"}, {"e%CC%81"}, {"%F0%9F%94%92", "🔒"}, {"%F0%9F%91%A9%E2%80%8D%F0%9F%9A%80"}, {"%E2%84%AA"}, {"K"}, {"k"}, {"%EF%BB%BF"},
		{strings.Repeat("x", 256)}, {strings.Repeat("%78", 255)}, {strings.Repeat("%C3%A9", 256)}, {strings.Repeat("%E2%82%AC", 256)}, {strings.Repeat("%F0%9F%94%92", 256)},
		{"acquire"}, {"v1"}, {"1"}, {"01"}, {"\u200b"},
	}
	for _, spellings := range ids {
		for i, id := range spellings {
			if a := s.rawGet("/v1/99/" + id + "/acquire"); a.body != fmt.Sprintf(`{"acquired":true,"value":%d}`, i+1) {
				t.Errorf("acquiring %.40q after %d other spellings of it gave %d %s", id, i, a.status, a.body)
			}
		}
	}
}

func TestWaitTimeouts(t *testing.T) {
	s := serve(t, "lock_gateway")
	s.want("/v1/1/w/acquire", `{"acquired":true,"value":1}`)
	for _, bad := range []string{
		"", "-1", "-0", "%2B5", "+5", "1e3", "0x10", "5.", ".5", ".", "5..0", "5.5.5", "1,5", "5%20", "%205", "five", "Infinity", "NaN", "%D9%A5", "5.%D9%A5", "%zz", "5%", "%00", "5;", "5ms", "1_0",
		strings.Repeat("x", 3000),
	} {
		for _, name := range []string{"waitTimeoutMs", "WAITTIMEOUTMS", "%77aittimeoutms"} {
			checkProblem(t, s.rawGet("/v1/1/w/acquire?"+name+"="+bad), 400, "parameter")
		}
	}
	checkProblem(t, s.rawGet("/v1/1/w/acquire?waitTimeoutMs"), 400, "waitTimeoutMs")
	for _, good := range []string{
		"", "waitTimeoutMs=0", "waitTimeoutMs=00", "waitTimeoutMs=0.0", "waitTimeoutMs=0.0001", "waitTimeoutMs=1", "waitTimeoutMs=2.0", "WAITTIMEOUTMS=1", "waittimeoutms=1",
		"waitTimeoutMs=1&waitTimeoutMs=x", "WaitTimeoutMs=0&waitTimeoutMs=3600000", "x=1", "x", "&&", "=", "%zz=1", "holders=a", "%zz", ";waitTimeoutMs=3600000", "wait=x&detail=x&timeout=3600000", "waitTimeoutM\u017f=x",
		"waitTimeoutMs=0." + strings.Repeat("0", 3000),
	} {
		if a := s.rawGet("/v1/1/w/acquire?" + good); a.status != 200 || a.body != `{"acquired":false}` {
			t.Errorf("acquiring with %.40q gave %d %s", good, a.status, a.body)
		}
	}
	// Other actions do not know the parameter.
	s.want("/v1/1/w/value?waitTimeoutMs=x&holder=&ttlMs=x", `{"value":1}`)
	s.want("/v1/1/w/release?waitTimeoutMs=x&ttlMs=x&detail=x", `{"released":true}`)
	s.want("/v1/1/w/reset?waitTimeoutMs=x&holder=&ttlMs=x&detail=x", `{"reset":true}`)

	s.want("/v1/1/w/acquire", `{"acquired":true,"value":1}`)
	var waiting []*pending
	for i, endless := range []string{"3600000", "3600000.5", "9223372036854", "9223372036854.5", "9223372036855", "9223372036854775807", "9223372036854775808", strings.Repeat("9", 3000), strings.Repeat("9", 3000) + ".9"} {
		waiting = append(waiting, s.begin("/v1/1/w/acquire?waitTimeoutMs="+endless))
		s.queued("/v1/1/w", i+1)
	}
	for _, w := range waiting {
		w.waiting()
		s.want("/v1/1/w/release", `{"released":true}`)
		w.ended(`{"acquired":true,"value":1}`)
	}
}

func TestHolders(t *testing.T) {
	s := serve(t, "lock_gateway")
	const p = "/v1/1/h"
	for _, bad := range []string{
		"holder=", "holder", "holder=a&holder=b", "holder=a&HOLDER=b", "holder=&holder=a", "holder=a&holder=",
		"holder=%zz", "holder=%FF", "holder=" + strings.Repeat("x", 257), "holder=" + strings.Repeat("%F0%9F%94%92", 257),
	} {
		for _, action := range []string{"acquire", "release"} {
			checkProblem(t, s.rawGet(p+"/"+action+"?"+bad), 400, "holder")
		}
	}
	for _, bad := range []string{
		"ttlMs=1", "ttlMs=1&holders=a", "holder=a&ttlMs=0", "holder=a&ttlMs=00", "holder=a&ttlMs=-1", "holder=a&ttlMs=%2B1", "holder=a&ttlMs=", "holder=a&ttlMs",
		"holder=a&ttlMs=1.0", "holder=a&ttlMs=1e3", "holder=a&ttlMs=x", "holder=a&ttlMs=%D9%A1", "holder=a&TTLMS=x", "ttlms=x&holder=a", "holder=a&ttlMs=%zz",
	} {
		checkProblem(t, s.rawGet(p+"/acquire?"+bad), 400, "ttlMs")
	}
	for _, bad := range []string{"detail=", "detail=2", "detail=true", "detail", "DETAIL=x", "detail=%zz"} {
		checkProblem(t, s.rawGet(p+"/value?"+bad), 400, "etail")
	}
	s.want(p+"/value", `{}`)

	// Spellings of one holder.
	first := s.rawGet(p + "/acquire?holder=a%20b").acquired(t)
	for _, same := range []string{"holder=a+b", "Holder=a%20b", "holder=a%20b&holder=a+b", "%68older=%61%20b", "x=1&holder=a%20b&ttlMs=999999999999999999999", "holder=a%20b&ttlMs=9223372036854775807", "ttlMs=60000&holder=a%20b&ttlMs=x"} {
		if again := s.rawGet(p + "/acquire?" + same).acquired(t); again.Token != first.Token {
			t.Errorf("acquiring with %s gave %+v; want the token %d", same, again, first.Token)
		}
	}
	for _, other := range []string{"a%2520b", "a%2Bb", "A%20b", "a", strings.Repeat("x", 256), strings.Repeat("%F0%9F%94%92", 256), "%2F", "%00"} {
		s.want(p+"/acquire?holder="+other, `{"acquired":false}`)
		s.want(p+"/release?holder="+other, `{"released":false}`)
	}
	s.want(p+"/release?holder=a+b", `{"released":true}`)
}

package caddymodule_test

import (
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
)

const pageTitle = "<title>Lock Gateway</title>"

// ask sends a request with a header, follows no redirect, and reads the answer.
func (s *site) ask(method, path, header, value string) answer {
	s.t.Helper()
	req, err := http.NewRequest(method, s.base+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	if header != "" {
		req.Header.Set(header, value)
	}
	res, err := s.http.Transport.RoundTrip(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return answer{res.StatusCode, res.Header, string(body)}
}

func TestThereIsNoPageUnlessAskedFor(t *testing.T) {
	s := serve(t, "lock_gateway\nrespond next")
	for _, path := range []string{"/", "/lock_gateway/page.css", "/help/"} {
		s.want(path, "next")
	}
}

func TestPageAndItsFiles(t *testing.T) {
	s := serve(t, "lock_gateway {\n page\n}\nrespond next")
	page := s.get("/")
	if page.status != http.StatusOK || !strings.Contains(page.body, pageTitle) || strings.Contains(page.body, "{{") {
		t.Fatalf("the page is %d %.200s", page.status, page.body)
	}
	types := map[string]string{"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8", "svg": "image/svg+xml"}
	files := regexp.MustCompile(`(?:href|src)="(lock_gateway/[^"]+)"`).FindAllStringSubmatch(page.body, -1)
	if len(files) < 3 {
		t.Errorf("the page has %d files", len(files))
	}
	for _, f := range append(files, []string{"", ""}) {
		path := "/" + f[1]
		want := types[path[strings.LastIndex(path, ".")+1:]]
		if f[1] == "" {
			want = "text/html; charset=utf-8"
		}
		a := s.get(path)
		if a.status != http.StatusOK || a.body == "" || a.header.Get("Content-Type") != want {
			t.Errorf("%s is %d of type %q with %d bytes; want %q", path, a.status, a.header.Get("Content-Type"), len(a.body), want)
		}
		for name, want := range map[string]string{
			"Cache-Control":           "no-cache",
			"X-Content-Type-Options":  "nosniff",
			"Referrer-Policy":         "no-referrer",
			"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
		} {
			if got := a.header.Get(name); got != want {
				t.Errorf("%s has %s %q; want %q", path, name, got, want)
			}
		}
		if again := s.ask(http.MethodGet, path, "If-None-Match", a.header.Get("ETag")); again.status != http.StatusNotModified || again.body != "" {
			t.Errorf("%s with its own ETag is %d", path, again.status)
		}
		if head := s.ask(http.MethodHead, path, "", ""); head.status != http.StatusOK || head.body != "" || head.header.Get("ETag") != a.header.Get("ETag") {
			t.Errorf("HEAD %s is %d", path, head.status)
		}
		if post := s.ask(http.MethodPost, path, "", ""); post.status != http.StatusMethodNotAllowed || post.header.Get("Allow") != "GET, HEAD" {
			t.Errorf("POST %s is %d, allowing %q", path, post.status, post.header.Get("Allow"))
		}
	}
	for _, path := range []string{"/index.html", "/lock_gateway", "/lock_gateway/", "/lock_gateway/x.js", "/page.html", "/v2/1/a/value", "//"} {
		s.want(path, "next")
	}
	s.want("/v1/1/a/acquire", acquiredFirst)
}

// Wherever it is, the page knows where the API is, and its address ends with a
// slash, which all the addresses on it rely on.
func TestPageFindsTheAPI(t *testing.T) {
	for name, c := range map[string]struct{ directives, without, with, api string }{
		"at a path":                {"lock_gateway {\n page /help\n}", "/help", "/help/", "./../"},
		"deeper":                   {"lock_gateway {\n page /a/b/c/\n}", "/a/b/c", "/a/b/c/", "./../../../"},
		"under handle_path":        {"handle_path /locks/* {\nlock_gateway {\n page\n}\n}", "", "/locks/", "./"},
		"at a path, under another": {"handle_path /locks/* {\nlock_gateway {\n page /help\n}\n}", "/locks/help", "/locks/help/", "./../"},
		"with uri strip_prefix":    {"uri strip_prefix /x/locks\nlock_gateway {\n page\n}", "/x/locks", "/x/locks/", "./"},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, c.directives)
			a := s.get(c.with)
			if !strings.Contains(a.body, pageTitle) || !strings.Contains(a.body, `data-api="`+c.api+`"`) {
				t.Errorf("%s is %d %.200s", c.with, a.status, a.body)
			}
			if c.without == "" {
				return
			}
			a = s.ask(http.MethodGet, c.without, "", "")
			want := "./" + c.without[strings.LastIndex(c.without, "/")+1:] + "/"
			if a.status != http.StatusPermanentRedirect || a.header.Get("Location") != want {
				t.Errorf("%s is %d with Location %q; want %q", c.without, a.status, a.header.Get("Location"), want)
			}
		})
	}
}

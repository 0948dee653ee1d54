package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const root = "../.."

func TestPageHasTheCurrentManual(t *testing.T) {
	files, err := render(root)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join(root, "internal/page", name))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("internal/page/%s is not what the documentation says; run: make generate", name)
		}
	}
}

func TestLinksLeadToThePageOrTheRepository(t *testing.T) {
	l := make(links)
	for _, id := range []string{"use-it", "more"} {
		if err := l.add("README.md", id); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.add("docs/api.md", "the-api"); err != nil {
		t.Fatal(err)
	}
	if err := l.add("docs/faq.md", "the-api"); err == nil || !strings.Contains(err.Error(), "docs/api.md") {
		t.Errorf("an id that is on the page twice gave the error %v", err)
	}
	for _, c := range []struct{ from, to, want string }{
		{"docs/api.md", "../README.md", "#use-it"},
		{"docs/api.md", "../README.md#more", "#more"},
		{"docs/api.md", "#the-api", "#the-api"},
		{"README.md", "docs/api.md", "#the-api"},
		{"README.md", "docs/operations.md#proxies-in-front", repository + "docs/operations.md#proxies-in-front"},
		{"docs/api.md", "../README.md#run-it", repository + "README.md#run-it"},
		{"docs/faq.md", "../examples", repository + "examples"},
		{"README.md", "https://caddyserver.com", "https://caddyserver.com"},
	} {
		if got, err := l.resolve(root, c.from, c.to); got != c.want || err != nil {
			t.Errorf("in %s the link to %s leads to %s, error %v; want %s", c.from, c.to, got, err, c.want)
		}
	}
	if _, err := l.resolve(root, "README.md", "docs/nothing.md"); err == nil {
		t.Error("a link to a file that is not there is no error")
	}
}

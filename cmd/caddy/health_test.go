package main_test

import (
	"net/http"
	"strings"
	"syscall"
	"testing"
)

func TestHealthOnTheSite(t *testing.T) {
	t.Parallel()
	config := strings.NewReplacer("lock_gateway", "lock_gateway {\n\t\thealth /healthz\n\t}", "admin ADMIN", "admin ADMIN\n\tshutdown_delay 10m").Replace(onlySite)
	s := startServer(t, config, nil)
	s.expect("/healthz/live", `{"live":true}`)
	s.expect("/healthz/ready", `{"ready":true}`)
	admin := func(question string, status int, body string) {
		t.Helper()
		if a := mustFetch(t, s.client, "http://"+s.admin+"/lock_gateway/health/"+question); a.status != status || !strings.Contains(a.body, body) {
			t.Errorf("the admin API says %d %s; want %d %s", a.status, a.body, status, body)
		}
	}
	admin("live", http.StatusOK, `{"live":true}`)
	admin("ready", http.StatusOK, `{"ready":true}`)
	if a := s.get("/healthz/other"); a.status != http.StatusOK || a.body != "" {
		t.Errorf("what is not the health's goes elsewhere; got %d %s", a.status, a.body)
	}

	// While Caddy drains the site is still reached, and says so.
	s.signal(syscall.SIGTERM)
	await(t, "the site is not ready any more", func() bool { return s.get("/healthz/ready").status == http.StatusServiceUnavailable })
	s.expectRefusal("/healthz/ready", "shutting down")
	s.expect("/healthz/live", `{"live":true}`)
	admin("ready", http.StatusServiceUnavailable, "shutting down")
	admin("live", http.StatusOK, `{"live":true}`)
}

func TestHealthIsOffByDefault(t *testing.T) {
	t.Parallel()
	s := startServer(t, onlySite, nil)
	for _, path := range []string{"/health/live", "/health/ready", "/live"} {
		if a := s.get(path); a.body != "" {
			t.Errorf("%s answers %d %s; want nothing of it", path, a.status, a.body)
		}
	}
}

package caddymodule_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/lockgateway/lockgateway/internal/testaddr"
)

// handlerOf adapts a site with the directives and returns the handler's JSON.
func handlerOf(t *testing.T, directives string) string {
	t.Helper()
	var cfg struct {
		Apps struct {
			HTTP struct {
				Servers map[string]struct {
					Routes []struct {
						Handle []json.RawMessage
					}
				}
			}
		}
	}
	adapted := adapt(t, ":8080 {\n"+directives+"\n}")
	if err := json.Unmarshal(adapted, &cfg); err != nil {
		t.Fatal(err)
	}
	return string(cfg.Apps.HTTP.Servers["srv0"].Routes[0].Handle[0])
}

func TestCaddyfileAdaptsToJSON(t *testing.T) {
	t.Setenv("LOCKS", "of-the-shell")
	for _, c := range []struct{ directives, want string }{
		{"lock_gateway", `{"handler":"lock_gateway"}`},
		{"lock_gateway {\n}", `{"handler":"lock_gateway"}`},
		{"lock_gateway {\n max_wait 90s\n max_waiters 10\n max_pending 1000\n}",
			`{"handler":"lock_gateway","max_pending":1000,"max_wait":90000000000,"max_waiters":10}`},
		{"lock_gateway {\n page\n}", `{"handler":"lock_gateway","page":"/"}`},
		{"lock_gateway {\n page /help\n}", `{"handler":"lock_gateway","page":"/help"}`},
		{"lock_gateway {\n max_wait 1d\n}", `{"handler":"lock_gateway","max_wait":86400000000000}`},
		{"lock_gateway {\n backend memory\n}", `{"backend":{"module":"memory"},"handler":"lock_gateway"}`},
		{"lock_gateway {\n backend memory {\n name jobs\n forget_after 10m\n max_locks 100000\n}\n max_wait 1m\n}",
			`{"backend":{"forget_after":600000000000,"max_locks":100000,"module":"memory","name":"jobs"},"handler":"lock_gateway","max_wait":60000000000}`},
		{"lock_gateway {\n backend memory {\n name {env.LOCKS}\n}\n}", `{"backend":{"module":"memory","name":"{env.LOCKS}"},"handler":"lock_gateway"}`},
		{"lock_gateway {\n backend memory {\n name {$LOCKS}\n}\n}", `{"backend":{"module":"memory","name":"of-the-shell"},"handler":"lock_gateway"}`},
	} {
		var got, want any
		if err := json.Unmarshal([]byte(handlerOf(t, c.directives)), &got); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(c.want), &want); err != nil {
			t.Fatal(err)
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s\nadapts to %v\nwant      %v", c.directives, got, want)
		}
	}
}

func TestBadCaddyfileNamesFileLineAndSetting(t *testing.T) {
	for _, c := range []struct {
		directives string
		line       int
		want       string
	}{
		{"lock_gateway memory", 2, "memory"},
		{"lock_gateway {\n max_weight 1\n}", 3, "max_weight"},
		{"lock_gateway {\n max_wait\n}", 3, "max_wait"},
		{"lock_gateway {\n max_wait 1 2\n}", 3, "max_wait"},
		{"lock_gateway {\n max_wait soon\n}", 3, "max_wait"},
		{"lock_gateway {\n max_wait 0\n}", 3, "max_wait"},
		{"lock_gateway {\n max_wait -5s\n}", 3, "max_wait"},
		{"lock_gateway {\n max_wait 5s\n max_wait 6s\n}", 4, "max_wait is given twice"},
		{"lock_gateway {\n max_waiters 0\n}", 3, "max_waiters"},
		{"lock_gateway {\n max_waiters 1.5\n}", 3, "max_waiters"},
		{"lock_gateway {\n max_waiters many\n}", 3, "max_waiters"},
		{"lock_gateway {\n max_pending -1\n}", 3, "max_pending"},
		{"lock_gateway {\n page a\n}", 3, "page"},
		{"lock_gateway {\n page \"\"\n}", 3, "page"},
		{"lock_gateway {\n page / /help\n}", 3, "page"},
		{"lock_gateway {\n page /v1\n}", 3, "page"},
		{"lock_gateway {\n page /a/../b\n}", 3, "page"},
		{"lock_gateway {\n page\n page /help\n}", 4, "page is given twice"},
		{"lock_gateway {\n backend\n}", 3, "backend"},
		{"lock_gateway {\n backend redis\n}", 3, "http.lock_gateway.backends.redis"},
		{"lock_gateway {\n backend memory\n backend memory\n}", 4, "backend is given twice"},
		{"lock_gateway {\n backend memory jobs\n}", 3, "jobs"},
		{"lock_gateway {\n backend memory {\n nam jobs\n}\n}", 4, "nam"},
		{"lock_gateway {\n backend memory {\n name\n}\n}", 4, "name"},
		{"lock_gateway {\n backend memory {\n name \"\"\n}\n}", 4, "name"},
		{"lock_gateway {\n backend memory {\n name a b\n}\n}", 4, "name"},
		{"lock_gateway {\n backend memory {\n name a\n name b\n}\n}", 5, "name is given twice"},
		{"lock_gateway {\n backend memory {\n forget_after never\n}\n}", 4, "forget_after"},
		{"lock_gateway {\n backend memory {\n forget_after 0s\n}\n}", 4, "forget_after"},
		{"lock_gateway {\n backend memory {\n max_locks 0\n}\n}", 4, "max_locks"},
		{"lock_gateway {\n backend memory {\n max_locks 1e6\n}\n}", 4, "max_locks"},
	} {
		_, err := tryAdapt(":8080 {\n" + c.directives + "\n}")
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), fmt.Sprintf("Caddyfile:%d", c.line)) {
			t.Errorf("%s\ngave the error %v\nwant one that names Caddyfile:%d and %s", c.directives, err, c.line, c.want)
		}
	}
}

func TestBadJSONNamesTheSetting(t *testing.T) {
	for handler, want := range map[string]string{
		`{"handler":"lock_gateway","max_wait":-1}`:                                                   "max_wait",
		`{"handler":"lock_gateway","max_waiters":-1}`:                                                "max_waiters",
		`{"handler":"lock_gateway","max_pending":-1}`:                                                "max_pending",
		`{"handler":"lock_gateway","page":"help"}`:                                                   "page",
		`{"handler":"lock_gateway","page":"/v1/x"}`:                                                  "/v1/",
		`{"handler":"lock_gateway","max_locks":1}`:                                                   "max_locks",
		`{"handler":"lock_gateway","backend":{"module":"memory","max_locks":-1}}`:                    "max_locks",
		`{"handler":"lock_gateway","backend":{"module":"memory","forget_after":"-1s"}}`:              "forget_after",
		`{"handler":"lock_gateway","backend":{"module":"memory","lost_after":"1s"}}`:                 "lost_after",
		`{"handler":"lock_gateway","backend":{"module":"redis"}}`:                                    "redis",
		`{"handler":"lock_gateway","backend":{}}`:                                                    "module",
		`{"handler":"lock_gateway","backend":{"module":"memory","name":"{env.NO_SUCH_VALUE}"}}`:      "NO_SUCH_VALUE",
		`{"handler":"lock_gateway","backend":{"module":"memory","name":"team-{env.NO_SUCH_VALUE}"}}`: "NO_SUCH_VALUE",
		`{"handler":"lock_gateway","backend":{"module":"memory","name":"{no.such.placeholder}"}}`:    "no.such.placeholder",
	} {
		err := caddy.Validate(mustConfig(t, `{"logging":{"logs":{"default":{"level":"PANIC"}}},"admin":{"disabled":true},"apps":{"http":{"servers":{"s":{"listen":["127.0.0.1:0"],"routes":[{"handle":[`+handler+`]}]}}}}}`))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s gave the error %v; want one that names %s", handler, err, want)
		}
	}
}

func mustConfig(t *testing.T, text string) *caddy.Config {
	t.Helper()
	cfg := new(caddy.Config)
	if err := json.Unmarshal([]byte(text), cfg); err != nil {
		t.Fatal(err)
	}
	return cfg
}

func TestJSONConfigServes(t *testing.T) {
	addr := testaddr.Free(t)
	load(t, []byte(`{"logging":{"logs":{"default":{"level":"PANIC"}}},"admin":{"disabled":true,"config":{"persist":false}},"apps":{"http":{"servers":{"s":{"listen":["`+addr+`"],"routes":[{"handle":[
		{"handler":"lock_gateway","max_wait":"50ms","max_waiters":5,"max_pending":5,
		 "backend":{"module":"memory","name":"json","forget_after":"1h","max_locks":2}}]}]}}}}}`))
	stopAtEnd(t)
	s := newSite(t, addr)
	s.want("/v1/1/a/acquire", acquiredFirst)
	s.want("/v1/1/a/acquire?"+forEver, notAcquired)
	s.want("/v1/1/b/acquire", acquiredFirst)
	checkProblem(t, s.get("/v1/1/c/acquire"), 503, "max_locks 2")
}

func TestMaxWaitCutsLongWaits(t *testing.T) {
	s := serve(t, "lock_gateway {\n max_wait 50ms\n}")
	s.want("/v1/1/a/acquire", acquiredFirst)
	begun := time.Now()
	s.want("/v1/1/a/acquire?"+forEver, notAcquired)
	if waited := time.Since(begun); waited < 50*time.Millisecond {
		t.Errorf("waited %v only", waited)
	}
	s.want("/v1/1/a/acquire?waitTimeoutMs=99999999999999999999999", notAcquired)
	s.want("/v1/1/a/acquire?waitTimeoutMs=1", notAcquired)
}

func TestMaxWaitersRefusesAndChangesNothing(t *testing.T) {
	s := serve(t, "lock_gateway {\n max_waiters 2\n}")
	const p = "/v1/1/a"
	s.want(p+"/acquire", acquiredFirst)
	first := s.begin(p + "/acquire?holder=a&" + forEver)
	s.queued(p, 1)
	second := s.begin(p + "/acquire?" + forEver)
	s.queued(p, 2)
	refused := s.get(p + "/acquire?" + forEver)
	checkProblem(t, refused, 503, "max_waiters 2")
	if refused.header.Get("Retry-After") != "1" {
		t.Errorf("Retry-After is %q", refused.header.Get("Retry-After"))
	}
	s.want(p+"/acquire", notAcquired)
	shared := s.begin(p + "/acquire?holder=a&" + forEver) // takes no place of its own
	other := s.begin("/v1/2/a/acquire?" + forEver)
	other.ended(acquiredFirst)
	s.queued(p, 2)
	s.want(p+"/release", `{"released":true}`)
	if a, b := first.end(), shared.end(); a.body != b.body {
		t.Errorf("one holder was told %s and %s", a.body, b.body)
	}
	s.want(p+"/release?holder=a", `{"released":true}`)
	second.ended(acquiredFirst)
}

func TestMaxPendingRefusesOnlyToWait(t *testing.T) {
	s := serve(t, "lock_gateway {\n max_pending 2\n}")
	for _, p := range []string{"/v1/1/a", "/v1/1/b", "/v1/1/c"} {
		s.want(p+"/acquire", acquiredFirst)
	}
	s.begin("/v1/1/a/acquire?" + forEver)
	s.queued("/v1/1/a", 1)
	waits := s.begin("/v1/1/b/acquire?" + forEver)
	s.queued("/v1/1/b", 1)
	checkProblem(t, s.get("/v1/1/c/acquire?"+forEver), 503, "max_pending 2")
	s.want("/v1/1/c/acquire", notAcquired)
	s.want("/v1/1/free/acquire?"+forEver, acquiredFirst)
	s.want("/v1/1/c/value?detail=1", `{"value":1,"waiting":0}`)
	s.want("/v1/1/b/release", `{"released":true}`)
	waits.ended(acquiredFirst)
	s.begin("/v1/1/c/acquire?" + forEver)
	s.queued("/v1/1/c", 1)
}

func TestMaxLocksForgetsIdleLocksFirst(t *testing.T) {
	s := serve(t, "lock_gateway {\n backend memory {\n max_locks 2\n}\n}")
	s.want("/v1/1/a/acquire", acquiredFirst)
	s.want("/v1/1/b/acquire", acquiredFirst)
	checkProblem(t, s.get("/v1/1/c/acquire"), 503, "max_locks 2")
	s.want("/v1/1/c/value", `{}`)
	s.want("/v1/1/b/release", `{"released":true}`)
	s.want("/v1/1/b/value", `{"value":0}`)
	s.want("/v1/1/c/acquire", acquiredFirst)
	s.want("/v1/1/b/value", `{}`)
	s.want("/v1/1/a/value", `{"value":1}`)
}

func TestIdleLocksAreForgotten(t *testing.T) {
	s := serve(t, "lock_gateway {\n backend memory {\n forget_after 50ms\n}\n}")
	s.want("/v1/1/a/acquire", acquiredFirst)
	s.want("/v1/1/b/acquire", acquiredFirst)
	s.want("/v1/1/a/release", `{"released":true}`)
	s.eventually("the idle lock is forgotten", func() bool { return s.get("/v1/1/a/value").body == `{}` })
	s.want("/v1/1/b/value", `{"value":1}`)
}

func TestMountedAnywhere(t *testing.T) {
	for name, c := range map[string]struct{ directives, prefix string }{
		"at the root":            {"lock_gateway", ""},
		"beside respond":         {"respond next\nlock_gateway", ""},
		"beside a file server":   {"root /nowhere\nfile_server\nlock_gateway", ""},
		"with encode":            {"encode\nlock_gateway\nrespond next", ""},
		"with headers":           {"header X-Test 1\nlock_gateway\nrespond next", ""},
		"with a matcher":         {"lock_gateway /v1/*\nrespond next", ""},
		"in handle":              {"handle /v1/* {\nlock_gateway\n}\nhandle {\nrespond next\n}", ""},
		"in route":               {"route {\nlock_gateway\nrespond next\n}", ""},
		"under handle_path":      {"handle_path /locks/* {\nlock_gateway\n}\nrespond next", "/locks"},
		"with uri strip_prefix":  {"uri strip_prefix /a/b\nlock_gateway\nrespond next", "/a/b"},
		"in nested routes":       {"route /x/* {\nuri strip_prefix /x\nroute {\nlock_gateway\n}\n}\nrespond next", "/x"},
		"behind a reverse proxy": {"handle_path /locks/* {\nreverse_proxy {\nto 127.0.0.1:{$UPSTREAM}\n}\n}\nhandle {\nlock_gateway\n}", "/locks"},
	} {
		t.Run(name, func(t *testing.T) {
			addr := testaddr.Free(t)
			t.Setenv("UPSTREAM", addr[strings.LastIndex(addr, ":")+1:])
			load(t, config(t, "", plainSite(addr, c.directives)))
			stopAtEnd(t)
			s := newSite(t, addr)
			if c.prefix == "" {
				for n, id := range []string{"..", "%2E%2E"} {
					s.wantRaw("/v1/9/"+id+"/acquire", n+1)
				}
			} else {
				// Where Caddy strips a prefix it resolves dots first.
				checkProblem(t, s.rawGet(c.prefix+"/v1/9/../acquire"), 404, "path")
			}
			for _, spellings := range [][]string{{"a", "%61"}, {"..."}, {"%25"}, {"a%3Fb"}, {"a%20b"}, {"%F0%9F%94%92"}, {"a+b", "a%2Bb"}, {"%252F"}, {"a;b", "a%3Bb"}, {"%22"}} {
				for n, id := range spellings {
					s.wantRaw(c.prefix+"/v1/9/"+id+"/acquire?waitTimeoutMs=1000", n+1)
				}
			}
			checkProblem(t, s.rawGet(c.prefix+"/v1/1/a%2Fb/acquire"), 400, "lockId")
			checkProblem(t, s.rawGet(c.prefix+"/v1/1/a/b/acquire"), 404, "path")
		})
	}
}

// wantRaw acquires with the target as it is written, and checks the value.
func (s *site) wantRaw(target string, value int) {
	s.t.Helper()
	a := s.rawGet(target)
	if a.body != fmt.Sprintf(`{"acquired":true,"value":%d}`, value) {
		s.t.Errorf("GET %s gave %d %s; want value %d", target, a.status, a.body, value)
		return
	}
	checkHeaders(s.t, a)
}

func TestSitesShareLocksByName(t *testing.T) {
	one, two, three, four := testaddr.Free(t), testaddr.Free(t), testaddr.Free(t), testaddr.Free(t)
	t.Setenv("LOCKS", "other")
	load(t, config(t, "", plainSite(one, "lock_gateway {\n backend memory {\n max_locks 2\n}\n}")+
		plainSite(two, "handle_path /elsewhere/* {\nlock_gateway\n}")+
		plainSite(three, "lock_gateway {\n backend memory {\n name other\n}\n}")+
		plainSite(four, "lock_gateway {\n backend memory {\n name {env.LOCKS}\n}\n}")))
	stopAtEnd(t)
	a, b, c, d := newSite(t, one), newSite(t, two), newSite(t, three), newSite(t, four)
	a.want("/v1/1/x/acquire", acquiredFirst)
	b.want("/elsewhere/v1/1/x/acquire", notAcquired)
	c.want("/v1/1/x/acquire", acquiredFirst)
	d.want("/v1/1/x/acquire", notAcquired)
	w := b.begin("/elsewhere/v1/1/x/acquire?" + forEver)
	a.queued("/v1/1/x", 1)
	a.want("/v1/1/x/release", `{"released":true}`)
	w.ended(acquiredFirst)
	c.want("/v1/1/x/value", `{"value":1}`)

	// The settings that one of them gives apply to what they share.
	b.want("/elsewhere/v1/1/y/acquire", acquiredFirst)
	checkProblem(t, b.get("/elsewhere/v1/1/z/acquire"), 503, "max_locks 2")
}

func TestContradictorySettingsOfOneNameAreRefused(t *testing.T) {
	err := caddy.Load(config(t, "", plainSite(testaddr.Free(t), "lock_gateway {\n backend memory {\n max_locks 2\n}\n}")+
		plainSite(testaddr.Free(t), "lock_gateway {\n backend memory {\n max_locks 3\n}\n}")), true)
	if err == nil || !strings.Contains(err.Error(), "different settings") || !strings.Contains(err.Error(), "default") {
		t.Errorf("got the error %v; want one that names the settings", err)
	}
}

func TestReloadDisturbsNobody(t *testing.T) {
	addr := testaddr.Free(t)
	load(t, config(t, "", plainSite(addr, "lock_gateway {\n max_wait 1h\n}")))
	stopAtEnd(t)
	s := newSite(t, addr)
	const p = "/v1/1/a"
	s.want(p+"/acquire", acquiredFirst)
	token := s.get("/v1/1/named/acquire?holder=a").acquired(t).Token
	var waiters []*pending
	for n := range 5 {
		waiters = append(waiters, s.begin(p+"/acquire?"+forEver))
		s.queued(p, n+1)
	}
	for n, site := range []string{
		"lock_gateway {\n max_wait 50ms\n}",
		"lock_gateway {\n backend memory {\n forget_after 2h\n}\n}",
		"handle_path /moved/* {\n lock_gateway {\n backend memory {\n max_locks 7\n}\n}\n}\nlock_gateway",
	} {
		s.reload(config(t, "", plainSite(addr, site)))
		s.want(p+"/value?detail=1", fmt.Sprintf(`{"value":1,"waiting":%d}`, 5-n))
		s.want(p+"/acquire", notAcquired)
		for _, w := range waiters[n:] {
			w.waiting()
		}
		s.want(p+"/release", `{"released":true}`)
		waiters[n].ended(acquiredFirst)
	}
	// Requests that came through several generations stand in one queue.
	waiters = append(waiters, s.begin("/moved"+p+"/acquire?"+forEver))
	s.queued(p, 3)
	for _, w := range waiters[3:] {
		s.want("/moved"+p+"/release", `{"released":true}`)
		w.ended(acquiredFirst)
	}
	if again := s.get("/v1/1/named/acquire?holder=a").acquired(t); again.Token != token || again.Value != 1 {
		t.Errorf("after reloads a holder got %+v; want its token %d", again, token)
	}
}

func TestReloadAppliesTheNewSettings(t *testing.T) {
	addr := testaddr.Free(t)
	// Two handlers, the second of which takes what the first gives.
	with := func(settings string) []byte {
		return config(t, "", plainSite(addr, "handle_path /a/* {\n lock_gateway {\n backend memory {\n"+settings+"\n}\n}\n}\nlock_gateway"))
	}
	load(t, with("max_locks 1"))
	stopAtEnd(t)
	s := newSite(t, addr)
	s.want("/v1/1/a/acquire", acquiredFirst)
	checkProblem(t, s.get("/v1/1/b/acquire"), 503, "max_locks 1")
	s.reload(with("max_locks 2"))
	s.want("/v1/1/b/acquire", acquiredFirst)
	checkProblem(t, s.get("/v1/1/c/acquire"), 503, "max_locks 2")
	s.reload(with(""))
	s.want("/v1/1/c/acquire", acquiredFirst)
	s.want("/v1/1/a/value", `{"value":1}`)
}

func TestFailedReloadChangesNothing(t *testing.T) {
	addr := testaddr.Free(t)
	const settings = "lock_gateway {\n backend memory {\n max_locks 2\n}\n}"
	load(t, config(t, "", plainSite(addr, settings)))
	stopAtEnd(t)
	s := newSite(t, addr)
	s.want("/v1/1/a/acquire", acquiredFirst)
	w := s.begin("/v1/1/a/acquire?" + forEver)
	s.queued("/v1/1/a", 1)

	good := string(config(t, "", plainSite(addr, "lock_gateway {\n backend memory {\n max_locks 100\n}\n}")))
	for name, bad := range map[string]string{
		"after it took its share":     strings.Replace(good, `"handler":"lock_gateway"`, `"handler":"lock_gateway","max_wait":-1`, 1),
		"before it took its share":    strings.Replace(good, `"max_locks":100`, `"max_locks":-1`, 1),
		"because of another handler":  strings.Replace(good, `"handle":[`, `"handle":[{"handler":"lock_gateway"},{"handler":"no_such_handler"},`, 1),
		"because of an unknown field": strings.Replace(good, `"max_locks":100`, `"max_locks":100,"nonsense":1`, 1),
	} {
		if bad == good {
			t.Fatalf("%s: the config was not changed", name)
		}
		if err := caddy.Load([]byte(bad), true); err == nil {
			t.Fatalf("%s: a bad config was loaded", name)
		}
		s.want("/v1/1/a/value?detail=1", `{"value":1,"waiting":1}`)
		s.want("/v1/1/b/acquire", acquiredFirst)
		checkProblem(t, s.get("/v1/1/c/acquire"), 503, "max_locks 2")
		s.want("/v1/1/b/reset", `{"reset":true}`)
		w.waiting()
	}
	s.want("/v1/1/a/release", `{"released":true}`)
	w.ended(acquiredFirst)
}

func TestReloadThatDropsTheBackendAnswersItsWaiters(t *testing.T) {
	addr := testaddr.Free(t)
	one := config(t, "", plainSite(addr, "lock_gateway {\n backend memory {\n name one\n}\n}"))
	load(t, one)
	stopAtEnd(t)
	s := newSite(t, addr)
	s.want("/v1/1/a/acquire", acquiredFirst)
	w := s.begin("/v1/1/a/acquire?" + forEver)
	s.queued("/v1/1/a", 1)
	s.reload(config(t, "", plainSite(addr, "lock_gateway {\n backend memory {\n name two\n}\n}")))
	cut := w.end()
	checkProblem(t, cut, 503, "shutting down")
	if after := cut.header.Get("Retry-After"); after < "1" || after > "5" || len(after) != 1 {
		t.Errorf("Retry-After is %q", after)
	}
	s.want("/v1/1/a/value", `{}`)
	s.reload(one)
	s.want("/v1/1/a/value", `{}`) // nobody kept it
}

func TestStateOutlivesRequestsOfAClosedGeneration(t *testing.T) {
	addr := testaddr.Free(t)
	load(t, config(t, "", plainSite(addr, "lock_gateway")))
	s := newSite(t, addr)
	s.want("/v1/1/a/acquire", acquiredFirst)
	w := s.begin("/v1/1/a/acquire?" + forEver)
	s.queued("/v1/1/a", 1)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	stopped := make(chan error, 1)
	go func() { stopped <- caddy.Stop() }()
	checkProblem(t, w.end(), 503, "shutting down")
	select {
	case err := <-stopped:
		if err != nil {
			t.Error(err)
		}
	case <-ctx.Done():
		t.Error("stopping did not end")
	}
}

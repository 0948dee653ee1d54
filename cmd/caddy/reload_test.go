package main_test

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

const (
	beforeReload = `{
	admin ADMIN
	default_bind 127.0.0.1
}
http://SITE {
	lock_gateway {
		backend memory {
			name one
			forget_after 1h
		}
	}
}
`
	// afterReload differs in every setting that leaves the locks the same.
	afterReload = `{
	admin ADMIN
	default_bind 127.0.0.1
}
http://SITE, http://OTHER {
	lock_gateway {
		backend memory {
			name one
			forget_after 2h
			max_locks 100
		}
		max_wait 3h
		max_waiters 1000
		max_pending 1000
	}
}
`
)

func TestB33ReloadKeepsWaiters(t *testing.T) {
	s := startServer(t, beforeReload, nil)
	s.take("1/a", "")
	kept := s.take("3/named", "holder=keeper")
	waiters := make([]*waiter, 12)
	for i := range waiters {
		waiters[i] = s.queue("1/a", "")
		s.awaitWaiting("1/a", int64(i+1))
	}
	s.take("1/b", "")
	stays := s.queue("1/b", "")
	s.awaitWaiting("1/b", 1)

	s.mustReload(afterReload)
	s.expect("/v1/1/a/value?detail=1", fmt.Sprintf(`{"value":1,"waiting":%d}`, len(waiters)))
	s.expect("/v1/1/a/acquire", `{"acquired":false}`)
	if again := s.take("3/named", "holder=keeper"); again != kept {
		t.Errorf("the named slot reads %+v, before the reload %+v", again, kept)
	}
	newcomer := queueAt(t, s.other, "1/a", "")
	s.awaitWaiting("1/a", int64(len(waiters)+1))

	waiters = append(waiters, newcomer)
	for i, w := range waiters {
		for _, later := range waiters[i:] {
			later.expectWaiting(t)
		}
		s.expect("/v1/1/a/release", `{"released":true}`)
		if g := w.expectGrant(t); g.Value != 1 {
			t.Errorf("the grant says that there are %d holders", g.Value)
		}
		s.expect("/v1/1/a/value?detail=1", fmt.Sprintf(`{"value":1,"waiting":%d}`, len(waiters)-i-1))
	}

	// Caddy waits at exit for the requests of all configs before.
	stays.expectWaiting(t)
	s.stop()
	stays.expectClosing(t)
	s.expectExit()
}

// Clients that keep their connections notice nothing of reloads, except that
// they have to connect anew, which HTTP clients do by themselves.
func TestReloadsUnderLoadFailNoRequest(t *testing.T) {
	config := func(hours int) string {
		return strings.Replace(beforeReload, "forget_after 1h", fmt.Sprintf("forget_after %dh", hours), 1)
	}
	s := startServer(t, config(1), nil)

	var (
		cycles  atomic.Int64
		clients sync.WaitGroup
	)
	stop := make(chan struct{})
	for i := range 8 {
		clients.Go(func() { // ends when stop is closed, or with the first failure
			client := &http.Client{Transport: &http.Transport{}}
			defer client.CloseIdleConnections()
			lock := fmt.Sprintf("http://%s/v1/1/client-%d/", s.site, i)
			for {
				select {
				case <-stop:
					return
				default:
				}
				if err := cycle(t, client, lock); err != nil {
					t.Error(err)
					return
				}
				cycles.Add(1)
			}
		})
	}
	defer clients.Wait()
	defer close(stop)

	for hours := range 6 {
		s.mustReload(config(hours + 2))
		before := cycles.Load()
		await(t, "requests go on after a reload", func() bool {
			return cycles.Load() > before+50 || t.Failed()
		})
	}
}

// cycle acquires and releases a lock that nobody else uses. A request that is
// carried out twice shows, too: its second answer is another.
func cycle(t *testing.T, client *http.Client, lock string) error {
	for _, step := range []struct{ action, want string }{
		{"acquire", `{"acquired":true,"value":1}`},
		{"release", `{"released":true}`},
	} {
		a, err := fetchThroughReload(t, client, lock+step.action)
		if err != nil {
			return err
		}
		if a.status != http.StatusOK || a.body != step.want {
			return fmt.Errorf("%s: %d %s, want 200 %s", step.action, a.status, a.body, step.want)
		}
	}
	return nil
}

// fetchThroughReload is fetch, and tries again if a new connection was reset:
// Caddy opens another listener on the port and closes the old one, which on
// Linux resets the connections that it has not accepted yet. Their requests
// reached nobody. A connection that served a request before has no such excuse.
func fetchThroughReload(t *testing.T, client *http.Client, url string) (answer, error) {
	for tries := 1; ; tries++ {
		reused := false
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
			GotConn: func(info httptrace.GotConnInfo) { reused = info.Reused },
		})
		a, err := fetch(ctx, client, url)
		if err == nil || reused || tries == 5 || t.Context().Err() != nil {
			return a, err
		}
		t.Logf("a new connection failed: %v", err)
	}
}

// A config that is refused must leave no trace, at whatever stage it is.
func TestFailedReloadLeavesLocksAlone(t *testing.T) {
	const good = `{
	admin ADMIN
	default_bind 127.0.0.1
}
http://SITE {
	lock_gateway {
		backend memory {
			name one
			max_locks 3
		}
		max_wait 1h
		max_waiters 2
	}
}
`
	// Settings that must not come into force are tighter than the good ones.
	tight := strings.NewReplacer("max_locks 3", "max_locks 1", "max_waiters 2", "max_waiters 1").Replace(good)

	s := startServer(t, good, nil)
	s.take("1/a", "")
	s.take("1/b", "holder=keeper")
	s.take("1/c", "")
	first := s.queue("1/a", "")
	s.awaitWaiting("1/a", 1)
	second := s.queue("1/a", "")
	s.awaitWaiting("1/a", 2)
	held := s.state("1/b")

	// Unlike Caddy this listener does not share its port.
	occupier, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer occupier.Close()
	occupied := occupier.Addr().String()

	for _, test := range []struct {
		name   string
		config string            // a Caddyfile
		edit   *strings.Replacer // what to change in its JSON, which is then loaded
		want   string            // in the output
	}{
		{
			name:   "does not adapt",
			config: strings.Replace(tight, "max_locks 1", "max_locks 0", 1),
			want:   `max_locks: \"0\" is not a positive number`,
		},
		{
			name:   "a handler's setting is invalid",
			config: tight,
			edit:   strings.NewReplacer(`"max_wait":3600000000000`, `"max_wait":-1`),
			want:   "max_wait is negative",
		},
		{
			name:   "a backend's setting is invalid",
			config: tight,
			edit:   strings.NewReplacer(`"max_locks":1`, `"max_locks":-1`),
			want:   "max_locks is negative",
		},
		{
			name:   "a module is unknown",
			config: tight,
			edit:   strings.NewReplacer(`"module":"memory"`, `"module":"nothing"`),
			want:   "nothing",
		},
		{
			name: "two handlers disagree",
			config: tight + `http://OTHER {
	lock_gateway {
		backend memory {
			name one
			max_locks 2
		}
	}
}
`,
			want: "give different settings",
		},
		{
			name:   "a port is taken",
			config: tight + "http://" + occupied + " {\n\tlock_gateway\n}\n",
			want:   "address already in use",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := s.within(t)
			path := s.writeConfig("Caddyfile", test.config)
			if test.edit != nil {
				path = s.adapt(path, test.edit)
			}
			out, err := s.load(path)
			if err == nil || !strings.Contains(out, test.want) {
				t.Fatalf("caddy reload: error %v, want one that tells %q:\n%s", err, test.want, out)
			}

			first.expectWaiting(t)
			second.expectWaiting(t)
			s.expect("/v1/1/a/value?detail=1", `{"value":1,"waiting":2}`)
			if now := s.state("1/b"); len(now.Holders) != 1 || now.Holders[0] != held.Holders[0] {
				t.Errorf("the named slot reads %+v, before %+v", now, held)
			}
			s.expectRefusal("/v1/1/d/acquire", "max_locks 3")
			s.expectRefusal("/v1/1/a/acquire?"+forLong, "max_waiters 2")
		})
	}

	for _, w := range []*waiter{first, second} {
		s.expect("/v1/1/a/release", `{"released":true}`)
		w.expectGrant(t)
	}
	s.expect("/v1/1/a/value?detail=1", `{"value":1,"waiting":0}`)
}

// adapt turns a Caddyfile into JSON, edits it and writes it to a file.
func (s *server) adapt(path string, edit *strings.Replacer) string {
	s.t.Helper()
	out, err := runCaddy(s.t, s.dir, "adapt", "--adapter", "caddyfile", "--config", path)
	if err != nil {
		s.t.Fatalf("caddy adapt: %v\n%s", err, out)
	}
	// The config is one line; besides it there can be log lines.
	for line := range strings.Lines(out) {
		if !strings.HasPrefix(line, `{"admin"`) {
			continue
		}
		edited := edit.Replace(line)
		if edited == line {
			s.t.Fatalf("nothing to edit in %s", line)
		}
		return s.writeConfig("config.json", edited)
	}
	s.t.Fatalf("no config in %s", out)
	return ""
}

func TestReloadThatRemovesTheBackendAnswersItsWaiters(t *testing.T) {
	const gone = `{
	admin ADMIN
	default_bind 127.0.0.1
}
http://SITE {
	respond /v1/* "nothing here"
}
`
	for _, test := range []struct {
		name, config, value string
	}{
		{"another backend", strings.Replace(beforeReload, "name one", "name two", 1), `{}`},
		{"no lock gateway", gone, "nothing here"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := startServer(t, beforeReload, nil)
			s.take("1/a", "")
			w := s.queue("1/a", "")
			s.awaitWaiting("1/a", 1)

			s.mustReload(test.config)
			w.expectClosing(t)
			s.expect("/v1/1/a/value", test.value)

			// The memory went with the last one who used it.
			s.mustReload(beforeReload)
			s.expect("/v1/1/a/value", `{}`)
			s.take("1/a", "")
			s.stop()
			s.expectExit()
		})
	}
}

package main_test

import (
	"strings"
	"testing"
)

const secretSettings = `{
	admin ADMIN
	default_bind 127.0.0.1
}
http://SITE {
	lock_gateway {
		hash_key top-secret
	}
}
http://OTHER {
	handle /etcd/* {
		uri strip_prefix /etcd
		lock_gateway {
			backend etcd {
				endpoints http://127.0.0.1:1
				username the-user
				password top-secret
			}
			max_wait 7m
		}
	}
	handle /nats/* {
		uri strip_prefix /nats
		lock_gateway {
			backend nats {
				servers nats://127.0.0.1:1
				username the-user
				password top-secret
			}
		}
	}
	handle {
		lock_gateway {
			backend nats {
				servers nats://127.0.0.1:1
				token top-secret
			}
		}
	}
}
`

func TestSettingsAreLoggedWithoutSecrets(t *testing.T) {
	t.Parallel()
	s := startServer(t, secretSettings, nil)
	s.take("1/secret-id", "")
	await(t, "all handlers are in the log", func() bool { return strings.Count(s.process.output(t), `"serving locks"`) == 4 })
	log := s.process.output(t)
	for _, want := range []string{`"backend":"memory"`, `"backend":"etcd"`, `"backend":"nats"`, "the-user", `"max_wait":420`, "REDACTED"} {
		if !strings.Contains(log, want) {
			t.Errorf("the log does not tell %q:\n%s", want, log)
		}
	}
	for _, secret := range []string{"top-secret", "secret-id"} {
		if strings.Contains(log, secret) {
			t.Errorf("the log has the secret %q:\n%s", secret, log)
		}
	}
}

func TestResetsAndLimitsAreLogged(t *testing.T) {
	t.Parallel()
	const limits = "lock_gateway {\n\t\tmax_waiters 1\n\t\thash_key a-key\n\t}"
	s := startServer(t, strings.Replace(onlySite, "lock_gateway", limits, 1), nil)
	s.take("1/secret-id", "")
	waiter := s.queue("1/secret-id", "waitTimeoutMs=600000")
	s.awaitWaiting("1/secret-id", 1)
	for range 3 {
		s.expectRefusal("/v1/1/secret-id/acquire?waitTimeoutMs=600000", "max_waiters")
	}
	s.expect("/v1/1/secret-id/reset", `{"reset":true}`)
	waiter.await(t)
	// What docs/operations.md makes of the id and the key.
	const reset = `"msg":"a lock was reset","lock_hash":"c3db2faae23d"`
	await(t, "the reset is in the log", func() bool { return strings.Contains(s.process.output(t), reset) })
	log := s.process.output(t)
	if n := strings.Count(log, `"limit":"max_waiters","max":1,"refused_since_the_last_line":1}`); n != 1 {
		t.Errorf("a limit that refuses three requests is logged %d times; want 1:\n%s", n, log)
	}
	if strings.Contains(log, "secret-id") {
		t.Errorf("the log has a lock's id:\n%s", log)
	}

	// Those who want it have it.
	s.mustReload(strings.Replace(onlySite, "lock_gateway", "lock_gateway {\n\t\tlog_lock_ids\n\t}", 1))
	s.expect("/v1/1/secret-id/reset", `{"reset":true}`)
	await(t, "the reset is in the log with the id", func() bool {
		return strings.Contains(s.process.output(t), `"msg":"a lock was reset","lock":"1/secret-id"`)
	})
}

package nats

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"go.uber.org/zap"

	"github.com/lockgateway/lockgateway/backends/replicated"
)

func TestKeysComeBackFromSubjects(t *testing.T) {
	for _, k := range []keyspace{newKeyspace("", "jobs"), newKeyspace("hub", "jobs")} {
		for _, key := range []string{"1/a", "9/a b.*>\n\x00🔒", strings.Repeat("x", 1200)} {
			if got, ours := k.lockKey(k.lock(key)); !ours || got != key {
				t.Errorf("%.20q came back as %.20q, ours: %t", key, got, ours)
			}
		}
		if got, ours := k.sessionID(k.session(1 << 63)); !ours || got != 1<<63 {
			t.Errorf("a session came back as %x, ours: %t", got, ours)
		}
		for _, subject := range []string{k.session(1), k.sweep(), k.prefix + "locks.a b", "$KV.other.locks.MS9h"} {
			if key, ours := k.lockKey(subject); ours {
				t.Errorf("%s is taken for the lock %q", subject, key)
			}
		}
		for _, subject := range []string{k.lock("1/a"), k.expiringKey(1), k.prefix + "sessions.x"} {
			if id, ours := k.sessionID(subject); ours {
				t.Errorf("%s is taken for the session %x", subject, id)
			}
		}
	}
}

// Each time that a lock comes it is written again, and so moves to the end.
func TestListEndsThoughAllIsRewritten(t *testing.T) {
	server, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(), NoSigs: true, NoLog: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	server.Start()
	defer func() {
		server.Shutdown()
		server.WaitForShutdown()
	}()
	s, err := Open(Options{
		Connection:     Connection{Servers: []string{server.ClientURL()}, DialTimeout: 10 * time.Second},
		Name:           "b",
		RequestTimeout: 10 * time.Second,
		SessionTTL:     time.Hour,
		ForgetAfter:    24 * time.Hour,
		Logger:         zap.NewNop(),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	write := func(key string) {
		t.Helper()
		if _, err := s.publish(ctx, message(s.keys.lock(key), []byte("x"), nil, 0)); err != nil {
			t.Fatal(err)
		}
	}
	const locks, settled = 20, "1/settled"
	for i := range locks {
		write(fmt.Sprint("1/", i))
	}
	write(settled)
	came := make(map[string]int)
	if err := s.Records(ctx, func(key string, _ replicated.Entry) bool {
		came[key]++
		if key != settled {
			write(key)
		}
		return true
	}); err != nil {
		t.Fatal(err)
	}
	if len(came) != locks+1 || came[settled] != 1 {
		t.Errorf("of %d locks these came, so often: %v", locks+1, came)
	}
	for key, n := range came {
		if n > 1+moreRounds {
			t.Errorf("%s came %d times", key, n)
		}
	}
}

// A server that does not answer for pages must not make a list fail before the leader
// was asked, which answers.
func TestListWithoutPagesAsksTheLeader(t *testing.T) {
	k := newKeyspace("", "b")
	_, s := storeAt(t, fmt.Sprintf(`{"message":{"subject":%q,"seq":5,"data":"eA=="}}`, k.lock("1/a")))
	options := *s.options.Load()
	options.RequestTimeout = 6 * time.Second // of which it waits a third for a page
	s.options.Store(&options)
	ctx, cancel := context.WithTimeout(t.Context(), options.RequestTimeout)
	defer cancel()
	var keys []string
	if err := s.Records(ctx, func(key string, _ replicated.Entry) bool {
		keys = append(keys, key)
		return true
	}); err != nil || !slices.Equal(keys, []string{"1/a"}) {
		t.Errorf("the list is %q, %v", keys, err)
	}
}

package embedded

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// Whoever is told that data cannot be read may empty the folder, so nothing else must
// be taken for it.
func TestWhatIsTakenForUnreadableData(t *testing.T) {
	for _, c := range []struct {
		problem server.HealthzError
		want    bool
	}{
		{server.HealthzError{Type: server.HealthzErrorStream, Error: "JetStream stream '$G > KV_locks' could not be recovered"}, true},
		{server.HealthzError{Type: server.HealthzErrorAccount, Error: "JetStream account 'x' could not be resolved"}, true},
		{server.HealthzError{Type: server.HealthzErrorStream, Error: "JetStream stream '$G > KV_locks' write error: no space left on device"}, false},
		{server.HealthzError{Type: server.HealthzErrorConn, Error: "failed to be ready for connections after 1ms: "}, false},
		{server.HealthzError{Type: server.HealthzErrorJetStream, Error: "JetStream not enabled"}, false},
	} {
		if got := unread(c.problem); got != c.want {
			t.Errorf("%q: %v; want %v", c.problem.Error, got, c.want)
		}
	}
}

func TestWhenANodeIsCurrent(t *testing.T) {
	behind := server.HealthzError{Type: server.HealthzErrorStream, Stream: "KV_locks", Error: "stream catching up"}
	alone := server.HealthzError{Type: server.HealthzErrorJetStream, Error: "no contact with a leader"}
	for _, c := range []struct {
		name   string
		seen   *sight
		stream string
		want   bool
	}{
		{"NotSeenYet", nil, "KV_locks", false},
		{"Well", &sight{judged: time.Now()}, "KV_locks", true},
		{"TooLongAgo", &sight{judged: time.Now().Add(-2 * sightHolds)}, "KV_locks", false},
		{"CatchingUp", &sight{judged: time.Now(), problems: []server.HealthzError{behind}}, "KV_locks", false},
		{"AnotherCatchesUp", &sight{judged: time.Now(), problems: []server.HealthzError{behind}}, "KV_others", true},
		{"AnyCatchesUp", &sight{judged: time.Now(), problems: []server.HealthzError{behind}}, "", false},
		{"Alone", &sight{judged: time.Now(), problems: []server.HealthzError{alone}}, "KV_locks", false},
	} {
		if err := c.seen.current(c.stream); (err == nil) != c.want {
			t.Errorf("%s: the error is %v; want it to be current: %v", c.name, err, c.want)
		}
	}
	if untold([]server.HealthzError{behind}) || !untold([]server.HealthzError{alone}) {
		t.Error("a stream that is behind is taken for one that nothing is said of, or the other way round")
	}
}

// A node of a cluster is not current before it has found the others. One that is
// alone always is.
func TestNodeWithoutOthersIsNotCurrent(t *testing.T) {
	single := startNode(t, serverSettings{dir: t.TempDir(), given: true})
	if err := single.Current("KV_locks"); err != nil {
		t.Errorf("a server that is alone is not current: %v", err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	c := &Cluster{Name: "c", Node: "n", Listen: address, Routes: []string{"127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"}}
	n := startNode(t, serverSettings{dir: t.TempDir(), given: true, cluster: c})
	for n.seen.Load() == nil {
		time.Sleep(10 * time.Millisecond)
	}
	if err := n.Current("KV_locks"); err == nil {
		t.Errorf("a node without others is current; it was told %v", n.seen.Load().problems)
	}
}

// The log tells of each change once, also of one that is a matter of time.
func TestLogTellsWhetherANodeIsCurrent(t *testing.T) {
	core, logs := observer.New(zap.InfoLevel)
	n := &node{settings: serverSettings{cluster: &Cluster{}}, ctx: t.Context()}
	n.logger.Store(zap.New(core))
	fresh, behind := &sight{judged: time.Now()}, &sight{judged: time.Now(), problems: []server.HealthzError{{Error: "it lags"}}}
	old := &sight{judged: time.Now().Add(-2 * sightHolds)}
	for _, now := range []*sight{behind, fresh, fresh, old, old, fresh, behind} {
		n.tellCurrent(now)
	}
	var levels []string
	for _, entry := range logs.All() {
		levels = append(levels, entry.Level.String())
	}
	if got := strings.Join(levels, " "); got != "info warn info warn" {
		t.Errorf("the log has %v: %v", got, logs.All())
	}
}

package embedded

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	_ "github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/nats-io/nats-server/v2/server"
	"go.uber.org/goleak"

	_ "github.com/lockgateway/lockgateway/caddymodule"
)

func TestMain(m *testing.M) {
	// It ends by itself, seconds after the lock that it is about.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/caddyserver/certmagic.keepLockfileFresh"))
}

func adapt(block string) (string, error) {
	text := ":8080 {\n lock_gateway {\n  backend nats {\n   embedded " + block + "\n  }\n }\n}\n"
	adapted, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(text), map[string]any{"filename": "Caddyfile"})
	return string(adapted), err
}

const three = "routes a:1 b:1 c:1"

func TestCaddyfileAdaptsToJSON(t *testing.T) {
	for block, want := range map[string]string{
		"": `{}`,
		"{\n dir /srv/locks\n sync_interval 10s\n}": `{"dir":"/srv/locks","sync_interval":"10s"}`,
		"{\n cluster {\n name n\n node {env.HOST}\n listen :1\n " + three + "\n secret {file./run/s}\n tls {\n ca ca.pem\n cert c.pem\n key k.pem\n}\n insecure\n}\n}": `{"cluster":{"insecure":true,"listen":":1",
			"name":"n","node":"{env.HOST}","routes":["a:1","b:1","c:1"],"secret":"{file./run/s}",
			"tls":{"ca":"ca.pem","cert":"c.pem","key":"k.pem"}}}`,
	} {
		adapted, err := adapt(block)
		if err != nil {
			t.Errorf("%s\ngave the error %v", block, err)
			continue
		}
		if want = strings.Join(strings.Fields(want), ""); !strings.Contains(adapted, `"embedded":`+want) {
			t.Errorf("%s\nadapts to %s\nwithout %s", block, adapted, want)
		}
	}
}

// embedded is in the fourth line, where settings are missed.
func TestBadCaddyfileNamesLineAndSetting(t *testing.T) {
	cluster := func(settings string) string {
		return "{\n cluster {\n node a\n " + settings + "\n}\n}"
	}
	for _, c := range []struct {
		block string
		line  int
		want  string
	}{
		{"here", 4, "here"},
		{"{\n store x\n}", 5, `"store"`},
		{"{\n dir\n}", 5, "dir takes one value"},
		{"{\n dir a\n dir b\n}", 6, "dir is given twice"},
		{"{\n sync_interval never\n}", 5, "sync_interval"},
		{"{\n sync_interval 0s\n}", 5, "sync_interval"},
		{"{\n cluster east\n}", 5, "east"},
		{"{\n cluster {\n " + three + "\n}\n}", 4, "cluster node"},
		{cluster("name a.b\n" + three), 7, "cluster name"},
		{cluster("routes"), 7, "routes takes"},
		{cluster(""), 4, "cluster routes: name the hosts and ports of all nodes"},
		{cluster("routes a:1 b:1"), 7, "two nodes are worse than one"},
		{cluster("routes a:1 b:1 c:1 d:1"), 7, "four nodes are no better than three"},
		{cluster("routes a:1 b:1 b:1"), 7, "twice"},
		{cluster("routes a:1 b:1 c"), 7, "is no host and port"},
		{cluster("routes a:1 b:1 :1"), 7, "is no host and port"},
		{cluster(three + "\n listen 6222"), 8, "cluster listen"},
		{cluster(three + "\n secret short"), 8, "16 characters"},
		{cluster(three), 4, "cluster secret: there is none, and not all addresses are of this machine"},
		{cluster("listen 127.0.0.1:1\n routes 127.0.0.1:1 localhost:2 10.0.0.1:1"), 4, "cluster secret"},
		{cluster("routes 127.0.0.1:1 127.0.0.1:2 127.0.0.1:3"), 4, "cluster secret"}, // it listens everywhere
		{cluster(three + "\n secret 0123456789abcdef"), 4, "cluster tls: there is none, and not all addresses are of this machine"},
		{cluster(three + "\n tls {\n ca a\n}"), 8, "cluster tls: it needs ca, cert and key"},
		{cluster(three + "\n tls {\n server_name a\n}"), 9, `"server_name"`},
		{cluster(three + "\n insecure yes"), 8, "yes"},
		{cluster(three + "\n replicas 3"), 8, `"replicas"`},
	} {
		_, err := adapt(c.block)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), fmt.Sprintf("Caddyfile:%d", c.line)) {
			t.Errorf("%s\ngave the error %v\nwant one that names Caddyfile:%d and %q", c.block, err, c.line, c.want)
		}
	}
}

// Settings that are for servers elsewhere do not go with it.
func TestSettingsForServersElsewhereAreRefused(t *testing.T) {
	for setting, block := range map[string]string{
		"servers":     "servers a",
		"credentials": "credentials a",
		"nkey":        "nkey a",
		"username":    "username a\n password b",
		"token":       "token a",
		"tls":         "tls",
		"domain":      "domain a",
		"placement":   "placement {\n tags a\n}",
		"storage":     "storage memory",
	} {
		text := ":8080 {\n lock_gateway {\n  backend nats {\n   embedded\n   " + block + "\n  }\n }\n}\n"
		_, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(text), map[string]any{"filename": "Caddyfile"})
		if err == nil || !strings.Contains(err.Error(), setting+": ") || !strings.Contains(err.Error(), "Caddyfile:5") {
			t.Errorf("%s gave the error %v", block, err)
		}
	}
}

func TestLoopbackNeedsNeitherSecretNorTLS(t *testing.T) {
	c := &Cluster{Node: "a", Listen: "127.0.0.1:1", Routes: []string{"127.0.0.1:1", "localhost:2", "[::1]:3"}}
	if problem := c.check(); problem != nil {
		t.Error(problem)
	}
	c.Listen = ":1"
	c.Insecure = true
	if problem := c.check(); problem != nil {
		t.Error(problem)
	}
}

// run runs a config whose one site has the given embedded servers, until the
// returned function is called.
func run(t *testing.T, embedded ...string) (stop func(), err error) {
	t.Helper()
	return func() {
		if err := caddy.Stop(); err != nil {
			t.Error(err)
		}
	}, caddy.Load(config(embedded...), true)
}

// config has a handler for each of the embedded servers. Its listener is a socket in
// a folder that does not outlive the test.
func config(embedded ...string) []byte {
	var routes []string
	for i, e := range embedded {
		routes = append(routes, fmt.Sprintf(`{"handle":[{"handler":"lock_gateway","backend":{"module":"nats","bucket":"b%d","embedded":%s}}]}`, i, e))
	}
	return []byte(`{"admin":{"disabled":true},"logging":{"logs":{"default":{"writer":{"output":"discard"}}}},"apps":{"http":{"servers":{"s":{
		"listen":["127.0.0.1:0"],"automatic_https":{"disable":true},"routes":[` + strings.Join(routes, ",") + `]}}}}}`)
}

func quote(text string) string {
	quoted, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(quoted)
}

// A reload that changes no setting keeps the server; one that does is refused, and
// changes nothing.
func TestReloadKeepsTheServer(t *testing.T) {
	dir := quote(t.TempDir())
	stop, err := run(t, `{"dir":`+dir+`}`)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	of := func() *server.Server {
		t.Helper()
		var servers []*server.Server
		nodes.Range(func(_, value any) bool {
			n := value.(*node)
			n.mu.Lock()
			servers = append(servers, n.server)
			n.mu.Unlock()
			return true
		})
		if len(servers) != 1 {
			t.Fatalf("there are the servers %v", servers)
		}
		return servers[0]
	}
	first := of()
	// Another handler, and other words for the same.
	if err := caddy.Load(config(`{"dir":`+dir+`}`, `{"dir":`+dir+`,"sync_interval":"always"}`), true); err != nil {
		t.Fatal(err)
	}
	if of() != first {
		t.Error("the reload has replaced the server")
	}
	// A server that is stopped while it makes a bucket leaves a goroutine behind.
	for made := 0; made < 2; time.Sleep(time.Millisecond) {
		info, err := first.Jsz(nil)
		if err != nil {
			t.Fatal(err)
		}
		made = info.Streams
	}
	for settings, want := range map[string]string{
		`{"dir":` + dir + `,"sync_interval":"1s"}`: "sync_interval",
		`{"dir":` + dir + `,"cluster":{"node":"a","listen":"127.0.0.1:6222","routes":["127.0.0.1:6222","127.0.0.1:6223","127.0.0.1:6224"]}}`: "cluster",
	} {
		err := caddy.Load(config(settings), true)
		if err == nil || !strings.Contains(err.Error(), "embedded: "+want+": the server in "+strings.Trim(dir, `"`)+" runs") {
			t.Errorf("a reload to %s gave the error %v; want one that names %s", settings, err, want)
		}
		if of() != first {
			t.Fatal("the refused reload has replaced the server")
		}
	}
}

// A config can be validated while another process owns the data, and leaves nothing
// behind.
func TestValidationStartsNothing(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_DATA_HOME", dir)
	var c caddy.Config
	if err := json.Unmarshal(config(`{}`), &c); err != nil {
		t.Fatal(err)
	}
	if err := caddy.Validate(&c); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "caddy", "lock_gateway")); !os.IsNotExist(err) {
		t.Errorf("validation has made files: %v", err)
	}
}

func TestChangedSettingsAreNamed(t *testing.T) {
	a := serverSettings{cluster: &Cluster{Name: "a", Node: "a", Listen: "a", Routes: []string{"a", "b"}, Secret: "a"}}
	same := serverSettings{cluster: &Cluster{Name: "a", Node: "a", Listen: "a", Routes: []string{"b", "a"}, Secret: "a"}}
	if d := a.differences(same); d != "" {
		t.Errorf("%s differs", d)
	}
	other := serverSettings{syncInterval: 1, cluster: &Cluster{Name: "b", Node: "b", Listen: "b", Routes: []string{"a"}, Secret: "b", TLS: new(TLS), Insecure: true}}
	const want = "sync_interval, cluster name, cluster node, cluster listen, cluster routes, cluster secret, cluster tls, cluster insecure"
	if d := a.differences(other); d != want {
		t.Errorf("%s differ; want %s", d, want)
	}
}

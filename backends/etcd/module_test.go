package etcd

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	_ "github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"

	_ "github.com/lockgateway/lockgateway/caddymodule"
)

func adapt(block string) ([]byte, error) {
	text := ":8080 {\n lock_gateway {\n  backend etcd " + block + "\n }\n}\n"
	adapted, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(text), map[string]any{"filename": "Caddyfile"})
	return adapted, err
}

func TestCaddyfileAdaptsToJSON(t *testing.T) {
	for block, want := range map[string]string{
		"{\n endpoints http://a:2379\n}":                             `{"endpoints":["http://a:2379"]}`,
		"{\n endpoints a:2379 b:2379 {env.C}\n prefix /jobs\n}":      `{"endpoints":["a:2379","b:2379","{env.C}"],"prefix":"/jobs"}`,
		"{\n discovery_srv example.com\n}":                           `{"discovery_srv":"example.com"}`,
		"{\n endpoints a:1\n username u\n password {file./run/p}\n}": `{"endpoints":["a:1"],"username":"u","password":"{file./run/p}"}`,
		"{\n endpoints a:1\n tls\n}":                                 `{"endpoints":["a:1"],"tls":{}}`,
		"{\n endpoints a:1\n tls {\n ca ca.pem\n cert c.pem\n key k.pem\n server_name etcd\n}\n}": `{"endpoints":["a:1"],
			"tls":{"ca":"ca.pem","cert":"c.pem","key":"k.pem","server_name":"etcd"}}`,
		"{\n endpoints a:1\n dial_timeout 1s\n request_timeout 2s\n keepalive_time 30s\n keepalive_timeout 4s\n session_ttl 5s\n forget_after 1d\n}": `{"endpoints":["a:1"],
			"dial_timeout":1000000000,"request_timeout":2000000000,"keepalive_time":30000000000,"keepalive_timeout":4000000000,
			"session_ttl":5000000000,"forget_after":86400000000000}`,
	} {
		adapted, err := adapt(block)
		if err != nil {
			t.Errorf("%s\ngave the error %v", block, err)
			continue
		}
		var compact strings.Builder
		for part := range strings.FieldsSeq(want) {
			compact.WriteString(part)
		}
		var wanted, got map[string]any
		if err := json.Unmarshal([]byte(compact.String()), &wanted); err != nil {
			t.Fatal(err)
		}
		wanted["module"] = "etcd"
		var config struct {
			Apps struct {
				HTTP struct {
					Servers map[string]struct {
						Routes []struct {
							Handle []struct{ Backend json.RawMessage }
						}
					}
				}
			}
		}
		if err := json.Unmarshal(adapted, &config); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(config.Apps.HTTP.Servers["srv0"].Routes[0].Handle[0].Backend, &got); err != nil {
			t.Fatal(err)
		}
		if fmt.Sprint(got) != fmt.Sprint(wanted) {
			t.Errorf("%s\nadapts to %v\nwant      %v", block, got, wanted)
		}
	}
}

// The backend is in the third line.
func TestBadCaddyfileNamesLineAndSetting(t *testing.T) {
	for _, c := range []struct {
		block string
		line  int
		want  string
	}{
		{"", 3, "endpoints: there are none"},
		{"a:2379", 3, "a:2379"},
		{"{\n prefix /jobs\n}", 3, "discovery_srv"},
		{"{\n endpoints\n}", 4, "endpoints takes one URL or more"},
		{"{\n endpoints a:1\n endpoints b:1\n}", 5, "endpoints is given twice"},
		{"{\n endpoints a\n}", 4, "host and port"},
		{"{\n endpoints :2379\n}", 4, "host and port"},
		{"{\n endpoints a:0\n}", 4, "host and port"},
		{"{\n endpoints http://a\n}", 4, "host and port"},
		{"{\n endpoints unix://a:1\n}", 4, "neither http nor https"},
		{"{\n endpoints http://u:p@a:1\n}", 4, "username and password"},
		{"{\n endpoints http://a:1/v3\n}", 4, "more than scheme"},
		{"{\n prefix /jobs\n endpoints http://a:1 https://b:1\n}", 5, "all https, or all http"},
		{"{\n endpoints a:1 https://b:1\n}", 4, "all https, or all http"},
		{"{\n endpoints a:1\n discovery_srv example.com\n}", 5, "leave one of them out"},
		{"{\n endpoints http://a:1\n tls {\n ca ca.pem\n}\n}", 5, "make it https"},
		{"{\n endpoints a:1\n tls yes\n}", 5, "yes"},
		{"{\n endpoints a:1\n tls {\n insecure\n}\n}", 6, "insecure"},
		{"{\n endpoints a:1\n tls {\n cert c.pem\n}\n}", 6, "no key in tls"},
		{"{\n endpoints a:1\n tls {\n key k.pem\n}\n}", 6, "no cert in tls"},
		{"{\n password p\n endpoints a:1\n}", 4, "no username"},
		{"{\n endpoints a:1\n username u\n}", 5, "no password"},
		{"{\n endpoints a:1\n prefix\n}", 5, "prefix takes one value"},
		{"{\n endpoints a:1\n prefix /a/locks/b\n}", 5, "another word"},
		{"{\n endpoints a:1\n dial_timeout soon\n}", 5, "dial_timeout"},
		{"{\n endpoints a:1\n request_timeout 0\n}", 5, "request_timeout"},
		{"{\n endpoints a:1\n keepalive_time 5s\n}", 5, "10s"},
		{"{\n endpoints a:1\n keepalive_timeout -1s\n}", 5, "keepalive_timeout"},
		{"{\n endpoints a:1\n session_ttl 1s\n}", 5, "2s"},
		{"{\n endpoints a:1\n forget_after 1m\n}", 5, "10m"},
		{"{\n endpoints a:1\n timeout 1m\n}", 5, `"timeout"`},
	} {
		_, err := adapt(c.block)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), fmt.Sprintf("Caddyfile:%d", c.line)) {
			t.Errorf("%s\ngave the error %v\nwant one that names Caddyfile:%d and %q", c.block, err, c.line, c.want)
		}
	}
}

func load(t *testing.T, settings string) (*Module, error) {
	t.Helper()
	ctx, cancel := caddy.NewContext(caddy.Context{Context: t.Context()})
	defer cancel()
	loaded, err := ctx.LoadModuleByID("http.lock_gateway.backends.etcd", json.RawMessage(settings))
	if err != nil {
		return nil, err
	}
	return loaded.(*Module), nil
}

func TestBadJSONNamesTheSetting(t *testing.T) {
	for settings, want := range map[string]string{
		`{}`:                              "endpoints",
		`{"endpoints":["a"]}`:             "endpoints",
		`{"endpoint":["a:1"]}`:            "endpoint",
		`{"endpoints":["{env.NO_SUCH}"]}`: "endpoints: evaluated placeholder {env.NO_SUCH} is empty",
		`{"endpoints":["a:1"],"password":"{env.NO_SUCH}","username":"u"}`: "password",
		`{"endpoints":["a:1"],"username":"{no.such}","password":"p"}`:     "username",
		`{"endpoints":["a:1"],"prefix":"{env.NO_SUCH}"}`:                  "prefix",
		`{"discovery_srv":"{env.NO_SUCH}"}`:                               "discovery_srv",
		`{"endpoints":["a:1"],"tls":{"ca":"{env.NO_SUCH}"}}`:              "tls ca",
		`{"endpoints":["a:1"],"tls":{"ca":"no-such.pem"}}`:                "tls ca: open no-such.pem",
		`{"endpoints":["a:1"],"tls":{"ca":"module_test.go"}}`:             "tls ca: module_test.go has no certificate",
		`{"endpoints":["a:1"],"tls":{"cert":"no.pem","key":"no.pem"}}`:    "tls cert and key: open no.pem",
		`{"endpoints":["a:1"],"dial_timeout":-1}`:                         "dial_timeout",
		`{"endpoints":["a:1"],"request_timeout":-1}`:                      "request_timeout",
		`{"endpoints":["a:1"],"keepalive_timeout":-1}`:                    "keepalive_timeout",
		`{"endpoints":["a:1"],"keepalive_time":"9s"}`:                     "keepalive_time",
		`{"endpoints":["a:1"],"session_ttl":"1s"}`:                        "session_ttl",
		`{"endpoints":["a:1"],"forget_after":"9m"}`:                       "forget_after",
	} {
		_, err := load(t, settings)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s gave the error %v; want one that names %s", settings, err, want)
		}
	}
}

func TestPlaceholdersAreFilledIn(t *testing.T) {
	t.Setenv("ETCD", "etcd-1:2379")
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("pass{word}"), 0o600); err != nil {
		t.Fatal(err)
	}
	m, err := load(t, `{"endpoints":["{env.ETCD}"],"prefix":"/of-{env.ETCD}/","username":"u","password":"{file.`+secret+`}"}`)
	if err != nil {
		t.Fatal(err)
	}
	o := m.options()
	if got := o.Endpoints[0]; got != "http://etcd-1:2379" {
		t.Errorf("the endpoint is %q", got)
	}
	if o.Prefix != "/of-etcd-1:2379" || o.Password != "pass{word}" {
		t.Errorf("the prefix is %q, the password %q", o.Prefix, o.Password)
	}
}

func TestDataNameIsThatOfTheDataAlone(t *testing.T) {
	groups := map[string][]string{
		"http://a:1,http://b:1 /lockgateway": {
			`{"endpoints":["a:1","b:1"]}`,
			`{"endpoints":["http://b:1","A:1/","a:1"]}`,
			`{"endpoints":["b:1","a:1"],"prefix":"/lockgateway//"}`,
			`{"endpoints":["b:1","a:1"],"username":"u","password":"p","dial_timeout":"1s","request_timeout":"1s",
				"keepalive_time":"11s","keepalive_timeout":"1s","session_ttl":"3s","forget_after":"2h"}`,
		},
		"http://a:1 /lockgateway":      {`{"endpoints":["a:1"]}`},
		"https://a:1 /lockgateway":     {`{"endpoints":["a:1"],"tls":{}}`, `{"endpoints":["https://a:1"]}`, `{"endpoints":["https://a:1"],"tls":{"server_name":"b"}}`},
		"http://a:1 /jobs":             {`{"endpoints":["a:1"],"prefix":"/jobs"}`},
		"http://a:1 ":                  {`{"endpoints":["a:1"],"prefix":"/"}`},
		"srv example.com /lockgateway": {`{"discovery_srv":"example.com"}`, `{"discovery_srv":"example.com","tls":{}}`},
	}
	for _, want := range slices.Sorted(maps.Keys(groups)) {
		for _, settings := range groups[want] {
			m, err := load(t, settings)
			if err != nil {
				t.Errorf("%s: %v", settings, err)
			} else if got := m.DataName(); got != want {
				t.Errorf("the data of %s is called %q; want %q", settings, got, want)
			}
		}
	}
}

// There is no server; loading a config must not need one.
func TestOpenDoesNotWait(t *testing.T) {
	m, err := load(t, `{"endpoints":["127.0.0.1:9"],"username":"u","password":"p"}`)
	if err != nil {
		t.Fatal(err)
	}
	backend, err := m.Open()
	if err != nil {
		t.Fatal(err)
	}
	m.RequestTimeout *= 2
	m.Password = "q"
	m.Configure(backend)
	if err := backend.Close(); err != nil {
		t.Error(err)
	}
}

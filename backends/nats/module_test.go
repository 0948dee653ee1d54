package nats

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
	text := ":8080 {\n lock_gateway {\n  backend nats " + block + "\n }\n}\n"
	adapted, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(text), map[string]any{"filename": "Caddyfile"})
	return adapted, err
}

func TestCaddyfileAdaptsToJSON(t *testing.T) {
	for block, want := range map[string]string{
		"{\n servers nats://a:4222\n}":                           `{"servers":["nats://a:4222"]}`,
		"{\n servers a b:4223 {env.C}\n bucket jobs\n}":          `{"servers":["a","b:4223","{env.C}"],"bucket":"jobs"}`,
		"{\n servers a\n username u\n password {file./run/p}\n}": `{"servers":["a"],"username":"u","password":"{file./run/p}"}`,
		"{\n servers a\n credentials a.creds\n domain hub\n}":    `{"servers":["a"],"credentials":"a.creds","domain":"hub"}`,
		"{\n servers a\n nkey a.nk\n}":                           `{"servers":["a"],"nkey":"a.nk"}`,
		"{\n servers a\n token {env.T}\n}":                       `{"servers":["a"],"token":"{env.T}"}`,
		"{\n servers a\n tls\n}":                                 `{"servers":["a"],"tls":{}}`,
		"{\n servers a\n tls {\n ca ca.pem\n cert c.pem\n key k.pem\n server_name nats\n}\n}": `{"servers":["a"],
			"tls":{"ca":"ca.pem","cert":"c.pem","key":"k.pem","server_name":"nats"}}`,
		"{\n servers a\n replicas 3\n storage memory\n max_bytes 1KiB\n placement {\n cluster east\n tags ssd big\n}\n}": `{"servers":["a"],
			"replicas":3,"storage":"memory","max_bytes":1024,"placement":{"cluster":"east","tags":["ssd","big"]}}`,
		"{\n servers a\n dial_timeout 1s\n request_timeout 2s\n session_ttl 5s\n forget_after 1d\n}": `{"servers":["a"],
			"dial_timeout":1000000000,"request_timeout":2000000000,"session_ttl":5000000000,"forget_after":86400000000000}`,
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
		wanted["module"] = "nats"
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
		{"", 3, "servers: there are none"},
		{"a:4222", 3, "a:4222"},
		{"{\n bucket jobs\n}", 3, "servers"},
		{"{\n servers\n}", 4, "servers takes one URL or more"},
		{"{\n servers a\n servers b\n}", 5, "servers is given twice"},
		{"{\n servers :4222\n}", 4, "host and port"},
		{"{\n servers a:0\n}", 4, "host and port"},
		{"{\n servers http://a:1\n}", 4, "none of nats, tls"},
		{"{\n servers nats://u:p@a:1\n}", 4, "username, password and token"},
		{"{\n servers a\n bucket a.b\n}", 5, "bucket"},
		{"{\n servers a\n domain a.b\n}", 5, "domain"},
		{"{\n servers a\n replicas 6\n}", 5, "1 to 5"},
		{"{\n servers a\n replicas 0\n}", 5, "replicas"},
		{"{\n servers a\n storage tape\n}", 5, "file or memory"},
		{"{\n servers a\n max_bytes lots\n}", 5, "max_bytes"},
		{"{\n servers a\n max_bytes 0\n}", 5, "max_bytes"},
		{"{\n servers a\n placement\n}", 5, "neither cluster nor tags"},
		{"{\n servers a\n placement {\n rack 1\n}\n}", 6, "rack"},
		{"{\n servers a\n placement {\n tags\n}\n}", 6, "tags takes one tag or more"},
		{"{\n servers a\n tls yes\n}", 5, "yes"},
		{"{\n servers a\n tls {\n insecure\n}\n}", 6, "insecure"},
		{"{\n servers a\n tls {\n cert c.pem\n}\n}", 6, "no key in tls"},
		{"{\n servers a\n tls {\n key k.pem\n}\n}", 6, "no cert in tls"},
		{"{\n password p\n servers a\n}", 4, "no username"},
		{"{\n servers a\n username u\n}", 5, "no password"},
		{"{\n servers a\n token t\n nkey n\n}", 5, "there is nkey, too"},
		{"{\n servers a\n nkey n\n credentials c\n}", 5, "there is credentials, too"},
		{"{\n servers a\n dial_timeout soon\n}", 5, "dial_timeout"},
		{"{\n servers a\n request_timeout 0\n}", 5, "request_timeout"},
		{"{\n servers a\n session_ttl 1s\n}", 5, "2s"},
		{"{\n servers a\n forget_after 1m\n}", 5, "10m"},
		{"{\n servers a\n timeout 1m\n}", 5, `"timeout"`},
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
	loaded, err := ctx.LoadModuleByID("http.lock_gateway.backends.nats", json.RawMessage(settings))
	if err != nil {
		return nil, err
	}
	return loaded.(*Module), nil
}

func TestBadJSONNamesTheSetting(t *testing.T) {
	for settings, want := range map[string]string{
		`{}`:                            "servers",
		`{"servers":[":1"]}`:            "servers",
		`{"server":["a"]}`:              "server",
		`{"servers":["{env.NO_SUCH}"]}`: "servers: evaluated placeholder {env.NO_SUCH} is empty",
		`{"servers":["a"],"password":"{env.NO_SUCH}","username":"u"}`: "password",
		`{"servers":["a"],"username":"{no.such}","password":"p"}`:     "username",
		`{"servers":["a"],"bucket":"{env.NO_SUCH}"}`:                  "bucket",
		`{"servers":["a"],"token":"{env.NO_SUCH}"}`:                   "token",
		`{"servers":["a"],"placement":{"tags":["{env.NO_SUCH}"]}}`:    "placement tags",
		`{"servers":["a"],"tls":{"ca":"{env.NO_SUCH}"}}`:              "tls ca",
		`{"servers":["a"],"tls":{"ca":"no-such.pem"}}`:                "tls ca: open no-such.pem",
		`{"servers":["a"],"tls":{"ca":"module_test.go"}}`:             "tls ca: module_test.go has no certificate",
		`{"servers":["a"],"tls":{"cert":"no.pem","key":"no.pem"}}`:    "tls cert and key: open no.pem",
		`{"servers":["a"],"credentials":"no.creds"}`:                  "credentials: open no.creds",
		`{"servers":["a"],"credentials":"module_test.go"}`:            "credentials: module_test.go has no JWT",
		`{"servers":["a"],"nkey":"no.nk"}`:                            "nkey",
		`{"servers":["a"],"replicas":-1}`:                             "replicas",
		`{"servers":["a"],"max_bytes":-1}`:                            "max_bytes",
		`{"servers":["a"],"dial_timeout":-1}`:                         "dial_timeout",
		`{"servers":["a"],"request_timeout":-1}`:                      "request_timeout",
		`{"servers":["a"],"session_ttl":"1s"}`:                        "session_ttl",
		`{"servers":["a"],"forget_after":"9m"}`:                       "forget_after",
	} {
		_, err := load(t, settings)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s gave the error %v; want one that names %s", settings, err, want)
		}
	}
}

func TestPlaceholdersAreFilledIn(t *testing.T) {
	t.Setenv("NATS", "nats-1")
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("pass{word}"), 0o600); err != nil {
		t.Fatal(err)
	}
	m, err := load(t, `{"servers":["{env.NATS}"],"bucket":"of-{env.NATS}","username":"u","password":"{file.`+secret+`}","storage":"memory"}`)
	if err != nil {
		t.Fatal(err)
	}
	o := m.options()
	if got := o.Servers[0]; got != "nats://nats-1:4222" {
		t.Errorf("the server is %q", got)
	}
	if o.Name != "of-nats-1" || o.Password != "pass{word}" || !o.Memory {
		t.Errorf("the bucket is %q, the password %q, in memory %v", o.Name, o.Password, o.Memory)
	}
}

func TestDataNameIsThatOfTheDataAlone(t *testing.T) {
	groups := map[string][]string{
		"nats://a:4222,nats://b:4222  lockgateway ": {
			`{"servers":["a","b"]}`,
			`{"servers":["nats://b:4222","A/","a:4222"]}`,
			`{"servers":["b","a"],"dial_timeout":"1s","request_timeout":"1s",
				"session_ttl":"3s","forget_after":"2h","replicas":3,"max_bytes":5,"storage":"memory"}`,
		},
		"nats://a:4222  lockgateway ":    {`{"servers":["a"]}`, `{"servers":["a"],"tls":{}}`},
		"tls://a:4222  lockgateway ":     {`{"servers":["tls://a"]}`},
		"nats://a:4222  jobs ":           {`{"servers":["a"],"bucket":"jobs"}`},
		"nats://a:4222 hub lockgateway ": {`{"servers":["a"],"domain":"hub"}`},
		"ws://a:80  lockgateway ":        {`{"servers":["ws://a:80"]}`},
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

func TestEmbeddedServerMustBeInTheBuild(t *testing.T) {
	const want = "embedded: this Caddy is built without a NATS server; build it with"
	if _, err := adapt("{\n embedded\n}"); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "Caddyfile:4") {
		t.Errorf("the Caddyfile gave the error %v; want one with Caddyfile:4 and %q", err, want)
	}
	if _, err := load(t, `{"embedded":{}}`); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("the JSON gave the error %v; want one with %q", err, want)
	}
}

// There is no server; loading a config must not need one.
func TestOpenDoesNotWait(t *testing.T) {
	m, err := load(t, `{"servers":["127.0.0.1:9"],"username":"u","password":"p"}`)
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

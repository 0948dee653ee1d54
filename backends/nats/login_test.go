package nats

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/nats-io/nkeys"
)

// Users may be of accounts that have a bucket each. Whoever is the same user after
// a password or credentials were renewed keeps the data.
func TestDataNameTellsAccountsApart(t *testing.T) {
	dir := t.TempDir()
	file := func(name, contents string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(contents), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	user := func(name string) (path, public string) {
		pair, err := nkeys.CreateUser()
		if err != nil {
			t.Fatal(err)
		}
		seed, err := pair.Seed()
		if err != nil {
			t.Fatal(err)
		}
		if public, err = pair.PublicKey(); err != nil {
			t.Fatal(err)
		}
		return file(name, string(seed)), public
	}
	credentials := func(name, claims string) string {
		_, seedOf := user(name + ".seed")
		token := "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + "." + seedOf
		seed, err := os.ReadFile(filepath.Join(dir, name+".seed"))
		if err != nil {
			t.Fatal(err)
		}
		return file(name, "-----BEGIN NATS USER JWT-----\n"+token+"\n------END NATS USER JWT------\n\n"+
			"-----BEGIN USER NKEY SEED-----\n"+string(seed)+"\n------END USER NKEY SEED------\n")
	}
	first, firstKey := user("first.nk")
	second, secondKey := user("second.nk")
	const secret = "hidden-from-names"
	seedForm := regexp.MustCompile(`\bSU`) // a public key may have these letters further on
	seen := make(map[string]string)
	for _, same := range [][]string{
		{`{"servers":["a"]}`},
		{`{"servers":["a"],"username":"u","password":"` + secret + `"}`, `{"servers":["a"],"username":"u","password":"renewed"}`},
		{`{"servers":["a"],"username":"v","password":"` + secret + `"}`},
		{`{"servers":["a"],"token":"` + secret + `"}`},
		{`{"servers":["a"],"token":"` + secret + `2"}`},
		{`{"servers":["a"],"nkey":"` + first + `"}`},
		{`{"servers":["a"],"nkey":"` + second + `"}`},
		{
			`{"servers":["a"],"credentials":"` + credentials("a1.creds", `{"iss":"ACCOUNT-A"}`) + `"}`,
			`{"servers":["a"],"credentials":"` + credentials("a2.creds", `{"iss":"KEY-OF-A","nats":{"issuer_account":"ACCOUNT-A"}}`) + `"}`,
		},
		{`{"servers":["a"],"credentials":"` + credentials("b.creds", `{"iss":"ACCOUNT-B"}`) + `"}`},
	} {
		var name string
		for i, settings := range same {
			m, err := load(t, settings)
			if err != nil {
				t.Fatalf("%s: %v", settings, err)
			}
			got := m.DataName()
			if i > 0 && got != name {
				t.Errorf("the data of %s is called %q, that of %s %q; want the same", settings, got, same[0], name)
			}
			name = got
			if strings.Contains(got, secret) || seedForm.MatchString(got) {
				t.Errorf("the name %q has a secret", got)
			}
		}
		if other, twice := seen[name]; twice {
			t.Errorf("the data of %s and of %s is called %q", other, same[0], name)
		}
		seen[name] = same[0]
	}
	for _, key := range []string{firstKey, secondKey} {
		if _, there := seen["nats://a:4222  lockgateway nkey:"+key]; !there {
			t.Errorf("no data is called after the user %s", key)
		}
	}
}

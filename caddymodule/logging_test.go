package caddymodule

import (
	"encoding/json"
	"testing"
)

func TestSecretsAreRedacted(t *testing.T) {
	for settings, want := range map[string]string{
		`{"token":"x"}`: `{"token":"REDACTED"}`,
		`{"token":{"value":"x","of":["y",{"z":7}]}}`:      `{"token":{"of":["REDACTED",{"z":"REDACTED"}],"value":"REDACTED"}}`,
		`{"tls":{"key_passphrase":"x","cert":"c.pem"}}`:   `{"tls":{"cert":"c.pem","key_passphrase":"REDACTED"}}`,
		`{"API-Key":"x","api_key":"x","apiKey":"x"}`:      `{"API-Key":"REDACTED","apiKey":"REDACTED","api_key":"REDACTED"}`,
		`{"passwd":"x","PASSWORD":"x","private_key":"x"}`: `{"PASSWORD":"REDACTED","passwd":"REDACTED","private_key":"REDACTED"}`,
		`{"password":"","username":"u","session_ttl":5}`:  `{"password":"","session_ttl":5,"username":"u"}`,
		`{"tls":{"key":"k.pem"},"secret":null}`:           `{"secret":null,"tls":{"key":"k.pem"}}`,
	} {
		got, err := json.Marshal(redacted(json.RawMessage(settings)))
		if err != nil || string(got) != want {
			t.Errorf("%s is logged as %s, %v; want %s", settings, got, err, want)
		}
	}
}

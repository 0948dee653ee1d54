package nats

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
)

// Login says who we are. At most one of credentials, seed, password and token is
// given.
type Login struct {
	// Credentials is the file with a user's JWT and seed.
	Credentials string

	// NKey is the file with a user's seed.
	NKey string

	// Username and Password are a user's.
	Username, Password string

	// Token is one that all clients share.
	Token string
}

// options returns what makes the client log in. Files are read again with each
// connection: they can be renewed.
func (l Login) options() ([]nats.Option, error) {
	switch {
	case l.Credentials != "":
		return []nats.Option{nats.UserCredentials(l.Credentials)}, nil
	case l.NKey != "":
		option, err := nats.NkeyOptionFromSeed(l.NKey)
		if err != nil {
			return nil, fmt.Errorf("nkey: %w", err)
		}
		return []nats.Option{option}, nil
	case l.Username != "":
		return []nats.Option{nats.UserInfo(l.Username, l.Password)}, nil
	case l.Token != "":
		return []nats.Option{nats.Token(l.Token)}, nil
	}
	return nil, nil
}

// check reads the files.
func (l Login) check() error {
	if l.Credentials != "" {
		contents, err := os.ReadFile(l.Credentials)
		if err != nil {
			return fmt.Errorf("credentials: %w", err)
		}
		if _, err := nkeys.ParseDecoratedJWT(contents); err != nil || !strings.Contains(string(contents), "SEED") {
			return fmt.Errorf("credentials: %s has no JWT and seed of a user, as `nsc generate creds` writes it", l.Credentials)
		}
	}
	_, err := l.options()
	return err
}

// name tells users apart that may be of different accounts. It has no secret, and
// is the same as long as the user is: passwords and credentials can be renewed.
func (l Login) name() string {
	switch {
	case l.Credentials != "":
		return "credentials:" + account(l.Credentials)
	case l.NKey != "":
		return "nkey:" + userKey(l.NKey)
	case l.Username != "":
		return "username:" + l.Username
	case l.Token != "":
		sum := sha256.Sum256([]byte(l.Token))
		return "token:" + hex.EncodeToString(sum[:8])
	}
	return ""
}

// account returns the account that the JWT of a file is for, or the file if it
// cannot be read.
func account(file string) string {
	contents, err := os.ReadFile(file)
	if err != nil {
		return file
	}
	token, err := nkeys.ParseDecoratedJWT(contents)
	if err != nil {
		return file
	}
	var claims struct {
		Issuer string `json:"iss"`
		NATS   struct {
			Account string `json:"issuer_account"` // if a key of the account has signed, not the account's own
		} `json:"nats"`
	}
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return file
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil || json.Unmarshal(payload, &claims) != nil {
		return file
	}
	return cmp.Or(claims.NATS.Account, claims.Issuer, file)
}

// userKey returns the public key of the user whose seed a file has, or the file if
// it cannot be read.
func userKey(file string) string {
	contents, err := os.ReadFile(file)
	if err != nil {
		return file
	}
	pair, err := nkeys.ParseDecoratedNKey(contents)
	if err != nil {
		return file
	}
	defer pair.Wipe()
	key, err := pair.PublicKey()
	if err != nil {
		return file
	}
	return key
}

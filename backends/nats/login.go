package nats

import (
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

package natstest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"
)

// operator is what servers are told that trust one, and what clients log in with.
type operator struct {
	token      string
	system     string            // public key of the account that the servers use
	accounts   map[string]string // tokens by public key
	root, user string            // files with credentials
}

// newOperator makes an operator with two accounts: the servers' own, and one that
// has JetStream and two users.
func newOperator(t testing.TB, o Options) operator {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	key := func(make func() (nkeys.KeyPair, error)) (nkeys.KeyPair, string) {
		pair, err := make()
		must(err)
		public, err := pair.PublicKey()
		must(err)
		return pair, public
	}
	signer, public := key(nkeys.CreateOperator)
	_, system := key(nkeys.CreateAccount) // nobody logs in there
	accountKey, account := key(nkeys.CreateAccount)

	claims := jwt.NewOperatorClaims(public)
	claims.SystemAccount = system
	token, err := claims.Encode(signer)
	must(err)
	p := operator{token: token, system: system, accounts: make(map[string]string)}
	for _, a := range []string{system, account} {
		claims := jwt.NewAccountClaims(a)
		if a == account {
			claims.Limits.JetStreamLimits = jwt.JetStreamLimits{
				MemoryStorage: jwt.NoLimit, DiskStorage: jwt.NoLimit, Streams: jwt.NoLimit, Consumer: jwt.NoLimit,
			}
		}
		p.accounts[a], err = claims.Encode(signer)
		must(err)
	}

	dir := t.TempDir()
	credentials := func(name string, may jwt.Permissions) string {
		pair, public := key(nkeys.CreateUser)
		claims := jwt.NewUserClaims(public)
		claims.Permissions = may
		token, err := claims.Encode(accountKey)
		must(err)
		seed, err := pair.Seed()
		must(err)
		contents, err := jwt.FormatUserConfig(token, seed)
		must(err)
		path := filepath.Join(dir, name+".creds")
		must(os.WriteFile(path, contents, 0o600))
		return path
	}
	p.root = credentials(Root, jwt.Permissions{})
	publish, subscribe := o.subjects()
	p.user = credentials(User, jwt.Permissions{Pub: jwt.Permission{Allow: publish}, Sub: jwt.Permission{Allow: subscribe}})
	return p
}

// NewCredentials returns a file with those of a user whom no server knows.
func NewCredentials(t testing.TB) string {
	t.Helper()
	return newOperator(t, Options{}).user
}

// write writes the servers' config.
func (p operator) write(line func(format string, args ...any)) {
	line("operator: %q", p.token)
	line("system_account: %q", p.system)
	line("resolver: MEMORY")
	var accounts []string
	for public, token := range p.accounts {
		accounts = append(accounts, public+`: "`+token+`"`)
	}
	line("resolver_preload: { %s }", strings.Join(accounts, ", "))
}

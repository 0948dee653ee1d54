package nats

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"go.uber.org/zap"

	"github.com/lockgateway/lockgateway/backends/replicated"
	"github.com/lockgateway/lockgateway/lock"
)

func init() { caddy.RegisterModule(new(Module)) }

// The defaults of the settings.
const (
	DefaultBucket         = "lockgateway"
	DefaultDialTimeout    = 5 * time.Second
	DefaultRequestTimeout = 5 * time.Second
	DefaultSessionTTL     = 20 * time.Second
	DefaultForgetAfter    = time.Hour
)

const (
	// leastSessionTTL leaves time for a few attempts to refresh a session.
	leastSessionTTL = 2 * time.Second

	// leastForgetAfter keeps a record that is forgotten from being created
	// anew while requests of before may still be under way.
	leastForgetAfter = 10 * time.Minute
)

// Module keeps locks in a key-value bucket of NATS JetStream. Any number of
// instances of Caddy may share it; locks outlive them all. It needs nats-server
// 2.11 or later.
//
// What servers have acknowledged they may lose when they lose power, unless they
// run with `sync_interval: always`, which no client can see. Use the tokens of named
// holders where two holders at once would do harm, or the etcd backend.
//
// All settings that are text may contain placeholders such as `{env.NAME}` or
// `{file./path}`.
type Module struct {
	// Servers of one cluster: URLs such as `nats://nats-1:4222`, or tls:// for
	// encryption. One without a scheme is nats. Other servers of the cluster are
	// found by themselves.
	Servers []string `json:"servers,omitempty"`

	// The bucket's name. It is made if there is none. Handlers with the same
	// servers, domain and bucket share their locks, whoever they log in as.
	// Default: `lockgateway`
	Bucket string `json:"bucket,omitempty"`

	// How many servers keep a bucket that is made: 1 to 5, best an odd number.
	// Default: 3 in a cluster, otherwise 1
	Replicas int `json:"replicas,omitempty"`

	// Where servers keep a bucket that is made: `file`, or `memory`, which does
	// not outlive them. Default: `file`
	Storage string `json:"storage,omitempty"`

	// Which servers keep a bucket that is made. Default: any
	Placement *Placement `json:"placement,omitempty"`

	// The size, in bytes, at which a bucket that is made refuses writes.
	// Default: none but that of the account
	MaxBytes int64 `json:"max_bytes,omitempty"`

	// The file with the JWT and seed of the user to log in as.
	Credentials string `json:"credentials,omitempty"`

	// The file with the seed of the user to log in as.
	NKey string `json:"nkey,omitempty"`

	// The user to log in as with a password.
	Username string `json:"username,omitempty"`

	// The user's password.
	Password string `json:"password,omitempty"`

	// The token to log in with.
	Token string `json:"token,omitempty"`

	// The files for TLS. Without it, servers that use it are trusted if the system
	// trusts them, and are shown no certificate.
	TLS *TLS `json:"tls,omitempty"`

	// The domain of JetStream that the bucket is in. Default: that of the servers
	Domain string `json:"domain,omitempty"`

	// How long an attempt to connect to a server may take. Default: `5s`
	DialTimeout caddy.Duration `json:"dial_timeout,omitempty"`

	// How long a request may take beyond its own wait before it is answered
	// 503 or 504. An election of JetStream takes 4 to 9 seconds. Default: `5s`
	RequestTimeout caddy.Duration `json:"request_timeout,omitempty"`

	// How long the requests that wait through an instance of Caddy keep their
	// places after it vanished. In whole seconds, rounded up; at least `2s`, and
	// more than an election takes if they are to outlive one. Default: `20s`
	SessionTTL caddy.Duration `json:"session_ttl,omitempty"`

	// How long a lock that nobody holds or waits for is remembered. The value
	// of one that was forgotten reads `{}` instead of 0. At least `10m`.
	// Default: `1h`
	ForgetAfter caddy.Duration `json:"forget_after,omitempty"`

	logger *zap.Logger
}

// backend is an open backend, with the store that it is about.
type backend struct {
	*replicated.Backend
	store *Store
}

// configure applies other settings.
func (b *backend) configure(o Options) {
	b.store.Configure(o)
	b.Configure(replicated.Options{RequestTimeout: o.RequestTimeout, Logger: o.Logger})
}

// CaddyModule returns the Caddy module information.
func (*Module) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "http.lock_gateway.backends.nats",
		New: func() caddy.Module { return new(Module) },
	}
}

// Provision fills in placeholders and defaults.
func (m *Module) Provision(ctx caddy.Context) error {
	m.logger = ctx.Logger()
	if err := m.replace(); err != nil {
		return fmt.Errorf("nats backend: %w", err)
	}
	if m.Bucket == "" {
		m.Bucket = DefaultBucket
	}
	for _, d := range []struct {
		setting  *caddy.Duration
		fallback time.Duration
	}{
		{&m.DialTimeout, DefaultDialTimeout},
		{&m.RequestTimeout, DefaultRequestTimeout},
		{&m.SessionTTL, DefaultSessionTTL},
		{&m.ForgetAfter, DefaultForgetAfter},
	} {
		if *d.setting == 0 {
			*d.setting = caddy.Duration(d.fallback)
		}
	}
	return nil
}

// replace fills in placeholders. One without a value is an error: it would make
// another server, user or bucket of what was meant.
func (m *Module) replace() error {
	replacer := caddy.NewReplacer()
	for _, t := range m.texts() {
		value, err := replacer.ReplaceOrErr(*t.value, true, true)
		if err != nil {
			return fmt.Errorf("%s: %w", t.setting, err)
		}
		*t.value = value
	}
	return nil
}

type text struct {
	setting string
	value   *string
}

// texts returns all settings that are text.
func (m *Module) texts() []text {
	texts := []text{
		{"bucket", &m.Bucket}, {"storage", &m.Storage}, {"domain", &m.Domain},
		{"credentials", &m.Credentials}, {"nkey", &m.NKey},
		{"username", &m.Username}, {"password", &m.Password}, {"token", &m.Token},
	}
	for i := range m.Servers {
		texts = append(texts, text{"servers", &m.Servers[i]})
	}
	if m.Placement != nil {
		texts = append(texts, text{"placement cluster", &m.Placement.Cluster})
		for i := range m.Placement.Tags {
			texts = append(texts, text{"placement tags", &m.Placement.Tags[i]})
		}
	}
	if m.TLS != nil {
		texts = append(texts, text{"tls ca", &m.TLS.CA}, text{"tls cert", &m.TLS.Cert},
			text{"tls key", &m.TLS.Key}, text{"tls server_name", &m.TLS.ServerName})
	}
	return texts
}

// Validate checks the settings, and reads the files that they name.
func (m *Module) Validate() error {
	if problem := m.check(); problem != nil {
		return fmt.Errorf("nats backend: %w", problem)
	}
	o := m.options()
	if o.TLS != nil {
		if _, err := o.TLS.config(); err != nil {
			return fmt.Errorf("nats backend: %w", err)
		}
	}
	if err := o.check(); err != nil {
		return fmt.Errorf("nats backend: %w", err)
	}
	return nil
}

// DataName names the servers, the domain and the bucket.
func (m *Module) DataName() string {
	return strings.Join(m.servers(), ",") + " " + m.Domain + " " + m.Bucket
}

// Open opens a store, which connects in the background.
func (m *Module) Open() (lock.Backend, error) {
	o := m.options()
	store, err := Open(o)
	if err != nil {
		return nil, fmt.Errorf("nats backend: %w", err)
	}
	engine := replicated.New(store, replicated.Options{RequestTimeout: o.RequestTimeout, Logger: o.Logger})
	return &backend{Backend: engine, store: store}, nil
}

// Configure applies the settings to a backend made by Open. Other credentials,
// files or time-outs make another connection to the same data.
func (m *Module) Configure(b lock.Backend) {
	b.(*backend).configure(m.options())
}

func (m *Module) options() Options {
	return Options{
		Connection: Connection{
			Servers: m.servers(),
			Login: Login{
				Credentials: m.Credentials,
				NKey:        m.NKey,
				Username:    m.Username,
				Password:    m.Password,
				Token:       m.Token,
			},
			TLS:         m.TLS,
			DialTimeout: time.Duration(m.DialTimeout),
		},
		Domain: m.Domain,
		Name:   m.Bucket,
		Bucket: Bucket{
			Replicas:  m.Replicas,
			Memory:    m.Storage == storageMemory,
			MaxBytes:  m.MaxBytes,
			Placement: m.Placement,
		},
		RequestTimeout: time.Duration(m.RequestTimeout),
		SessionTTL:     time.Duration(seconds(time.Duration(m.SessionTTL))) * time.Second,
		ForgetAfter:    time.Duration(m.ForgetAfter),
		Logger:         m.logger,
	}
}

// servers returns the URLs of the servers, sorted: in which order and how often they
// are named makes no other data.
func (m *Module) servers() []string {
	var urls []string
	for _, s := range m.Servers {
		urls = append(urls, serverURL(s))
	}
	slices.Sort(urls)
	return slices.Compact(urls)
}

// Interface guards
var (
	_ caddy.Module          = (*Module)(nil)
	_ caddy.Provisioner     = (*Module)(nil)
	_ caddy.Validator       = (*Module)(nil)
	_ caddyfile.Unmarshaler = (*Module)(nil)
)

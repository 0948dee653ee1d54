package nats

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"go.uber.org/zap"

	"github.com/lockgateway/lockgateway/backends/replicated"
	"github.com/lockgateway/lockgateway/internal/settings"
	"github.com/lockgateway/lockgateway/internal/telemetry"
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
// 2.11 or later, or runs one itself.
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

	// A NATS server that Caddy runs itself, instead of servers elsewhere: the
	// settings of the module `http.lock_gateway.backends.nats.embedded`. Settings
	// that are about servers elsewhere do not go with it.
	EmbeddedRaw json.RawMessage `json:"embedded,omitempty"`

	// The bucket's name. It is made if there is none. Handlers with the same
	// servers, domain, bucket and user share their locks, and so do those whose
	// users are of one account. Default: `lockgateway`
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

	embedded Embedded // nil: the servers are elsewhere
	logger   *zap.Logger
}

// backend is an open backend, with the store that it is about.
type backend struct {
	*replicated.Backend
	store   *Store
	release func() error // of the embedded server
}

// Ready implements lock.Backend. A node of a cluster is not ready before it has what
// the others have: who replaces them one by one goes by this.
func (b *backend) Ready() error {
	if err := b.Backend.Ready(); err != nil {
		return err
	}
	node, ok := b.store.options.Load().Local.(ClusterNode)
	if !ok {
		return nil
	}
	if err := node.Current(b.store.keys.stream); err != nil {
		return fmt.Errorf("%w: %w", lock.ErrUnavailable, err)
	}
	return nil
}

// Close closes the backend, and then lets go of the embedded server.
func (b *backend) Close() error {
	return errors.Join(b.Backend.Close(), b.release())
}

// configure applies other settings.
func (b *backend) configure(o Options) {
	b.store.Configure(o)
	b.Configure(replicated.Options{
		RequestTimeout: o.RequestTimeout, Logger: o.Logger, Name: "nats", Meter: telemetry.Meter(),
	})
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
	if err := m.loadEmbedded(ctx); err != nil {
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

// replace fills in placeholders.
func (m *Module) replace() error {
	r := settings.NewReplacer()
	r.FillAll("servers", m.Servers)
	r.Fill("bucket", &m.Bucket)
	r.Fill("storage", &m.Storage)
	r.Fill("domain", &m.Domain)
	r.Fill("credentials", &m.Credentials)
	r.Fill("nkey", &m.NKey)
	r.Fill("username", &m.Username)
	r.Fill("password", &m.Password)
	r.Fill("token", &m.Token)
	if m.Placement != nil {
		r.Fill("placement cluster", &m.Placement.Cluster)
		r.FillAll("placement tags", m.Placement.Tags)
	}
	m.TLS.Fill(r)
	return r.Err()
}

// Validate checks the settings, and reads the files that they name.
func (m *Module) Validate() error {
	if problem := m.check(); problem != nil {
		return fmt.Errorf("nats backend: %w", problem)
	}
	o := m.options()
	if o.TLS != nil {
		if _, err := o.TLS.Config(); err != nil {
			return fmt.Errorf("nats backend: %w", err)
		}
	}
	if err := o.check(); err != nil {
		return fmt.Errorf("nats backend: %w", err)
	}
	return nil
}

// DataName names the servers, the domain, the bucket and the user: users may be of
// accounts that know nothing of each other's buckets.
func (m *Module) DataName() string {
	if m.embedded != nil {
		return "embedded " + m.embedded.DataName() + " " + m.Bucket
	}
	return strings.Join([]string{strings.Join(m.servers(), ","), m.Domain, m.Bucket, m.login().name()}, " ")
}

// Open opens a store, which connects in the background.
func (m *Module) Open() (lock.Backend, error) {
	o := m.options()
	store, err := Open(o)
	if err != nil {
		return nil, fmt.Errorf("nats backend: %w", err)
	}
	engine := replicated.New(store, replicated.Options{
		RequestTimeout: o.RequestTimeout, Logger: o.Logger, Name: "nats", Meter: telemetry.Meter(),
	})
	b := &backend{Backend: engine, store: store, release: func() error { return nil }}
	if m.embedded != nil {
		// Requests of a config that is gone may still need it.
		b.release = m.embedded.Keep()
	}
	return b, nil
}

// Configure applies the settings to a backend made by Open. Other credentials,
// files or time-outs make another connection to the same data.
func (m *Module) Configure(b lock.Backend) {
	b.(*backend).configure(m.options())
}

func (m *Module) login() Login {
	return Login{
		Credentials: m.Credentials,
		NKey:        m.NKey,
		Username:    m.Username,
		Password:    m.Password,
		Token:       m.Token,
	}
}

func (m *Module) options() Options {
	var local LocalServer
	if m.embedded != nil {
		local = m.embedded.Server()
	}
	return Options{
		Connection: Connection{
			Servers:     m.servers(),
			Local:       local,
			Login:       m.login(),
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

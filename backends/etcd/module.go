package etcd

import (
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
	DefaultPrefix           = "/lockgateway"
	DefaultDialTimeout      = 5 * time.Second
	DefaultRequestTimeout   = 3 * time.Second
	DefaultKeepAliveTime    = 10 * time.Second
	DefaultKeepAliveTimeout = 3 * time.Second
	DefaultSessionTTL       = 10 * time.Second
	DefaultForgetAfter      = time.Hour
)

const (
	// leastKeepAliveTime is what gRPC makes of anything less.
	leastKeepAliveTime = 10 * time.Second

	leastSessionTTL = 2 * time.Second

	// leastForgetAfter keeps a record that is forgotten from being created
	// anew while requests of before may still be under way.
	leastForgetAfter = 10 * time.Minute
)

// Module keeps locks in an etcd cluster. Any number of instances of Caddy may
// share it; locks outlive them all. It needs etcd 3.5.24, 3.6.5 or later, with
// auto-compaction enabled.
//
// All settings that are text may contain placeholders such as `{env.NAME}` or
// `{file./path}`.
type Module struct {
	// The members of the cluster: URLs such as `https://etcd-1:2379`, all http
	// or all https. One without a scheme is http, or https if there is `tls`.
	Endpoints []string `json:"endpoints,omitempty"`

	// A domain whose DNS SRV records name the members, instead of `endpoints`:
	// `_etcd-client-ssl._tcp` for TLS, or else `_etcd-client._tcp`.
	DiscoverySRV string `json:"discovery_srv,omitempty"`

	// What all keys in etcd begin with. Handlers with the same members and the
	// same prefix share their locks. Default: `/lockgateway`
	Prefix string `json:"prefix,omitempty"`

	// The user to log in as, where authentication is enabled. Its role needs
	// readwrite permission on the prefix and what begins with it and a slash.
	Username string `json:"username,omitempty"`

	// The user's password.
	Password string `json:"password,omitempty"`

	// The files for TLS. Without it, https trusts whom the system trusts, and
	// shows no certificate.
	TLS *TLS `json:"tls,omitempty"`

	// How long an attempt to connect or to log in may take. Default: `5s`
	DialTimeout caddy.Duration `json:"dial_timeout,omitempty"`

	// How long a request may take beyond its own wait before it is answered
	// 503 or 504. An election of etcd takes up to 2 seconds. Default: `3s`
	RequestTimeout caddy.Duration `json:"request_timeout,omitempty"`

	// After how long without a word from a member it is asked whether it is
	// there. At least, and by default, `10s`
	KeepAliveTime caddy.Duration `json:"keepalive_time,omitempty"`

	// How long the member has to answer that before its connection is given up.
	// Default: `3s`
	KeepAliveTimeout caddy.Duration `json:"keepalive_timeout,omitempty"`

	// How long the requests that wait through an instance of Caddy keep their
	// places after it vanished. In whole seconds, rounded up; at least `2s`.
	// Default: `10s`
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
		ID:  "http.lock_gateway.backends.etcd",
		New: func() caddy.Module { return new(Module) },
	}
}

// Provision fills in placeholders and defaults.
func (m *Module) Provision(ctx caddy.Context) error {
	m.logger = ctx.Logger()
	if err := m.replace(); err != nil {
		return fmt.Errorf("etcd backend: %w", err)
	}
	if m.Prefix == "" {
		m.Prefix = DefaultPrefix
	}
	m.Prefix = strings.TrimRight(m.Prefix, "/")
	for _, d := range []struct {
		setting  *caddy.Duration
		fallback time.Duration
	}{
		{&m.DialTimeout, DefaultDialTimeout},
		{&m.RequestTimeout, DefaultRequestTimeout},
		{&m.KeepAliveTime, DefaultKeepAliveTime},
		{&m.KeepAliveTimeout, DefaultKeepAliveTimeout},
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
	r.FillAll("endpoints", m.Endpoints)
	r.Fill("discovery_srv", &m.DiscoverySRV)
	r.Fill("prefix", &m.Prefix)
	r.Fill("username", &m.Username)
	r.Fill("password", &m.Password)
	m.TLS.Fill(r)
	return r.Err()
}

// Validate checks the settings, and reads the files that they name.
func (m *Module) Validate() error {
	if problem := m.check(); problem != nil {
		return fmt.Errorf("etcd backend: %w", problem)
	}
	if _, err := m.options().TLS.Config(); err != nil {
		return fmt.Errorf("etcd backend: %w", err)
	}
	return nil
}

// DataName names the members, or who names them, and the prefix.
func (m *Module) DataName() string {
	if m.DiscoverySRV != "" {
		return "srv " + m.DiscoverySRV + " " + m.Prefix
	}
	return strings.Join(m.endpoints(), ",") + " " + m.Prefix
}

// Open opens a store, which connects in the background.
func (m *Module) Open() (lock.Backend, error) {
	o := m.options()
	store, err := Open(o)
	if err != nil {
		return nil, fmt.Errorf("etcd backend: %w", err)
	}
	engine := replicated.New(store, replicated.Options{
		RequestTimeout: o.RequestTimeout, Logger: o.Logger, Name: "etcd", Meter: telemetry.Meter(),
	})
	return &backend{Backend: engine, store: store}, nil
}

// Configure applies the settings to a backend made by Open. Other credentials,
// files or time-outs make another connection to the same data.
func (m *Module) Configure(b lock.Backend) {
	b.(*backend).configure(m.options())
}

func (m *Module) options() Options {
	o := Options{
		Connection: Connection{
			DiscoverySRV:     m.DiscoverySRV,
			Username:         m.Username,
			Password:         m.Password,
			DialTimeout:      time.Duration(m.DialTimeout),
			KeepAliveTime:    time.Duration(m.KeepAliveTime),
			KeepAliveTimeout: time.Duration(m.KeepAliveTimeout),
		},
		Prefix:         m.Prefix,
		RequestTimeout: time.Duration(m.RequestTimeout),
		SessionTTL:     time.Duration(m.SessionTTL),
		ForgetAfter:    time.Duration(m.ForgetAfter),
		Logger:         m.logger,
	}
	if m.TLS != nil {
		o.TLS = *m.TLS
	}
	if m.DiscoverySRV == "" {
		o.Endpoints = m.endpoints()
	}
	return o
}

// endpoints returns the URLs of the members, sorted: in which order and how often
// they are named makes no other data.
func (m *Module) endpoints() []string {
	var urls []string
	for _, e := range m.Endpoints {
		urls = append(urls, m.url(e))
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

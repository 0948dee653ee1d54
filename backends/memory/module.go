package memory

import (
	"errors"
	"fmt"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/lockgateway/lockgateway/internal/settings"
	"github.com/lockgateway/lockgateway/lock"
)

func init() { caddy.RegisterModule(new(Module)) }

// Module keeps locks in the memory of the Caddy process. It is the fastest
// backend and needs nothing else, but it serves a single instance of Caddy
// only, and a restart of the process forgets every lock. A config reload does
// not.
type Module struct {
	// Handlers whose memory has the same name share their locks; those with
	// different names know nothing of each other's. May contain placeholders
	// such as `{env.NAME}`. Default: `default`
	Name string `json:"name,omitempty"`

	// How long a lock that nobody holds or waits for is remembered. The value
	// of one that was forgotten reads `{}` instead of 0; it makes no other
	// difference. Default: `1h`
	ForgetAfter caddy.Duration `json:"forget_after,omitempty"`

	// How many locks are kept at most, idle ones included. The acquire of a
	// further one forgets a lock that nobody holds or waits for before its
	// time, and is answered 503 if there is none. Default: 0, which is no
	// limit.
	MaxLocks int64 `json:"max_locks,omitempty"`
}

// CaddyModule returns the Caddy module information.
func (*Module) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "http.lock_gateway.backends.memory",
		New: func() caddy.Module { return new(Module) },
	}
}

// Provision fills in placeholders and defaults.
func (m *Module) Provision(caddy.Context) error {
	if m.Name == "" {
		m.Name = "default"
	}
	// A placeholder without a value would mix the locks of sites that are to be
	// kept apart.
	name, err := caddy.NewReplacer().ReplaceOrErr(m.Name, true, true)
	if err != nil {
		return fmt.Errorf("memory backend: name: %w", err)
	}
	m.Name = name
	if m.ForgetAfter == 0 {
		m.ForgetAfter = caddy.Duration(DefaultForgetAfter)
	}
	return nil
}

// Validate checks the limits.
func (m *Module) Validate() error {
	if m.ForgetAfter < 0 {
		return errors.New("memory backend: forget_after is negative; leave it out for an hour")
	}
	if m.MaxLocks < 0 {
		return errors.New("memory backend: max_locks is negative; leave it out for no limit")
	}
	return nil
}

// DataName returns the name alone, so that a reload that changes a setting
// keeps the locks.
func (m *Module) DataName() string { return m.Name }

// Open makes an empty backend.
func (m *Module) Open() (lock.Backend, error) { return New(m.options()), nil }

// Configure applies the settings to a backend made by Open.
func (m *Module) Configure(backend lock.Backend) { backend.(*Backend).Configure(m.options()) }

func (m *Module) options() Options {
	return Options{ForgetAfter: time.Duration(m.ForgetAfter), MaxLocks: m.MaxLocks}
}

// UnmarshalCaddyfile sets up the module from Caddyfile tokens. Syntax:
//
//	memory {
//		name         <name>
//		forget_after <duration>
//		max_locks    <number>
//	}
func (m *Module) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // the backend's name
	return settings.NewBlock(d).Each(d, func() (err error) {
		switch d.Val() {
		case "name":
			m.Name, err = settings.Text(d)
		case "forget_after":
			m.ForgetAfter, err = settings.Duration(d)
		case "max_locks":
			m.MaxLocks, err = settings.Count(d)
		default:
			err = d.Errf("unrecognized setting %q of the memory backend; there are name, forget_after and max_locks", d.Val())
		}
		return err
	})
}

// Interface guards
var (
	_ caddy.Module          = (*Module)(nil)
	_ caddy.Provisioner     = (*Module)(nil)
	_ caddy.Validator       = (*Module)(nil)
	_ caddyfile.Unmarshaler = (*Module)(nil)
)

// Package embedded runs a NATS server in the Caddy process for the NATS backend:
// one that keeps its data in a folder and listens nowhere, or a node of a cluster
// of Caddys. Only builds that import it contain a server.
package embedded

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/lockgateway/lockgateway/backends/nats"
	"github.com/lockgateway/lockgateway/internal/settings"
)

func init() { caddy.RegisterModule(new(Module)) }

// Module is a NATS server that Caddy runs itself. It keeps locks in files, so that
// they outlive a restart. Alone it needs nothing and listens nowhere; three of
// them, in three Caddys, are a cluster that outlives the loss of one.
//
// It is not restarted by a config reload, which must not change its settings
// therefore: Caddy has to be restarted for that.
//
// All settings that are text may contain placeholders such as `{env.NAME}` or
// `{file./path}`.
type Module struct {
	// The folder with the data. One that is given must exist. A process owns it as
	// long as it runs; handlers that name the same folder share the server.
	// Default: `lock_gateway/nats-single`, or `lock_gateway/nats-cluster-` and the
	// cluster's name, in Caddy's data directory
	Dir string `json:"dir,omitempty"`

	// When writes are put on the disk: `always`, which is before they are
	// answered, or a duration, every so often. With a duration a power failure, or
	// a crash of the operating system, makes the server forget what it answered
	// since: locks that are held are then granted again. A crash of Caddy does not.
	// Default: `always`
	SyncInterval string `json:"sync_interval,omitempty"`

	// The cluster that the server is a node of. Default: none, it is alone
	Cluster *Cluster `json:"cluster,omitempty"`

	node *node
}

// Cluster makes the server a node of a cluster. All nodes have the same settings but
// for node and, where they share a machine, listen.
type Cluster struct {
	// The cluster's name, which all nodes have. Default: `lockgateway`
	Name string `json:"name,omitempty"`

	// The name of this node, which no other has and which it always has: it is
	// what other nodes know it by.
	Node string `json:"node,omitempty"`

	// Where other nodes connect to: an address of this machine, and a port.
	// Default: `:6222`
	Listen string `json:"listen,omitempty"`

	// The hosts and ports of all nodes, this one's too: three or five.
	Routes []string `json:"routes,omitempty"`

	// What nodes show each other to be let in: 16 characters or more, the same in
	// all nodes.
	Secret string `json:"secret,omitempty"`

	// The files that encrypt what goes between nodes. Each shows its certificate to
	// the others.
	TLS *TLS `json:"tls,omitempty"`

	// Lets nodes connect over a network without a secret or without encryption.
	// Whoever reaches the port can then join the cluster, read the ids of all
	// locks, and release them.
	Insecure bool `json:"insecure,omitempty"`
}

// TLS names the files for encryption between nodes, in PEM.
type TLS struct {
	// The certificates of those who may have signed the nodes'. It is read again
	// at a restart only.
	CA string `json:"ca,omitempty"`

	// The certificate of this node, for the host that routes have. It must be good
	// for servers and for clients. It is read again with each connection, and so
	// is its key: they can be renewed.
	Cert string `json:"cert,omitempty"`

	// The key of the certificate.
	Key string `json:"key,omitempty"`
}

// CaddyModule returns the Caddy module information.
func (*Module) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "http.lock_gateway.backends.nats.embedded",
		New: func() caddy.Module { return new(Module) },
	}
}

// Provision fills in placeholders and defaults, and takes a share in the server.
// It does not start it: the config may be validated only.
func (m *Module) Provision(ctx caddy.Context) error {
	if err := m.replace(); err != nil {
		return err
	}
	if problem := m.check(); problem != nil {
		return problem
	}
	s, err := m.settings()
	if err != nil {
		return err
	}
	if _, err := s.options(); err != nil { // reads the files
		return err
	}
	n, err := share(s)
	if err != nil {
		return err
	}
	m.node = n
	if changed := n.settings.differences(s); changed != "" {
		return fmt.Errorf("%s: the server in %s runs, or another handler has it, with another value; make them equal, or restart Caddy if you changed it",
			changed, s.dir)
	}
	loaded, err := ctx.App(appName)
	if err != nil {
		return err
	}
	a, ok := loaded.(*app)
	if !ok {
		return errors.New("the app " + appName + " is not that of the embedded server")
	}
	a.nodes = append(a.nodes, appNode{n, ctx.Logger()})
	return nil
}

// Cleanup gives the share in the server up. The last to do so stops it.
func (m *Module) Cleanup() error {
	if m.node == nil {
		return nil
	}
	return m.node.leave()
}

// replace fills in placeholders.
func (m *Module) replace() error {
	r := settings.NewReplacer()
	r.Fill("dir", &m.Dir)
	r.Fill("sync_interval", &m.SyncInterval)
	if c := m.Cluster; c != nil {
		r.Fill("cluster name", &c.Name)
		r.Fill("cluster node", &c.Node)
		r.Fill("cluster listen", &c.Listen)
		r.FillAll("cluster routes", c.Routes)
		r.Fill("cluster secret", &c.Secret)
		if c.TLS != nil {
			r.Fill("cluster tls ca", &c.TLS.CA)
			r.Fill("cluster tls cert", &c.TLS.Cert)
			r.Fill("cluster tls key", &c.TLS.Key)
		}
	}
	return r.Err()
}

// DataName names the folder.
func (m *Module) DataName() string { return m.node.settings.dir }

// Server returns the server.
func (m *Module) Server() nats.LocalServer { return m.node }

// Keep takes another share in the server.
func (m *Module) Keep() (release func() error) {
	m.node.join()
	return m.node.leave
}

// settings returns what the server runs with.
func (m *Module) settings() (serverSettings, error) {
	s := serverSettings{dir: m.Dir, given: m.Dir != "", cluster: m.Cluster}
	if m.SyncInterval != "" && m.SyncInterval != syncAlways {
		interval, err := caddy.ParseDuration(m.SyncInterval)
		if err != nil {
			return s, fmt.Errorf("sync_interval: %w", err)
		}
		s.syncInterval = interval
	}
	folder := "nats-single"
	if m.Cluster != nil {
		c := *m.Cluster
		if c.Name == "" {
			c.Name = defaultClusterName
		}
		if c.Listen == "" {
			c.Listen = defaultListen
		}
		s.cluster = &c
		folder = "nats-cluster-" + c.Name
	}
	if s.dir == "" {
		s.dir = filepath.Join(caddy.AppDataDir(), "lock_gateway", folder)
	}
	var err error
	if s.dir, err = filepath.Abs(s.dir); err != nil {
		return s, fmt.Errorf("dir: %w", err)
	}
	return s, nil
}

// Interface guards
var (
	_ caddy.Module          = (*Module)(nil)
	_ caddy.Provisioner     = (*Module)(nil)
	_ caddy.CleanerUpper    = (*Module)(nil)
	_ caddyfile.Unmarshaler = (*Module)(nil)
	_ nats.Embedded         = (*Module)(nil)
)

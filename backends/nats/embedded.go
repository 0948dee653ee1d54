package nats

import (
	"context"
	"encoding/json"
	"fmt"
	"net"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/lockgateway/lockgateway/internal/settings"
)

// embeddedModule is the guest that runs a server in this process. It is a package
// of its own, since not every build is to contain a server.
const embeddedModule = "http.lock_gateway.backends.nats.embedded"

// Embedded is what the guest module http.lock_gateway.backends.nats.embedded
// implements. Once it is provisioned it has a server until it is cleaned up.
type Embedded interface {
	caddy.Module

	// DataName names the server's data, and nothing else of it.
	DataName() string

	// Server returns the server.
	Server() LocalServer

	// Keep keeps the server until release is called, which must be once, also if
	// the module is cleaned up before.
	Keep() (release func() error)
}

// LocalServer is a NATS server in this process. Its methods may be called
// concurrently.
type LocalServer interface {
	// Dial connects to the server. It waits until the server runs, and fails when
	// ctx is done before.
	Dial(ctx context.Context) (net.Conn, error)
}

// ClusterNode is what a [LocalServer] implements, too, that may be a node of a
// cluster.
type ClusterNode interface {
	// Current returns nil if the node is known to have all that it is to keep of a
	// stream, so that another node may be missed. It does not block.
	Current(stream string) error
}

// unmarshalEmbedded reads the block of the embedded server.
func unmarshalEmbedded(d *caddyfile.Dispenser) (json.RawMessage, error) {
	if _, err := caddy.GetModule(embeddedModule); err != nil {
		return nil, d.WrapErr(errNoServer)
	}
	unmarshaler, err := caddyfile.UnmarshalModule(d, embeddedModule)
	if err != nil {
		return nil, err
	}
	return caddyconfig.JSON(unmarshaler, nil), nil
}

var errNoServer = settings.Wrong("embedded", "this Caddy is built without a NATS server; build it with github.com/lockgateway/lockgateway/backends/nats/embedded")

// loadEmbedded loads the guest module, if the settings have its block.
func (m *Module) loadEmbedded(ctx caddy.Context) error {
	if m.EmbeddedRaw == nil {
		return nil
	}
	if problem := m.checkEmbedded(); problem != nil {
		return problem
	}
	if _, err := caddy.GetModule(embeddedModule); err != nil {
		return errNoServer
	}
	guest, err := ctx.LoadModuleByID(embeddedModule, m.EmbeddedRaw)
	if err != nil {
		return fmt.Errorf("embedded: %w", err)
	}
	embedded, ok := guest.(Embedded)
	if !ok {
		return fmt.Errorf("embedded: the module %s is no NATS server", embeddedModule)
	}
	m.embedded = embedded
	return nil
}

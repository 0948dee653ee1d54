package embedded

import (
	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"
)

const appName = "lock_gateway_nats"

func init() { caddy.RegisterModule(new(app)) }

// app starts the servers of a config. Nobody configures it: the first handler with
// a server brings it along. Handlers cannot start servers themselves, as they do not
// know whether a config is to run, or to be validated only while another process
// owns the data.
type app struct {
	nodes []appNode
}

type appNode struct {
	node   *node
	logger *zap.Logger
}

// CaddyModule returns the Caddy module information.
func (*app) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: appName, New: func() caddy.Module { return new(app) }}
}

// Start starts the servers that do not run yet.
func (a *app) Start() error {
	for _, n := range a.nodes {
		if err := n.node.start(n.logger); err != nil {
			return err
		}
	}
	return nil
}

// Stop does nothing: servers end with the last who has a share in them, which may
// be a request of an earlier config.
func (*app) Stop() error { return nil }

// Interface guards
var (
	_ caddy.Module = (*app)(nil)
	_ caddy.App    = (*app)(nil)
)

package caddymodule

import (
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/lockgateway/lockgateway/internal/settings"
)

const directive = "lock_gateway"

func init() {
	httpcaddyfile.RegisterHandlerDirective(directive, func(h httpcaddyfile.Helper) (caddyhttp.MiddlewareHandler, error) {
		handler := new(Handler)
		return handler, handler.UnmarshalCaddyfile(h.Dispenser)
	})
	// Before all that answers requests itself, so that the one line works in
	// an existing site; after all that changes or refuses them.
	httpcaddyfile.RegisterDirectiveOrder(directive, httpcaddyfile.Before, "respond")
}

// UnmarshalCaddyfile sets up the handler from Caddyfile tokens. Syntax:
//
//	lock_gateway [<matcher>] {
//		backend     <name> {
//			<settings of the backend>
//		}
//		max_wait    <duration>
//		max_waiters <number>
//		max_pending <number>
//	}
//
// Every subdirective is optional, and so is the block.
func (h *Handler) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // the directive's name
	if d.NextArg() {
		return d.ArgErr()
	}
	given := make(settings.Given)
	for d.NextBlock(0) {
		err := given.Once(d)
		if err != nil {
			return err
		}
		switch d.Val() {
		case "backend":
			err = h.unmarshalBackend(d)
		case "max_wait":
			h.MaxWait, err = settings.Duration(d)
		case "max_waiters":
			h.MaxWaiters, err = settings.Count(d)
		case "max_pending":
			h.MaxPending, err = settings.Count(d)
		default:
			err = d.Errf("unrecognized subdirective %q; there are backend, max_wait, max_waiters and max_pending", d.Val())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (h *Handler) unmarshalBackend(d *caddyfile.Dispenser) error {
	if !d.NextArg() {
		return d.ArgErr()
	}
	name := d.Val()
	unmarshaler, err := caddyfile.UnmarshalModule(d, backendNamespace+name)
	if err != nil {
		return err
	}
	if _, ok := unmarshaler.(Opener); !ok {
		return d.Errf("module %s%s does not open lock backends", backendNamespace, name)
	}
	h.BackendRaw = caddyconfig.JSONModuleObject(unmarshaler, "module", name, nil)
	return nil
}

var _ caddyfile.Unmarshaler = (*Handler)(nil)

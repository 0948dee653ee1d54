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
//		page        [<path>]
//		health      [<path>]
//		log_lock_ids
//		hash_key    <secret>
//	}
//
// Every subdirective is optional, and so is the block.
func (h *Handler) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // the directive's name
	return settings.NewBlock(d).Each(d, func() (err error) {
		switch d.Val() {
		case "backend":
			err = h.unmarshalBackend(d)
		case "max_wait":
			h.MaxWait, err = settings.Duration(d)
		case "max_waiters":
			h.MaxWaiters, err = settings.Count(d)
		case "max_pending":
			h.MaxPending, err = settings.Count(d)
		case "page":
			h.Page, err = unmarshalPage(d)
		case "health":
			h.Health, err = unmarshalHealth(d)
		case "log_lock_ids":
			h.LogLockIDs = true
			err = settings.NoArgument(d)
		case "hash_key":
			h.HashKey, err = settings.Text(d)
		default:
			err = d.Errf("unrecognized subdirective %q; there are backend, max_wait, max_waiters, max_pending, page, health, log_lock_ids and hash_key", d.Val())
		}
		return err
	})
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

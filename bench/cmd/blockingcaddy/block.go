package main

import (
	"net/http"
	"strconv"
	"sync/atomic"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

func init() {
	caddy.RegisterModule(block{})
	httpcaddyfile.RegisterHandlerDirective("block", func(h httpcaddyfile.Helper) (caddyhttp.MiddlewareHandler, error) {
		return block{}, new(block).UnmarshalCaddyfile(h.Dispenser)
	})
	httpcaddyfile.RegisterDirectiveOrder("block", httpcaddyfile.Before, "respond")
}

// block holds every request until its client goes away, in the cheapest way: it
// has nothing of its own. The path /blocked is answered with how many are held.
type block struct{}

var blocked atomic.Int64

// CaddyModule returns the Caddy module information.
func (block) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "http.handlers.bench_block",
		New: func() caddy.Module { return new(block) },
	}
}

// ServeHTTP implements caddyhttp.MiddlewareHandler.
func (block) ServeHTTP(w http.ResponseWriter, r *http.Request, _ caddyhttp.Handler) error {
	if r.URL.Path == "/blocked" {
		_, err := w.Write(strconv.AppendInt(nil, blocked.Load(), 10))
		return err
	}
	blocked.Add(1)
	<-r.Context().Done()
	blocked.Add(-1)
	return nil
}

// UnmarshalCaddyfile sets up the handler, which has no settings.
func (*block) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next()
	if d.NextArg() {
		return d.ArgErr()
	}
	return nil
}

var (
	_ caddyhttp.MiddlewareHandler = block{}
	_ caddyfile.Unmarshaler       = (*block)(nil)
)

// Package caddymodule is the Caddy HTTP handler that serves locks: routes,
// parameters, answers, configuration, reloads and shutdown. What a lock is, it
// takes from package lock; where the state lives, from a guest module.
package caddymodule

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	_ "github.com/lockgateway/lockgateway/backends/memory" // the default backend
	"github.com/lockgateway/lockgateway/internal/page"
	"github.com/lockgateway/lockgateway/internal/telemetry"
)

func init() { caddy.RegisterModule(new(Handler)) }

// Handler serves distributed locks and counting semaphores over plain GET
// requests, with JSON answers:
//
//	GET /v1/{maxValue}/{lockId}/{acquire|release|value|reset}
//
// Requests whose path is not under `/v1/`, and not the `page`'s, go to the next
// handler, so that it can be added to an existing site. It has no authentication of its own: put
// one of Caddy's in front where not everybody may hold locks.
//
// Locks live in the backend. Handlers, also of several sites, share locks if
// their backends name the same data, and a config reload keeps them; requests
// that wait keep their place. When the process exits, requests that wait are
// answered 503 at once.
type Handler struct {
	// Where the locks live: a module in the `http.lock_gateway.backends`
	// namespace. Default: `memory`, which forgets every lock when the process
	// ends.
	BackendRaw json.RawMessage `json:"backend,omitempty" caddy:"namespace=http.lock_gateway.backends inline_key=module"`

	// The longest time that a request may wait for a slot. One that asks for
	// more waits this long and is then answered as if its own time had run
	// out. It must be less than the server's `write_timeout`, if that is set.
	// Default: 0, which is no limit.
	MaxWait caddy.Duration `json:"max_wait,omitempty"`

	// How many requests may wait for one lock, where all the requests of one
	// holder count once. A further one is answered 503. Default: 0, which is
	// no limit.
	MaxWaiters int64 `json:"max_waiters,omitempty"`

	// How many acquires with a `waitTimeoutMs` may be under way in this process
	// for all locks of the backend, through whatever handler. A further one is answered 503 if it cannot be
	// served at once. Default: 0, which is no limit.
	MaxPending int64 `json:"max_pending,omitempty"`

	// Where to serve a page on which locks can be tried, with the manual: `/`, or
	// a path such as `/help`. It and what it needs (everything there under
	// `lock_gateway/`) is part of this module and loads nothing from elsewhere.
	// Default: no page.
	Page string `json:"page,omitempty"`

	// Where to serve the health of this site's backend, for those who cannot reach
	// Caddy's admin API: under this path, `/live` answers 200 as long as the
	// process serves requests, and `/ready` answers 200 if its backend can serve
	// them, or else 503. Default: nowhere.
	Health string `json:"health,omitempty"`

	// Whether the log names locks. Whoever knows the id of a lock can release it,
	// so by default the log has a hash of it.
	LogLockIDs bool `json:"log_lock_ids,omitempty"`

	// A secret that the hash which stands for a lock in logs and traces depends
	// on. Give all instances the same to have the same hashes everywhere. May
	// contain placeholders such as `{env.NAME}`. Default: a random one, made when
	// the process starts.
	HashKey string `json:"hash_key,omitempty"`

	page     *page.Page // nil if there is none
	instance *instance
	use      *use // what Cleanup gives back; nil until instance is in use
	logger   *zap.Logger
}

// CaddyModule returns the Caddy module information.
func (*Handler) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "http.handlers.lock_gateway",
		New: func() caddy.Module { return new(Handler) },
	}
}

// Provision opens the backend, or takes a share in it if it is open already. It
// does not wait for a backend that is elsewhere to be reached.
func (h *Handler) Provision(ctx caddy.Context) error {
	h.logger = ctx.Logger()
	key, err := caddy.NewReplacer().ReplaceOrErr(h.HashKey, true, true)
	if err != nil {
		return fmt.Errorf("hash_key: %w", err)
	}
	h.HashKey = key
	if err := h.provisionPage(); err != nil {
		return err
	}
	byDefault := h.BackendRaw == nil
	opener, err := h.loadBackend(ctx)
	if err != nil {
		return err
	}
	h.use, err = h.openInstance(ctx, opener, byDefault)
	if err != nil {
		return fmt.Errorf("backend: %w", err)
	}
	h.instance = h.use.instance
	if err := telemetry.Expose(ctx.GetMetricsRegistry()); err != nil {
		return err
	}
	h.logSettings()

	// Caddy puts the server there for every handler in one of its routes.
	if server, ok := ctx.Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server); ok {
		server.RegisterOnShutdown(drainIfExiting)
		h.warnOfWriteTimeout(time.Duration(server.WriteTimeout))
	}
	return nil
}

func (h *Handler) loadBackend(ctx caddy.Context) (Opener, error) {
	var (
		module any
		err    error
	)
	if h.BackendRaw == nil {
		module, err = ctx.LoadModuleByID(backendNamespace+"memory", nil)
	} else {
		module, err = ctx.LoadModule(h, "BackendRaw")
	}
	if err != nil {
		return nil, fmt.Errorf("loading the backend module: %w", err)
	}
	opener, ok := module.(Opener)
	if !ok {
		return nil, fmt.Errorf("backend: module %T does not open lock backends", module)
	}
	return opener, nil
}

func (h *Handler) warnOfWriteTimeout(writeTimeout time.Duration) {
	maxWait := time.Duration(h.MaxWait)
	if writeTimeout > 0 && (maxWait == 0 || maxWait >= writeTimeout) {
		h.logger.Warn("requests that wait longer than the server's write timeout get no answer; set max_wait below it, or no write timeout",
			zap.Duration("write_timeout", writeTimeout), zap.Duration("max_wait", maxWait))
	}
}

// Validate checks the limits.
func (h *Handler) Validate() error {
	var errs []error
	for _, limit := range []struct {
		name  string
		value int64
	}{{"max_wait", int64(h.MaxWait)}, {"max_waiters", h.MaxWaiters}, {"max_pending", h.MaxPending}} {
		if limit.value < 0 {
			errs = append(errs, fmt.Errorf("%s is negative; leave it out for no limit", limit.name))
		}
	}
	return errors.Join(append(errs, h.checkHealth())...)
}

// Cleanup ends the handler's share in the backend. Requests under way keep
// theirs.
func (h *Handler) Cleanup() error {
	if h.use == nil {
		return nil
	}
	return h.use.end()
}

// Interface guards
var (
	_ caddy.Module                = (*Handler)(nil)
	_ caddy.Provisioner           = (*Handler)(nil)
	_ caddy.Validator             = (*Handler)(nil)
	_ caddy.CleanerUpper          = (*Handler)(nil)
	_ caddyhttp.MiddlewareHandler = (*Handler)(nil)
)

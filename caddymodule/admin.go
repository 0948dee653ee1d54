package caddymodule

import (
	"errors"
	"net/http"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/lockgateway/lockgateway/internal/adminapi"
	"github.com/lockgateway/lockgateway/lock"
)

func init() { caddy.RegisterModule(new(adminAPI)) }

// adminAPI is what operators look into locks with, and free them. Lock ids are
// secrets, so it is on Caddy's admin API only. Caddy logs the URI of each request
// there; so parameters may come in a body, as a form, and whoever names locks sends
// them so.
//
// Caddy makes it before the handlers of any config, so the open backends are looked
// up with each request.
type adminAPI struct{}

// CaddyModule returns the Caddy module information.
func (*adminAPI) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "admin.api.lock_gateway",
		New: func() caddy.Module { return new(adminAPI) },
	}
}

// Routes returns the routes below /lock_gateway/.
func (*adminAPI) Routes() []caddy.AdminRoute {
	return append(adminHealth(),
		adminapi.Look("backends", func(*http.Request) (any, error) { return backendsJSON{Backends: openBackends()}, nil }),
		adminapi.Look("gateways", onBackend(adminGateways)),
		adminapi.Look("locks", onBackend(adminLocks)),
		adminapi.Look("lock", onBackend(adminLock)),
		adminapi.Change("reset", onBackend(adminReset)),
		adminapi.Change("release", onBackend(adminRelease)),
	)
}

// adminError gives an error its status. Caddy logs it: what names a lock stays out.
func adminError(err error) error {
	var (
		api    caddy.APIError
		record *lock.RecordError
	)
	switch {
	case errors.As(err, &api):
		return api
	case errors.As(err, &record):
		return adminapi.Refuse(http.StatusServiceUnavailable, "the store's record of this lock cannot be read, and is left as it is: %w", record.Err)
	case errors.Is(err, lock.ErrOutcomeUnknown):
		return adminapi.Refuse(http.StatusGatewayTimeout, "%w", err)
	case errors.Is(err, lock.ErrUnavailable), errors.Is(err, lock.ErrClosing):
		return adminapi.Refuse(http.StatusServiceUnavailable, "%w", err)
	}
	return err
}

// lockParameter returns the lock that a request names.
func lockParameter(r *http.Request) (lock.Key, error) {
	name := r.Form.Get("lock")
	if name == "" {
		return lock.Key{}, adminapi.Refuse(http.StatusBadRequest, "lock is missing: name one as maxValue/lockId")
	}
	key, err := lock.ParseKey(name)
	if err != nil {
		// Caddy logs this. The error itself may quote a part of the id.
		return lock.Key{}, adminapi.Refuse(http.StatusBadRequest, "lock is not written as maxValue/lockId, such as 1/my-lock: a number from 1 on, a slash, and 1 to 256 characters")
	}
	return key, nil
}

// detailJSON is a lock in detail.
type detailJSON struct {
	Backend string `json:"backend"`
	lockJSON
	Fresh     bool         `json:"fresh,omitempty"`
	Anonymous int64        `json:"anonymous"`
	Holders   []holderJSON `json:"holders"`
	Queue     []queueJSON  `json:"queue"`

	// MoreHolders is how many of very many named holders are left out, MorePlaces
	// how many places at the end of a very long queue.
	MoreHolders int64 `json:"moreHolders,omitempty"`
	MorePlaces  int64 `json:"morePlaces,omitempty"`
}

type holderJSON struct {
	Holder      string    `json:"holder"`
	Token       uint64    `json:"token"`
	Since       time.Time `json:"since,omitzero"`
	ExpiresInMs int64     `json:"expiresInMs,omitempty"`
}

type queueJSON struct {
	Count    int64     `json:"count"`
	Named    bool      `json:"named,omitempty"`
	Since    time.Time `json:"since,omitzero"`
	Gateways []string  `json:"gateways,omitempty"`
}

func adminLock(r *http.Request, b *openBackend) (any, error) {
	key, err := lockParameter(r)
	if err != nil {
		return nil, err
	}
	d, err := b.inspector.Inspect(r.Context(), key)
	if err != nil {
		return nil, err
	}
	a := detailJSON{
		Backend: b.ID, lockJSON: describeState(d.State), Fresh: d.Fresh, Anonymous: d.Anonymous,
		Holders: []holderJSON{}, Queue: []queueJSON{},
		MoreHolders: d.Held - d.Anonymous - int64(len(d.Holders)), MorePlaces: d.Waiting,
	}
	for _, h := range d.Holders {
		a.Holders = append(a.Holders, holderJSON{
			Holder: h.Name, Token: h.Token, Since: shown(h.Since),
			ExpiresInMs: int64((h.ExpiresIn + time.Millisecond - 1) / time.Millisecond),
		})
	}
	for _, q := range d.Queue {
		a.MorePlaces -= q.Count
		a.Queue = append(a.Queue, queueJSON{Count: q.Count, Named: q.Named, Since: shown(q.Since), Gateways: q.Gateways})
	}
	return a, nil
}

type resetJSON struct {
	Backend string `json:"backend"`
	Reset   bool   `json:"reset"`
}

func adminReset(r *http.Request, b *openBackend) (any, error) {
	key, err := lockParameter(r)
	if err != nil {
		return nil, err
	}
	if err := b.instance.backend.Reset(r.Context(), key); err != nil {
		return nil, err
	}
	b.instance.byOperator("an operator reset a lock", key)
	return resetJSON{Backend: b.ID, Reset: true}, nil
}

type releaseJSON struct {
	Backend  string `json:"backend"`
	Released bool   `json:"released"`
}

func adminRelease(r *http.Request, b *openBackend) (any, error) {
	key, err := lockParameter(r)
	if err != nil {
		return nil, err
	}
	holder := r.Form.Get("holder")
	if r.Form.Has("holder") {
		if err := lock.CheckHolder(holder); err != nil {
			return nil, adminapi.Refuse(http.StatusBadRequest, "holder: %w; leave it out to release a slot without a name", err)
		}
	}
	released, err := b.instance.backend.Release(r.Context(), key, holder)
	if err != nil {
		return nil, err
	}
	if released {
		b.instance.byOperator("an operator released a slot of a lock", key)
	}
	return releaseJSON{Backend: b.ID, Released: released}, nil
}

type gatewaysJSON struct {
	Backend  string        `json:"backend"`
	Gateways []gatewayJSON `json:"gateways"`
}

type gatewayJSON struct {
	ID    string    `json:"id"`
	Self  bool      `json:"self,omitempty"`
	Host  string    `json:"host,omitempty"`
	Since time.Time `json:"since,omitzero"`
}

func adminGateways(r *http.Request, b *openBackend) (any, error) {
	list, err := b.inspector.Gateways(r.Context())
	if err != nil {
		return nil, err
	}
	a := gatewaysJSON{Backend: b.ID, Gateways: []gatewayJSON{}}
	for _, g := range list {
		a.Gateways = append(a.Gateways, gatewayJSON(g))
	}
	return a, nil
}

// Interface guards
var (
	_ caddy.Module      = (*adminAPI)(nil)
	_ caddy.AdminRouter = (*adminAPI)(nil)
)

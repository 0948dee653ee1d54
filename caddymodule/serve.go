package caddymodule

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/lockgateway/lockgateway/internal/lockhttp"
	"github.com/lockgateway/lockgateway/lock"
)

// statusClientGone is what the access log says of a request whose client went
// away before its answer: nginx's number, and Caddy's.
const statusClientGone = 499

// giveBackTimeout bounds how long a request may stay to give back a slot whose
// answer could not be delivered.
const giveBackTimeout = 10 * time.Second

// ServeHTTP implements caddyhttp.MiddlewareHandler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	if !strings.HasPrefix(r.URL.Path, lockhttp.Prefix) {
		return next.ServeHTTP(w, r)
	}
	req, bad := lockhttp.Parse(r)
	if bad == nil {
		bad = lockhttp.DrainBody(w, r)
	}
	if bad != nil {
		lockhttp.WriteProblem(w, bad)
		return nil
	}
	if !h.instance.enter() {
		h.writeError(w, req, lock.ErrClosing)
		return nil
	}
	defer func() {
		if err := h.instance.leave(); err != nil {
			h.logger.Error("closing the lock backend", zap.Error(err))
		}
	}()
	switch req.Action {
	case lockhttp.Acquire:
		h.acquire(w, r, req)
	case lockhttp.Release:
		h.release(w, r, req)
	case lockhttp.Value:
		h.value(w, r, req)
	case lockhttp.Reset:
		h.reset(w, r, req)
	}
	return nil
}

func (h *Handler) acquire(w http.ResponseWriter, r *http.Request, req lockhttp.Request) {
	ctx := r.Context()
	wanted := lock.AcquireRequest{
		Key:        req.Key,
		Wait:       req.Wait,
		Holder:     req.Holder,
		TTL:        req.TTL,
		MaxWaiters: h.MaxWaiters,
	}
	if h.MaxWait > 0 {
		wanted.Wait = min(wanted.Wait, time.Duration(h.MaxWait))
	}
	res, err := h.tryAcquire(ctx, wanted)
	if ctx.Err() != nil {
		if err == nil && res.Acquired {
			h.giveBack(ctx, wanted, res)
		}
		lockhttp.WriteNothing(w, statusClientGone)
		return
	}
	if err != nil {
		h.writeError(w, req, err)
		return
	}
	// The answer is out once it is written without an error. From there on the
	// client may have read it, whatever becomes of the connection: giving the
	// slot back then would make two holders. Only after a wait can the connection
	// have died in a way that a write shows and the context does not (a write
	// timeout); to see it costs a flush, which is not for free.
	if err := lockhttp.WriteAcquired(w, res, wanted.Wait > 0); err != nil && res.Acquired {
		h.giveBack(ctx, wanted, res)
	}
}

// tryAcquire acquires within the limits of waiting.
func (h *Handler) tryAcquire(ctx context.Context, wanted lock.AcquireRequest) (lock.AcquireResult, error) {
	i := h.instance
	if i.orphaned.Load() {
		return lock.AcquireResult{}, lock.ErrClosing
	}
	if wanted.Wait <= 0 {
		return i.backend.Acquire(ctx, wanted)
	}
	defer i.waiting.Add(-1)
	if n := i.waiting.Add(1); h.MaxPending <= 0 || n <= h.MaxPending {
		return i.backend.Acquire(ctx, wanted)
	}
	// A request beyond the limit may still have what is free.
	wanted.Wait = 0
	res, err := i.backend.Acquire(ctx, wanted)
	if err == nil && !res.Acquired {
		err = &lock.LimitError{Limit: "max_pending", Max: h.MaxPending}
	}
	return res, err
}

// giveBack undoes a grant whose client cannot be told. The client's context is
// done by then, or about to be.
func (h *Handler) giveBack(ctx context.Context, req lock.AcquireRequest, res lock.AcquireResult) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveBackTimeout)
	defer cancel()
	if err := h.instance.backend.GiveBack(ctx, req, res); err != nil {
		h.logger.Error("a slot whose client went away was not given back in time; it is held until the backend gets to it, or until it is released, expires or is reset",
			zap.Error(err))
	}
}

func (h *Handler) release(w http.ResponseWriter, r *http.Request, req lockhttp.Request) {
	released, err := h.instance.backend.Release(r.Context(), req.Key, req.Holder)
	if err != nil {
		h.writeFailure(w, r, req, err)
		return
	}
	lockhttp.WriteReleased(w, released)
}

func (h *Handler) value(w http.ResponseWriter, r *http.Request, req lockhttp.Request) {
	v, err := h.instance.backend.Value(r.Context(), req.Key, req.Detail)
	if err != nil {
		h.writeFailure(w, r, req, err)
		return
	}
	lockhttp.WriteValue(w, v, req.Detail)
}

func (h *Handler) reset(w http.ResponseWriter, r *http.Request, req lockhttp.Request) {
	if err := h.instance.backend.Reset(r.Context(), req.Key); err != nil {
		h.writeFailure(w, r, req, err)
		return
	}
	lockhttp.WriteReset(w)
}

// writeFailure answers an operation that failed, unless its client has gone.
func (h *Handler) writeFailure(w http.ResponseWriter, r *http.Request, req lockhttp.Request, err error) {
	if r.Context().Err() != nil {
		lockhttp.WriteNothing(w, statusClientGone)
		return
	}
	h.writeError(w, req, err)
}

// writeError answers an operation that failed. An error of a kind that backends
// must not return is logged, and taken for the worst.
func (h *Handler) writeError(w http.ResponseWriter, req lockhttp.Request, err error) {
	var (
		limit  *lock.LimitError
		record *lock.RecordError
	)
	switch {
	case errors.As(err, &limit):
		lockhttp.WriteProblem(w, lockhttp.Unavailable(limit.Error(), false))
		return
	case errors.As(err, &record):
		lockhttp.WriteProblem(w, lockhttp.Unavailable(record.Error(), false))
		return
	case errors.Is(err, lock.ErrClosing):
		lockhttp.WriteProblem(w, lockhttp.Unavailable(lock.ErrClosing.Error(), true))
		return
	case errors.Is(err, lock.ErrUnavailable):
		lockhttp.WriteProblem(w, lockhttp.Unavailable(lock.ErrUnavailable.Error(), false))
		return
	case !errors.Is(err, lock.ErrOutcomeUnknown):
		h.logger.Error("unexpected error of the lock backend", zap.Error(err))
	}
	if req.Action == lockhttp.Value { // it changes nothing, whatever its outcome
		lockhttp.WriteProblem(w, lockhttp.Unavailable(lock.ErrUnavailable.Error(), false))
		return
	}
	lockhttp.WriteProblem(w, &lockhttp.Problem{Status: http.StatusGatewayTimeout, Detail: lock.ErrOutcomeUnknown.Error()})
}

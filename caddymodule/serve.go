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
		if h.serveHealth(w, r) {
			return nil
		}
		return h.servePage(w, r, next)
	}
	req, bad := lockhttp.Parse(r)
	if bad == nil {
		bad = lockhttp.DrainBody(w, r)
	}
	if bad != nil {
		lockhttp.WriteProblem(w, bad)
		return nil
	}
	started := time.Now()
	if !h.instance.enter() {
		h.writeError(w, req, lock.ErrClosing)
		return nil
	}
	defer func() {
		if err := h.instance.leave(); err != nil {
			h.logger.Error("closing the lock backend", zap.Error(err))
		}
	}()
	ctx, span := h.startSpan(r.Context(), req)
	var (
		o      outcome
		waited time.Duration
	)
	switch req.Action {
	case lockhttp.Acquire:
		o, waited = h.acquire(ctx, w, req)
	case lockhttp.Release:
		o = h.release(ctx, w, req)
	case lockhttp.Value:
		o = h.value(ctx, w, req)
	case lockhttp.Reset:
		o = h.reset(ctx, w, req)
	}
	h.instance.meters.finished(req.Action, o, time.Since(started), waited)
	endSpan(span, o)
	return nil
}

// acquire returns how long the backend had an acquire that is ready to wait.
func (h *Handler) acquire(ctx context.Context, w http.ResponseWriter, req lockhttp.Request) (o outcome, waited time.Duration) {
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
	var began time.Time
	if wanted.Wait > 0 {
		began = time.Now()
	}
	res, err := h.tryAcquire(ctx, wanted)
	if wanted.Wait > 0 {
		waited = time.Since(began)
	}
	if ctx.Err() != nil {
		if err == nil && res.Acquired {
			h.giveBack(ctx, wanted, res)
		}
		lockhttp.WriteNothing(w, statusClientGone)
		return clientGone, waited
	}
	if err != nil {
		return h.writeError(w, req, err), waited
	}
	// The answer is out once it is written without an error. From there on the
	// client may have read it, whatever becomes of the connection: giving the
	// slot back then would make two holders. Only after a wait can the connection
	// have died in a way that a write shows and the context does not (a write
	// timeout); to see it costs a flush, which is not for free.
	if err := lockhttp.WriteAcquired(w, res, wanted.Wait > 0); err != nil && res.Acquired {
		h.giveBack(ctx, wanted, res)
		return clientGone, waited
	}
	switch {
	case res.Acquired:
		return acquired, waited
	case wanted.Wait <= 0:
		return busy, 0
	case waited < wanted.Wait:
		return withdrawn, waited
	}
	return timedOut, waited
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
	h.instance.meters.givenBack.Add(ctx, 1, h.instance.meters.ofBackend)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveBackTimeout)
	defer cancel()
	if err := h.instance.backend.GiveBack(ctx, req, res); err != nil {
		var record *lock.RecordError
		if errors.As(err, &record) {
			err = record.Err // its own text has the id of the lock
		}
		h.logger.Error("a slot whose client went away was not given back in time; it is held until the backend gets to it, or until it is released, expires or is reset",
			zap.Error(err))
	}
}

func (h *Handler) release(ctx context.Context, w http.ResponseWriter, req lockhttp.Request) outcome {
	ok, err := h.instance.backend.Release(ctx, req.Key, req.Holder)
	if err != nil {
		return h.writeFailure(ctx, w, req, err)
	}
	lockhttp.WriteReleased(w, ok)
	if !ok {
		return notHeld
	}
	return released
}

func (h *Handler) value(ctx context.Context, w http.ResponseWriter, req lockhttp.Request) outcome {
	v, err := h.instance.backend.Value(ctx, req.Key, req.Detail)
	if err != nil {
		return h.writeFailure(ctx, w, req, err)
	}
	lockhttp.WriteValue(w, v, req.Detail)
	return done
}

func (h *Handler) reset(ctx context.Context, w http.ResponseWriter, req lockhttp.Request) outcome {
	if err := h.instance.backend.Reset(ctx, req.Key); err != nil {
		return h.writeFailure(ctx, w, req, err)
	}
	h.logger.Info("a lock was reset", h.lockField(req.Key))
	lockhttp.WriteReset(w)
	return done
}

// writeFailure answers an operation that failed, unless its client has gone.
func (h *Handler) writeFailure(ctx context.Context, w http.ResponseWriter, req lockhttp.Request, err error) outcome {
	if ctx.Err() != nil {
		lockhttp.WriteNothing(w, statusClientGone)
		return clientGone
	}
	return h.writeError(w, req, err)
}

// writeError answers an operation that failed. An error of a kind that backends
// must not return is logged, and taken for the worst.
func (h *Handler) writeError(w http.ResponseWriter, req lockhttp.Request, err error) outcome {
	var (
		limit  *lock.LimitError
		record *lock.RecordError
	)
	switch {
	case errors.As(err, &limit):
		h.instance.reached(h.logger, limit)
		lockhttp.WriteProblem(w, lockhttp.Unavailable(limit.Error(), false))
		return limited
	case errors.As(err, &record):
		lockhttp.WriteProblem(w, lockhttp.Unavailable(record.Error(), false))
		return unavailable
	case errors.Is(err, lock.ErrClosing):
		lockhttp.WriteProblem(w, lockhttp.Unavailable(lock.ErrClosing.Error(), true))
		return closing
	case errors.Is(err, lock.ErrUnavailable):
		lockhttp.WriteProblem(w, lockhttp.Unavailable(lock.ErrUnavailable.Error(), false))
		return unavailable
	case !errors.Is(err, lock.ErrOutcomeUnknown):
		h.logger.Error("unexpected error of the lock backend", zap.Error(err))
	}
	if req.Action == lockhttp.Value { // it changes nothing, whatever its outcome
		lockhttp.WriteProblem(w, lockhttp.Unavailable(lock.ErrUnavailable.Error(), false))
		return unavailable
	}
	lockhttp.WriteProblem(w, &lockhttp.Problem{Status: http.StatusGatewayTimeout, Detail: lock.ErrOutcomeUnknown.Error()})
	return unknown
}

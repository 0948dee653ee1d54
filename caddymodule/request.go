package caddymodule

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/lockgateway/lockgateway/lock"
)

// action is what a request does to a lock; the zero action is none.
type action uint8

const (
	acquire action = iota + 1
	release
	value
	reset
)

func parseAction(s string) action {
	switch s {
	case "acquire":
		return acquire
	case "release":
		return release
	case "value":
		return value
	case "reset":
		return reset
	}
	return 0
}

// request is a request that breaks no rule of the contract.
type request struct {
	action action
	key    lock.Key
	wait   time.Duration
	holder string
	ttl    time.Duration
	detail bool
}

// parseRequest reads all of a request but its body. The rules are those of
// docs/api.md, checked in this order: the path's form, the method, the
// parameters, whether it may be a replay.
func parseRequest(r *http.Request) (request, *problem) {
	segments, bad := splitPath(r.URL)
	if bad != nil {
		return request{}, bad
	}
	req := request{action: parseAction(segments.action)}
	if req.action == 0 {
		return request{}, notFound("the last part of the path must be acquire, release, value or reset")
	}
	if r.Method != http.MethodGet {
		return request{}, &problem{
			status: http.StatusMethodNotAllowed,
			detail: "every operation is a GET request",
			allow:  http.MethodGet,
		}
	}
	var err error
	if req.key, err = segments.key(); err != nil {
		return request{}, badRequest(err)
	}
	if err := req.readQuery(r.URL.RawQuery); err != nil {
		return request{}, badRequest(err)
	}
	if req.action != value && maybeReplayed(r) {
		return request{}, &problem{
			status: http.StatusTooEarly,
			detail: "a request with an effect is not accepted as TLS early data, which can be replayed; send it again after the handshake",
		}
	}
	return req, nil
}

// maybeReplayed tells whether a request came as TLS early data, here or at a
// proxy before (RFC 8470).
func maybeReplayed(r *http.Request) bool {
	return r.TLS != nil && !r.TLS.HandshakeComplete || r.Header.Get("Early-Data") == "1"
}

// segments are the parts of a path /v1/{maxValue}/{lockId}/{action}.
type segments struct {
	name   string // maxValue/lockId as they are in the path
	action string // decoded
}

// splitPath splits the path as it was before percent-decoding: an encoded slash
// must not look like one that separates.
func splitPath(u *url.URL) (segments, *problem) {
	escaped := u.EscapedPath()
	if u.RawPath != "" {
		// EscapedPath gives up on a RawPath with characters that ought to be
		// encoded, and with it on what tells the slashes apart.
		if path, err := url.PathUnescape(u.RawPath); err == nil && path == u.Path {
			escaped = u.RawPath
		}
	}
	form := func() (segments, *problem) {
		return segments{}, notFound("the path must be /v1/{maxValue}/{lockId}/{action}, with no part of it empty")
	}
	version, rest, _ := strings.Cut(strings.TrimPrefix(escaped, "/"), "/")
	if v, err := url.PathUnescape(version); err != nil || v != "v1" {
		return form()
	}
	last := strings.LastIndexByte(rest, '/')
	if last < 0 {
		return form()
	}
	name, encodedAction := rest[:last], rest[last+1:]
	maxValue, id, ok := strings.Cut(name, "/")
	if !ok || maxValue == "" || id == "" || strings.Contains(id, "/") {
		return form()
	}
	decodedAction, err := url.PathUnescape(encodedAction)
	if err != nil {
		return form()
	}
	return segments{name: name, action: decodedAction}, nil
}

// key decodes the lock's identity.
func (s segments) key() (lock.Key, error) {
	if !strings.Contains(s.name, "%") {
		return lock.ParseKey(s.name)
	}
	maxValue, id, _ := strings.Cut(s.name, "/")
	maxValue, err := url.PathUnescape(maxValue)
	if err != nil {
		return lock.Key{}, fmt.Errorf("maxValue: %w", err)
	}
	id, err = url.PathUnescape(id)
	if err != nil {
		return lock.Key{}, fmt.Errorf("lockId: %w", err)
	}
	return lock.NewKey(maxValue, id)
}

// Package lockhttp is the HTTP contract of the gateway (docs/api.md) without a
// server: what a request asks for, and the bytes of an answer. It holds no
// state, and its functions may be called by any number of goroutines.
package lockhttp

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/lockgateway/lockgateway/lock"
)

// Prefix is what the path of every request of the API begins with. Others are
// none of its business.
const Prefix = "/v1/"

// Action is what a request does to a lock; the zero Action is none.
type Action uint8

// The actions.
const (
	Acquire Action = iota + 1
	Release
	Value
	Reset
)

var actions = map[string]Action{"acquire": Acquire, "release": Release, "value": Value, "reset": Reset}

// Request is a request that breaks no rule of the contract.
type Request struct {
	Action Action
	Key    lock.Key
	Wait   time.Duration // of an acquire: lock.Forever has no end
	Holder string        // of an acquire or a release; empty if anonymous
	TTL    time.Duration // of an acquire with a holder; 0 for none
	Detail bool          // of a value
}

// Parse reads all of a request but its body, if its path begins with Prefix.
// The rules are checked in this order: the path's form (404), the method (405),
// the parameters (400), whether it may be a replay (425).
func Parse(r *http.Request) (Request, *Problem) {
	path, bad := splitPath(r.URL)
	if bad != nil {
		return Request{}, bad
	}
	req := Request{Action: actions[path.action]}
	if req.Action == 0 {
		return Request{}, notFound("the last part of the path must be acquire, release, value or reset")
	}
	if r.Method != http.MethodGet {
		return Request{}, &Problem{
			Status: http.StatusMethodNotAllowed,
			Detail: "every operation is a GET request",
			allow:  http.MethodGet,
		}
	}
	var err error
	if req.Key, err = path.key(); err != nil {
		return Request{}, badRequest(err)
	}
	if err := req.readQuery(r.URL.RawQuery); err != nil {
		return Request{}, badRequest(err)
	}
	if req.Action != Value && maybeReplayed(r) {
		return Request{}, &Problem{
			Status: http.StatusTooEarly,
			Detail: "a request with an effect is not accepted as TLS early data, which can be replayed; send it again after the handshake",
		}
	}
	return req, nil
}

// maybeReplayed tells whether a request came as TLS early data, here or at a
// proxy before (RFC 8470).
func maybeReplayed(r *http.Request) bool {
	return r.TLS != nil && !r.TLS.HandshakeComplete || r.Header.Get("Early-Data") == "1"
}

// pathParts are the parts of a path /v1/{maxValue}/{lockId}/{action}.
type pathParts struct {
	name   string // maxValue/lockId as they are in the path
	action string // decoded
}

// splitPath splits the path as it was before percent-decoding: an encoded slash
// must not look like one that separates.
func splitPath(u *url.URL) (pathParts, *Problem) {
	escaped := u.EscapedPath()
	if u.RawPath != "" {
		// EscapedPath gives up on a RawPath with characters that ought to be
		// encoded, and with it on what tells the slashes apart.
		if path, err := url.PathUnescape(u.RawPath); err == nil && path == u.Path {
			escaped = u.RawPath
		}
	}
	version, rest, _ := strings.Cut(strings.TrimPrefix(escaped, "/"), "/")
	last := strings.LastIndexByte(rest, '/')
	if v, err := url.PathUnescape(version); err != nil || v != "v1" || last < 0 {
		return pathParts{}, wrongForm()
	}
	name := rest[:last]
	maxValue, id, ok := strings.Cut(name, "/")
	if !ok || maxValue == "" || id == "" || strings.Contains(id, "/") {
		return pathParts{}, wrongForm()
	}
	action, err := url.PathUnescape(rest[last+1:])
	if err != nil {
		return pathParts{}, wrongForm()
	}
	return pathParts{name: name, action: action}, nil
}

func wrongForm() *Problem {
	return notFound("the path must be /v1/{maxValue}/{lockId}/{action}, with no part of it empty")
}

// key decodes the lock's identity.
func (p pathParts) key() (lock.Key, error) {
	if !strings.Contains(p.name, "%") {
		return lock.ParseKey(p.name)
	}
	maxValue, id, _ := strings.Cut(p.name, "/")
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

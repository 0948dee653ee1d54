// Package adminapi is how the project's routes on Caddy's admin API take requests and
// answer them.
package adminapi

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/caddyserver/caddy/v2"
)

// Path is what the paths of all routes begin with.
const Path = "/lock_gateway/"

// formSize bounds the body of a request.
const formSize = 64 << 10

// Look makes a route that changes nothing. Parameters are in r.Form: Caddy logs the URI
// of each request, so they may come in a body. What answer returns is sent as JSON; an
// error should be of Refuse.
func Look(name string, answer func(*http.Request) (any, error)) caddy.AdminRoute {
	return route(name, "GET, POST", answer)
}

// Change makes a route that may change something, which takes POST only. See Look.
func Change(name string, answer func(*http.Request) (any, error)) caddy.AdminRoute {
	return route(name, "POST", answer)
}

func route(name, methods string, answer func(*http.Request) (any, error)) caddy.AdminRoute {
	serve := func(w http.ResponseWriter, r *http.Request) error {
		if r.Method != http.MethodPost && (r.Method != http.MethodGet || methods == "POST") {
			w.Header().Set("Allow", methods)
			return Refuse(http.StatusMethodNotAllowed, "%s takes %s", Path+name, methods)
		}
		r.Body = http.MaxBytesReader(w, r.Body, formSize)
		if err := r.ParseForm(); err != nil {
			return Refuse(http.StatusBadRequest, "the parameters cannot be read: %w", err)
		}
		a, err := answer(r)
		if err != nil {
			return err
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		return json.NewEncoder(w).Encode(a)
	}
	return caddy.AdminRoute{Pattern: Path + name, Handler: caddy.AdminHandlerFunc(serve)}
}

// Refuse returns an error that is answered with a status and its text. Caddy logs it:
// what names a lock stays out.
func Refuse(status int, format string, args ...any) error {
	return caddy.APIError{HTTPStatus: status, Err: fmt.Errorf(format, args...)}
}

package caddymodule

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/lockgateway/lockgateway/internal/lockhttp"
	"github.com/lockgateway/lockgateway/lock"
)

// healthPath is where the health is if no path is given.
const healthPath = "/health"

// healthForm are the paths that look the same in a request line, decoded, and
// resolved.
var healthForm = regexp.MustCompile(`^(/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)+$`)

func unmarshalHealth(d *caddyfile.Dispenser) (string, error) {
	if !d.NextArg() {
		return healthPath, nil
	}
	path := d.Val()
	if d.NextArg() {
		return "", d.ArgErr()
	}
	return path, nil
}

// checkHealth refuses a path at which nobody could ask.
func (h *Handler) checkHealth() error {
	if h.Health == "" {
		return nil
	}
	if !healthForm.MatchString(h.Health) {
		return fmt.Errorf("health: %q is not a path such as %s, of letters, digits and -._~ only, without a slash at its end", h.Health, healthPath)
	}
	if strings.HasPrefix(h.Health+"/", lockhttp.Prefix) {
		return fmt.Errorf("health: %q is under %s, where the locks are", h.Health, lockhttp.Prefix)
	}
	return nil
}

// serveHealth answers a request that asks for the health. It reports whether it
// was one.
func (h *Handler) serveHealth(w http.ResponseWriter, r *http.Request) bool {
	question, ok := strings.CutPrefix(r.URL.Path, h.Health+"/")
	if h.Health == "" || !ok || question != "live" && question != "ready" {
		return false
	}
	var err error
	if question == "ready" {
		err = h.instance.ready()
	}
	writeHealth(w, r, question, err)
	return true
}

// ready returns nil if requests can be expected to be served.
func (i *instance) ready() error {
	if caddy.Exiting() || i.orphaned.Load() {
		return lock.ErrClosing
	}
	return i.backend.Ready()
}

// writeHealth answers whether the process is live or ready. It says no more of
// what is wrong than the API does; the log has it.
func writeHealth(w http.ResponseWriter, r *http.Request, question string, problem error) {
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		w.WriteHeader(http.StatusMethodNotAllowed)
	case problem == nil:
		lockhttp.WriteHealthy(w, question)
	default:
		text := lock.ErrUnavailable.Error()
		if errors.Is(problem, lock.ErrClosing) {
			text = lock.ErrClosing.Error()
		}
		lockhttp.WriteProblem(w, lockhttp.Unavailable(text, false))
	}
}

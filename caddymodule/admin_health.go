package caddymodule

import (
	"net/http"

	"github.com/caddyserver/caddy/v2"

	"github.com/lockgateway/lockgateway/internal/adminapi"
)

// adminHealth are the routes that tell whether the process is live, and whether every
// open backend is ready. They answer also while Caddy drains.
func adminHealth() []caddy.AdminRoute {
	route := func(question string, problem func() error) caddy.AdminRoute {
		return caddy.AdminRoute{
			Pattern: adminapi.Path + "health/" + question,
			Handler: caddy.AdminHandlerFunc(func(w http.ResponseWriter, r *http.Request) error {
				writeHealth(w, r, question, problem())
				return nil
			}),
		}
	}
	return []caddy.AdminRoute{
		route("live", func() error { return nil }),
		route("ready", allReady),
	}
}

func allReady() (problem error) {
	opened.Range(func(_, value any) bool {
		problem = value.(*instance).ready()
		return problem == nil
	})
	return problem
}

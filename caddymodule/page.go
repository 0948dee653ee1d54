package caddymodule

import (
	"fmt"
	"net/http"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/lockgateway/lockgateway/internal/page"
	"github.com/lockgateway/lockgateway/internal/settings"
)

func unmarshalPage(d *caddyfile.Dispenser) (string, error) {
	if d.CountRemainingArgs() == 0 {
		return "/", nil
	}
	folder, err := settings.Text(d)
	if err != nil {
		return "", err
	}
	if _, err := page.At(folder); err != nil {
		return "", d.Errf("page: %v", err)
	}
	return folder, nil
}

// provisionPage makes the page ready, if there is to be one.
func (h *Handler) provisionPage() (err error) {
	if h.Page == "" {
		return nil
	}
	if h.page, err = page.At(h.Page); err != nil {
		return fmt.Errorf("page: %w", err)
	}
	return nil
}

// servePage serves what is not the API's: the page, if there is one and the
// request asks for it, or else what comes next.
func (h *Handler) servePage(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	if h.page == nil || !h.page.Has(r.URL.Path) {
		return next.ServeHTTP(w, r)
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		return caddyhttp.Error(http.StatusMethodNotAllowed, nil)
	}
	address := r.URL.Path
	if original, ok := r.Context().Value(caddyhttp.OriginalRequestCtxKey).(http.Request); ok {
		address = original.URL.Path
	}
	h.page.Serve(w, r, address)
	return nil
}

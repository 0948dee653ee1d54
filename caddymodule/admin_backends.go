package caddymodule

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"slices"
	"strings"

	"github.com/lockgateway/lockgateway/internal/adminapi"
	"github.com/lockgateway/lockgateway/lock"
)

type backendsJSON struct {
	Backends []*openBackend `json:"backends"`
}

// openBackend is an open backend as operators see it.
type openBackend struct {
	// ID stays the same as long as the backend names the same data.
	ID     string `json:"id"`
	Module string `json:"module"`
	Data   string `json:"data"` // what its settings name; no backend puts a secret there
	Ready  bool   `json:"ready"`
	Reason string `json:"reason,omitempty"` // why it is not

	instance  *instance
	inspector lock.Inspector
}

// openBackends lists those of all configs that are loaded, in the order of their
// IDs.
func openBackends() []*openBackend {
	list := []*openBackend{}
	opened.Range(func(key, value any) bool {
		i := value.(*instance)
		inspector, ok := i.backend.(lock.Inspector)
		if !ok {
			return true // of somebody else's making
		}
		module, data, _ := strings.Cut(strings.TrimPrefix(key.(string), backendNamespace), " ")
		sum := sha256.Sum256([]byte(key.(string)))
		b := &openBackend{
			ID: module + "-" + hex.EncodeToString(sum[:4]), Module: module, Data: data, Ready: true,
			instance: i, inspector: inspector,
		}
		if err := i.ready(); err != nil {
			b.Ready, b.Reason = false, err.Error()
		}
		list = append(list, b)
		return true
	})
	slices.SortFunc(list, func(a, b *openBackend) int { return cmp.Compare(a.ID, b.ID) })
	return list
}

// chooseBackend returns the one that a request is about: the one that it names, by
// its ID or by the name of a module that only one has, or else the only one.
func chooseBackend(wanted string) (*openBackend, error) {
	all := openBackends()
	if len(all) == 0 {
		return nil, adminapi.Refuse(http.StatusNotFound, "no site of the config serves locks")
	}
	fitting := slices.DeleteFunc(slices.Clone(all), func(b *openBackend) bool {
		return wanted != "" && wanted != b.ID && wanted != b.Module
	})
	if len(fitting) == 1 {
		return fitting[0], nil
	}
	var ids []string
	for _, b := range all {
		ids = append(ids, b.ID)
	}
	is := strings.Join(ids, ", ")
	switch {
	case wanted == "":
		return nil, adminapi.Refuse(http.StatusBadRequest, "several backends are open; name one as backend: %s", is)
	case len(fitting) == 0:
		return nil, adminapi.Refuse(http.StatusNotFound, "no open backend is called %.60q; there are: %s", wanted, is)
	}
	return nil, adminapi.Refuse(http.StatusBadRequest, "several open backends are of the module %.60q; name one as backend: %s", wanted, is)
}

// onBackend makes an answer out of one that is about a backend. The backend stays open
// until it is given. Its errors get their status.
func onBackend(answer func(*http.Request, *openBackend) (any, error)) func(*http.Request) (any, error) {
	return func(r *http.Request) (a any, err error) {
		b, err := chooseBackend(r.Form.Get("backend"))
		if err != nil {
			return nil, err
		}
		if !b.instance.enter() {
			return nil, adminError(lock.ErrClosing)
		}
		defer func() {
			if closing := b.instance.leave(); err == nil {
				err = closing
			}
		}()
		a, err = answer(r, b)
		return a, adminError(err)
	}
}

package embedded

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"

	"github.com/lockgateway/lockgateway/internal/adminapi"
)

func init() { caddy.RegisterModule(new(adminAPI)) }

// adminAPI is what operators see the nodes of a cluster with, and remove one that is
// gone for good.
type adminAPI struct{}

// CaddyModule returns the Caddy module information.
func (*adminAPI) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "admin.api.lock_gateway_nodes",
		New: func() caddy.Module { return new(adminAPI) },
	}
}

// Routes returns the routes about nodes.
func (*adminAPI) Routes() []caddy.AdminRoute {
	return []caddy.AdminRoute{
		adminapi.Look(adminapi.NodesRoute, func(r *http.Request) (any, error) {
			return onCluster(r, func(n *node) (any, error) {
				list, err := n.members(r.Context())
				if err != nil {
					return nil, err
				}
				moving, err := n.moving(r.Context(), list, "")
				return adminapi.Nodes{Cluster: n.settings.cluster.Name, Nodes: list, Moving: moving}, err
			})
		}),
		adminapi.Change(adminapi.RemoveNodeRoute, func(r *http.Request) (any, error) {
			return onCluster(r, func(n *node) (any, error) {
				removed, err := n.remove(r.Context(), r.Form.Get("node"))
				return adminapi.RemovedNode{Cluster: n.settings.cluster.Name, Removed: removed}, err
			})
		}),
	}
}

// onCluster answers a request through this process's node of the cluster that it is
// about.
func onCluster(r *http.Request, answer func(*node) (any, error)) (any, error) {
	n, err := chooseCluster(r.Form.Get("cluster"))
	if err != nil {
		return nil, err
	}
	a, err := answer(n)
	switch {
	case err == nil:
		return a, nil
	case errors.Is(err, errNotMember):
		return nil, adminapi.Refuse(http.StatusNotFound, "node %.60q: %w", r.Form.Get("node"), err)
	case errors.Is(err, errRunning), errors.Is(err, errFewNodes), errors.Is(err, errBehind), errors.Is(err, errRefused):
		return nil, adminapi.Refuse(http.StatusConflict, "%w", err)
	case errors.Is(err, errUnknown):
		return nil, adminapi.Refuse(http.StatusGatewayTimeout, "%w", err)
	case errors.Is(err, errNoLeader), errors.Is(err, context.DeadlineExceeded):
		return nil, adminapi.Refuse(http.StatusServiceUnavailable, "%w", err)
	}
	return nil, err
}

// chooseCluster returns this process's node of a cluster: of the one that is named, or
// else of the only one.
func chooseCluster(wanted string) (*node, error) {
	byName := make(map[string]*node)
	nodes.Range(func(_, value any) bool {
		if n := value.(*node); n.settings.cluster != nil {
			byName[n.settings.cluster.Name] = n
		}
		return true
	})
	var names []string
	for name, n := range byName {
		if wanted == name || wanted == "" && len(byName) == 1 {
			return n, nil
		}
		names = append(names, name)
	}
	slices.Sort(names)
	switch {
	case len(names) == 0:
		return nil, adminapi.Refuse(http.StatusNotFound, "no site of the config has an embedded NATS server that is in a cluster")
	case wanted == "":
		return nil, adminapi.Refuse(http.StatusBadRequest, "there are several clusters; name one as cluster: %s", strings.Join(names, ", "))
	}
	return nil, adminapi.Refuse(http.StatusNotFound, "no cluster is called %.60q; there are: %s", wanted, strings.Join(names, ", "))
}

// Interface guards
var (
	_ caddy.Module      = (*adminAPI)(nil)
	_ caddy.AdminRouter = (*adminAPI)(nil)
)

package embedded

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/lockgateway/lockgateway/internal/adminapi"
)

// administer sends a request to a route and returns the status, and the answer's body or
// the error.
func administer(t *testing.T, method, name string, form url.Values) (status int, text string) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, adminapi.Path+name, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	w := httptest.NewRecorder()
	for _, route := range new(adminAPI).Routes() {
		if route.Pattern != adminapi.Path+name {
			continue
		}
		err := route.Handler.ServeHTTP(w, r)
		if err == nil {
			return w.Code, w.Body.String()
		}
		var refused caddy.APIError
		if !errors.As(err, &refused) {
			t.Fatalf("%s fails: %v", name, err)
		}
		return refused.HTTPStatus, refused.Err.Error()
	}
	t.Fatalf("there is no route %s", name)
	return 0, ""
}

func expectRefusal(t *testing.T, name string, form url.Values, status int, why string) {
	t.Helper()
	if got, text := administer(t, http.MethodPost, name, form); got != status || !strings.Contains(text, why) {
		t.Errorf("%s of %v gave %d %s; want %d, and %q", name, form, got, text, status, why)
	}
}

func TestOperatorsSeeNodes(t *testing.T) {
	startNode(t, serverSettings{dir: t.TempDir(), given: true})
	expectRefusal(t, adminapi.NodesRoute, nil, http.StatusNotFound, "that is in a cluster")

	list := startCluster(t)
	var found adminapi.Nodes
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		status, text := administer(t, http.MethodGet, adminapi.NodesRoute, nil)
		if status == http.StatusOK {
			if err := json.Unmarshal([]byte(text), &found); err != nil {
				t.Fatal(err)
			}
			if len(found.Nodes) == 3 && found.Nodes[0].Current && found.Nodes[1].Current && found.Nodes[2].Current {
				break
			}
		} else if status != http.StatusServiceUnavailable { // it is while they elect who leads
			t.Fatalf("the nodes are %d %s", status, text)
		}
		if time.Now().After(deadline) {
			t.Fatalf("after a minute the nodes are %d %s", status, text)
		}
	}
	leaders := 0
	for i, m := range found.Nodes {
		if m.Node != fmt.Sprint("node-", i) || m.ID == "" || !m.Online {
			t.Errorf("node %d is %+v", i, m)
		}
		if m.Leader {
			leaders++
		}
	}
	if leaders != 1 || found.Cluster != "test" {
		t.Errorf("%d lead: %+v", leaders, found)
	}

	remove := func(node string) url.Values { return url.Values{"node": {node}} }
	expectRefusal(t, adminapi.RemoveNodeRoute, remove("node-7"), http.StatusNotFound, `"node-7": the cluster has no such node`)
	expectRefusal(t, adminapi.RemoveNodeRoute, nil, http.StatusNotFound, "no such node")
	expectRefusal(t, adminapi.RemoveNodeRoute, remove("node-0"), http.StatusConflict, "the node runs")
	expectRefusal(t, adminapi.NodesRoute, url.Values{"cluster": {"other"}}, http.StatusNotFound, `"other"; there are: test`)
	if status, text := administer(t, http.MethodGet, adminapi.RemoveNodeRoute, nil); status != http.StatusMethodNotAllowed {
		t.Errorf("removing with GET gave %d %s", status, text)
	}

	alone := mustStart(t, serverSettings{
		dir: t.TempDir(), given: true,
		cluster: &Cluster{Name: "second", Node: "alone", Listen: list.unused, Routes: []string{list.unused, "127.0.0.1:1", "127.0.0.1:2"}},
	}, zap.NewNop())
	expectRefusal(t, adminapi.NodesRoute, nil, http.StatusBadRequest, "second, test")
	expectRefusal(t, adminapi.NodesRoute, url.Values{"cluster": {"second"}}, http.StatusServiceUnavailable, "no node leads")
	if err := alone.leave(); err != nil {
		t.Error(err)
	}
}

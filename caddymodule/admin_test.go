package caddymodule_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/lockgateway/lockgateway/internal/testaddr"
)

// admin is the administration API of the Caddy in this process.
type admin struct {
	t    *testing.T
	base string
}

// serveWithAdmin starts Caddy with its administration API and some sites, each with
// its directives.
func serveWithAdmin(t *testing.T, directives ...string) (admin, []*site) {
	t.Helper()
	address := testaddr.Free(t)
	var (
		text  strings.Builder
		sites []*site
	)
	fmt.Fprintf(&text, "{\n admin %s\n persist_config off\n storage file_system %s\n log {\n level ERROR\n }\n}\n", address, t.TempDir())
	for _, d := range directives {
		addr := testaddr.Free(t)
		text.WriteString(plainSite(addr, d))
		sites = append(sites, newSite(t, addr))
	}
	load(t, adapt(t, text.String()))
	stopAtEnd(t)
	return admin{t, "http://" + address + "/lock_gateway/"}, sites
}

// post sends parameters as a form, and decodes the answer.
func (a admin) post(path string, status int, answer any, parameters ...string) {
	a.t.Helper()
	form := url.Values{}
	for i := 0; i < len(parameters); i += 2 {
		form.Set(parameters[i], parameters[i+1])
	}
	res, err := http.PostForm(a.base+path, form)
	if err != nil {
		a.t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		a.t.Fatal(err)
	}
	if res.StatusCode != status {
		a.t.Fatalf("%s with %v gave %d %s; want %d", path, parameters, res.StatusCode, body, status)
	}
	if err := json.Unmarshal(body, answer); err != nil {
		a.t.Fatalf("%s gave %s: %v", path, body, err)
	}
}

// refused checks an error.
func (a admin) refused(path string, status int, text string, parameters ...string) {
	a.t.Helper()
	var problem struct{ Error string }
	if a.post(path, status, &problem, parameters...); !strings.Contains(problem.Error, text) {
		a.t.Errorf("%s with %v gave the error %q; want one with %q", path, parameters, problem.Error, text)
	}
	if strings.Contains(problem.Error, "secret") {
		a.t.Errorf("%s with %v gave an error with an id, which Caddy logs: %q", path, parameters, problem.Error)
	}
}

type adminLock struct {
	Lock                    string
	Held, Waiting           int64
	HeldSince, WaitingSince string
	Fresh                   bool
	Anonymous               int64
	Holders                 []struct {
		Holder, Since      string
		Token, ExpiresInMs int64
	}
	Queue []struct {
		Count int64
		Named bool
		Since string
	}
}

type adminList struct {
	Backend  string
	Locks    []adminLock
	Matching int64
	Next     string
}

// names are the locks of a list in its order.
func (l adminList) names() (names []string) {
	for _, row := range l.Locks {
		names = append(names, row.Lock)
	}
	return names
}

func TestAdminShowsAndFrees(t *testing.T) {
	a, sites := serveWithAdmin(t, "lock_gateway {\n backend memory {\n name admin-frees\n }\n}")
	s := sites[0]
	const odd = "a 🔒%?#&\n"
	path := "/v1/2/" + url.PathEscape(odd)
	s.get(path + "/acquire")
	s.get(path + "/acquire?holder=stuck&ttlMs=3600000")
	waiters := make(chan answer, 2)
	for n := range 2 {
		go func() { waiters <- s.get(path + "/acquire?" + forEver) }()
		s.eventually("a waiter is queued", func() bool {
			var d adminLock
			a.post("lock", http.StatusOK, &d, "lock", "2/"+odd)
			return d.Waiting == int64(n+1)
		})
	}
	var d adminLock
	a.post("lock", http.StatusOK, &d, "lock", "2/"+odd)
	if d.Lock != "2/"+odd || d.Held != 2 || d.Anonymous != 1 || d.HeldSince == "" || d.WaitingSince == "" ||
		len(d.Holders) != 1 || d.Holders[0].Holder != "stuck" || d.Holders[0].Token == 0 || d.Holders[0].ExpiresInMs <= 0 ||
		len(d.Queue) != 1 || d.Queue[0].Count != 2 || d.Queue[0].Named {
		t.Errorf("the lock is %+v", d)
	}
	released := struct{ Released bool }{}
	a.post("release", http.StatusOK, &released, "lock", "2/"+odd, "holder", "nobody")
	if released.Released {
		t.Error("a slot of nobody was released")
	}
	a.post("release", http.StatusOK, &released, "lock", "2/"+odd, "holder", "stuck")
	if w := <-waiters; !released.Released || w.body != `{"acquired":true,"value":2}` {
		t.Errorf("the release of the stuck holder gave %+v, and the waiter got %s", released, w.body)
	}
	a.post("release", http.StatusOK, &released, "lock", "2/"+odd)
	if w := <-waiters; w.body != `{"acquired":true,"value":2}` {
		t.Errorf("a waiter got %s", w.body)
	}
	reset := struct{ Reset bool }{}
	a.post("reset", http.StatusOK, &reset, "lock", "2/"+odd)
	if v := s.get(path + "/value"); !reset.Reset || v.body != "{}" {
		t.Errorf("after a reset the value is %s", v.body)
	}
	d = adminLock{}
	if a.post("lock", http.StatusOK, &d, "lock", "2/"+odd); !d.Fresh {
		t.Errorf("after a reset the lock is %+v", d)
	}
	var gateways struct{ Gateways []any }
	if a.post("gateways", http.StatusOK, &gateways); len(gateways.Gateways) != 0 {
		t.Errorf("the memory is shared with %v", gateways.Gateways)
	}
}

func TestAdminListsByStateAndPrefix(t *testing.T) {
	a, sites := serveWithAdmin(t, "lock_gateway {\n backend memory {\n name admin-lists\n }\n}")
	s := sites[0]
	for _, path := range []string{"1/a-held", "1/b-awaited", "3/a-other", "1/idle"} {
		s.get("/v1/" + path + "/acquire")
	}
	s.get("/v1/1/idle/release")
	waiter := make(chan answer, 1)
	go func() { waiter <- s.get("/v1/1/b-awaited/acquire?" + forEver) }()
	var l adminList
	s.eventually("the waiter is queued", func() bool {
		a.post("locks", http.StatusOK, &l, "state", "waiting")
		return l.Matching == 1
	})
	for _, c := range []struct {
		parameters []string
		want       string
	}{
		{nil, "1/a-held 1/b-awaited 3/a-other"},
		{[]string{"state", "held"}, "1/a-held 1/b-awaited 3/a-other"},
		{[]string{"state", "waiting"}, "1/b-awaited"},
		{[]string{"state", "all"}, "1/a-held 1/b-awaited 1/idle 3/a-other"},
		{[]string{"prefix", "a-"}, "1/a-held 3/a-other"},
		{[]string{"prefix", "1/a"}, "1/a-held"},
		{[]string{"prefix", "/"}, ""},
		{[]string{"limit", "2"}, "1/a-held 1/b-awaited"},
		{[]string{"after", "1/b-awaited"}, "3/a-other"},
		{[]string{"sort", "queue", "limit", "1"}, "1/b-awaited"},
	} {
		l := adminList{}
		if a.post("locks", http.StatusOK, &l, c.parameters...); strings.Join(l.names(), " ") != c.want {
			t.Errorf("%v lists %q; want %s", c.parameters, l.names(), c.want)
		}
	}
	s.get("/v1/1/b-awaited/reset")
	<-waiter
}

func TestAdminChoosesTheBackend(t *testing.T) {
	one, two := "lock_gateway {\n backend memory {\n name admin-one\n }\n}", "lock_gateway {\n backend memory {\n name admin-two\n }\n}"
	a, sites := serveWithAdmin(t, one, two)
	sites[1].get("/v1/1/x/acquire")
	var open struct {
		Backends []struct {
			ID, Module, Data string
			Ready            bool
		}
	}
	a.post("backends", http.StatusOK, &open)
	if len(open.Backends) != 2 {
		t.Fatalf("the open backends are %+v", open.Backends)
	}
	for _, b := range open.Backends {
		if b.Module != "memory" || !b.Ready {
			t.Errorf("a backend is %+v", b)
		}
		a.refused("locks", http.StatusBadRequest, b.ID)
		a.refused("locks", http.StatusBadRequest, b.ID, "backend", "memory")
		a.refused("locks", http.StatusNotFound, b.ID, "backend", "etcd")
		var l adminList
		a.post("locks", http.StatusOK, &l, "backend", b.ID)
		if want := b.Data == "admin-two"; (l.Matching == 1) != want || l.Backend != b.ID {
			t.Errorf("the backend with %s lists %+v", b.Data, l)
		}
	}
}

func TestAdminSaysWhatIsWrong(t *testing.T) {
	a, _ := serveWithAdmin(t, "lock_gateway {\n backend memory {\n name admin-wrong\n }\n}")
	for _, c := range []struct {
		path, text string
		parameters []string
	}{
		{"lock", "lock is missing", nil},
		{"lock", "not written as maxValue/lockId", []string{"lock", "secret"}},
		{"lock", "not written as maxValue/lockId", []string{"lock", "x/secret"}},
		{"lock", "not written as maxValue/lockId", []string{"lock", "stuck-secret/2"}}, // the parts in the wrong order
		{"reset", "lock is missing", nil},
		{"release", "holder: the name is empty", []string{"lock", "1/secret", "holder", ""}},
		{"locks", "there are held, waiting and all", []string{"state", "free"}},
		{"locks", "there are name, held", []string{"sort", "age"}},
		{"locks", "from 1 to 10000", []string{"limit", "0"}},
		{"locks", "from 1 to 10000", []string{"limit", "many"}},
		{"locks", "after goes with sort name", []string{"sort", "held", "after", "1/secret"}},
	} {
		a.refused(c.path, http.StatusBadRequest, c.text, c.parameters...)
	}
	// What changes something is not for links and prefetchers.
	for path, want := range map[string]int{"locks": http.StatusOK, "reset": http.StatusMethodNotAllowed, "release": http.StatusMethodNotAllowed} {
		res, err := http.Get(a.base + path + "?lock=1/x")
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("GET %s gave %d", path, res.StatusCode)
		}
	}
}

func TestAdminWithoutSites(t *testing.T) {
	a, _ := serveWithAdmin(t)
	a.refused("locks", http.StatusNotFound, "no site of the config serves locks")
}

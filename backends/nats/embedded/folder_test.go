package embedded

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFolderIsClaimedByOne(t *testing.T) {
	s := serverSettings{dir: t.TempDir(), given: true}
	first, err := s.claim()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.claim(); err == nil || !strings.Contains(err.Error(), "another process has "+s.dir) {
		t.Errorf("claiming it again gave the error %v", err)
	}
	if err := first.release(); err != nil {
		t.Fatal(err)
	}
	second, err := s.claim()
	if err != nil {
		t.Fatal(err)
	}
	if err := second.release(); err != nil {
		t.Error(err)
	}
}

func TestFolderThatIsGivenMustExist(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "locks")
	if _, err := (serverSettings{dir: dir, given: true}).claim(); err == nil || !strings.Contains(err.Error(), dir+" does not exist") {
		t.Errorf("claiming what is not there gave the error %v", err)
	}
	if err := os.WriteFile(dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := (serverSettings{dir: dir, given: true}).claim(); err == nil || !strings.Contains(err.Error(), dir+" is no folder") {
		t.Errorf("claiming a file gave the error %v", err)
	}
	f, err := (serverSettings{dir: dir + "-default"}).claim()
	if err != nil {
		t.Fatal(err)
	}
	if err := f.release(); err != nil {
		t.Error(err)
	}
}

// What a server would misread or delete it is kept from.
func TestFolderOfOthersIsRefused(t *testing.T) {
	node := func(cluster, name string) *Cluster { return &Cluster{Name: cluster, Node: name} }
	for _, c := range []struct {
		owner string
		by    *Cluster
		want  string // "" if it may be used
	}{
		{`{"nats_server":"2.11.0"}`, nil, ""},
		{`{"nats_server":"2.15.99"}`, nil, ""},
		{`{"nats_server":"2.99.0"}`, nil, "was written by nats-server 2.99.0"},
		{`{"nats_server":"3.0.0","cluster":"c","node":"n"}`, node("c", "n"), "was written by nats-server 3.0.0"},
		{`{"nats_server":"2.15.0","cluster":"c","node":"n"}`, node("c", "n"), ""},
		{`{"nats_server":"2.15.0","cluster":"c","node":"n"}`, node("c", "m"), `the node "n" of the cluster "c"`},
		{`{"nats_server":"2.15.0","cluster":"c","node":"n"}`, node("d", "n"), `the node "n" of the cluster "c"`},
		{`{"nats_server":"2.15.0","cluster":"c","node":"n"}`, nil, `the node "n" of the cluster "c"`},
		{`{"nats_server":"2.15.0"}`, node("c", "n"), "a server that is alone"},
		{`{`, nil, "is damaged"},
	} {
		s := serverSettings{dir: t.TempDir(), given: true, cluster: c.by}
		path := filepath.Join(s.dir, ownerFile)
		if err := os.WriteFile(path, []byte(c.owner), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := s.claim()
		if c.want == "" {
			if err != nil {
				t.Errorf("%s: %v", c.owner, err)
			} else if err := f.release(); err != nil {
				t.Error(err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), s.dir) {
			t.Errorf("%s gave the error %v; want one with the folder and %s", c.owner, err, c.want)
		}
		if left, err := os.ReadFile(path); err != nil || string(left) != c.owner {
			t.Errorf("what was refused was changed to %s, error %v", left, err)
		}
	}
}

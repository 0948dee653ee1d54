package embedded

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/lockgateway/lockgateway/internal/settings"
)

const (
	syncAlways         = "always"
	defaultClusterName = "lockgateway"
	defaultListen      = ":6222"

	// leastNodes is how many it takes for one to be missed: a majority has to be
	// there.
	leastNodes = 3

	// leastSecret is how long a secret is at least, in characters.
	leastSecret = 16
)

// check returns what is wrong with the settings, or nil. Values with placeholders
// that are not filled in yet are taken to be right.
func (m *Module) check() *settings.Problem {
	if s := m.SyncInterval; s != "" && s != syncAlways && !settings.HasPlaceholder(s) {
		if d, err := caddy.ParseDuration(s); err != nil || d <= 0 {
			return settings.Wrong("sync_interval", fmt.Sprintf("%q is neither %s nor a duration such as 10s", s, syncAlways))
		}
	}
	if m.Cluster == nil {
		return nil
	}
	if problem := m.Cluster.check(); problem != nil {
		return problem.In("cluster")
	}
	return nil
}

func (c *Cluster) check() *settings.Problem {
	for _, n := range []struct{ setting, value string }{{"name", c.Name}, {"node", c.Node}} {
		if !settings.HasPlaceholder(n.value) && !settings.IsName(n.value) {
			return settings.Wrong(n.setting, "it has letters, digits, - and _ only")
		}
	}
	if c.Node == "" {
		return settings.Wrong("node", "there is none; give each node a name that it keeps, such as that of its machine")
	}
	if problem := c.checkRoutes(); problem != nil {
		return problem
	}
	if c.Secret != "" && !settings.HasPlaceholder(c.Secret) && len(c.Secret) < leastSecret {
		return settings.Wrong("secret", fmt.Sprintf("it has less than %d characters; make a random one", leastSecret))
	}
	if t := c.TLS; t != nil && (t.CA == "" || t.Cert == "" || t.Key == "") {
		return settings.Wrong("tls", "it needs ca, cert and key")
	}
	switch {
	case c.Insecure || c.onLoopback():
	case c.Secret == "":
		return settings.Wrong("secret", "there is none, and not all addresses are of this machine: whoever reaches the port could join, and release all locks; give one, or insecure if that is what you want")
	case c.TLS == nil:
		return settings.Wrong("tls", "there is none, and not all addresses are of this machine: the secret and the ids of locks could be read on their way; give it, or insecure if that is what you want")
	}
	return nil
}

func (c *Cluster) checkRoutes() *settings.Problem {
	if c.Listen != "" && !settings.HasPlaceholder(c.Listen) {
		if _, _, err := splitAddress(c.Listen); err != nil {
			return settings.Wrong("listen", fmt.Sprintf("%q %s", c.Listen, err))
		}
	}
	seen := make(map[string]bool)
	for _, r := range c.Routes {
		if settings.HasPlaceholder(r) {
			continue
		}
		host, _, err := splitAddress(r)
		if err == nil && host == "" {
			err = errNoAddress
		}
		if err != nil {
			return settings.Wrong("routes", fmt.Sprintf("%q %s", r, err))
		}
		if seen[r] {
			return settings.Wrong("routes", fmt.Sprintf("%q is there twice", r))
		}
		seen[r] = true
	}
	switch n := len(c.Routes); {
	case n == 2:
		return settings.Wrong("routes", "two nodes are worse than one: without a majority, which is both, nothing is granted, so that the loss of either stops all; name three, with this one, or leave cluster out")
	case n == 4:
		return settings.Wrong("routes", "four nodes are no better than three: the loss of two stops all, as with three, and there is one more to lose; name three, or five")
	case n < leastNodes:
		return settings.Wrong("routes", "name the hosts and ports of all nodes, this one's too, of which there must be three or five; or leave cluster out")
	}
	return nil
}

// onLoopback reports whether nobody but this machine is concerned.
func (c *Cluster) onLoopback() bool {
	listen := c.Listen
	if listen == "" {
		listen = defaultListen
	}
	return !slices.ContainsFunc(append([]string{listen}, c.Routes...), func(address string) bool {
		host, _, err := net.SplitHostPort(address)
		return err != nil || host != "localhost" && !net.ParseIP(host).IsLoopback()
	})
}

var errNoAddress = fmt.Errorf("is no host and port, such as node-1.example.com:6222")

func splitAddress(address string) (host string, port int, err error) {
	host, number, err := net.SplitHostPort(address)
	if err != nil {
		return "", 0, errNoAddress
	}
	port, err = strconv.Atoi(number)
	if err != nil || port < 1 || port > 65535 {
		return "", 0, errNoAddress
	}
	return host, port, nil
}

// serverSettings are what a server runs with. They do not change.
type serverSettings struct {
	dir          string        // absolute
	given        bool          // dir is a setting, not the default
	syncInterval time.Duration // 0: always
	cluster      *Cluster      // with its defaults; nil: none
}

// name is what the server is called.
func (s serverSettings) name() string {
	if s.cluster != nil {
		return s.cluster.Node
	}
	return singleName
}

// differences returns the names of the settings that differ, or "".
func (s serverSettings) differences(o serverSettings) string {
	var names []string
	if s.syncInterval != o.syncInterval {
		names = append(names, "sync_interval")
	}
	if (s.cluster == nil) != (o.cluster == nil) {
		names = append(names, "cluster")
	} else if s.cluster != nil {
		a, b := s.cluster, o.cluster
		for _, d := range []struct {
			differs bool
			setting string
		}{
			{a.Name != b.Name, "name"},
			{a.Node != b.Node, "node"},
			{a.Listen != b.Listen, "listen"},
			{!slices.Equal(slices.Sorted(slices.Values(a.Routes)), slices.Sorted(slices.Values(b.Routes))), "routes"},
			{a.Secret != b.Secret, "secret"},
			{(a.TLS == nil) != (b.TLS == nil) || a.TLS != nil && *a.TLS != *b.TLS, "tls"},
			{a.Insecure != b.Insecure, "insecure"},
		} {
			if d.differs {
				names = append(names, "cluster "+d.setting)
			}
		}
	}
	return strings.Join(names, ", ")
}

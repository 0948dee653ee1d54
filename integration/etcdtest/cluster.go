package etcdtest

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"fmt"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/lockgateway/lockgateway/integration/certificates"
	"github.com/lockgateway/lockgateway/integration/process"
	"github.com/lockgateway/lockgateway/internal/testaddr"
)

// Cluster is one server or several that keep the same data.
type Cluster struct {
	// Certificates are the files for Options.TLS, otherwise empty.
	Certificates certificates.Files

	options Options
	token   string
	members []*Member
	admin   *clientv3.Client
}

// Start starts a single server.
func Start(t testing.TB, o Options) *Cluster {
	t.Helper()
	return StartCluster(t, 1, o)
}

// StartCluster starts n servers and returns when they have a leader. They are
// gone at the test's end.
func StartCluster(t testing.TB, n int, o Options) *Cluster {
	t.Helper()
	c := &Cluster{options: o, token: rand.Text()}
	if o.TLS {
		c.Certificates = certificates.New(t)
	}
	// Between finding free addresses and taking them, somebody else may.
	const attempts = 5
	for range attempts {
		if c.start(t, n) {
			c.admin = c.connect(t)
			c.Leader(t)
			if o.Auth {
				c.enableAuth(t)
			}
			return c
		}
	}
	t.Fatal("etcd does not start")
	return nil
}

// start starts n members. It reports whether all found their addresses free.
func (c *Cluster) start(t testing.TB, n int) bool {
	t.Helper()
	c.members = nil
	for i := range n {
		c.members = append(c.members, &Member{
			Name:    fmt.Sprintf("etcd-%d", i+1),
			cluster: c,
			dir:     t.TempDir(),
			client:  testaddr.Free(t),
			peer:    testaddr.Free(t),
		})
	}
	for _, m := range c.members {
		m.start(t)
	}
	// A cluster's members serve when they have found a majority.
	for _, m := range c.members {
		if !m.awaitStart(t) {
			if !m.addressTaken(t) {
				t.Fatalf("%s does not start", m.Name)
			}
			for _, started := range c.members {
				started.Kill(t)
			}
			return false
		}
	}
	return true
}

// Members returns the servers.
func (c *Cluster) Members() []*Member { return c.members }

// Endpoints returns the URLs of all servers.
func (c *Cluster) Endpoints() (urls []string) {
	for _, m := range c.members {
		urls = append(urls, m.Endpoint())
	}
	return urls
}

// Leader returns the server that leads, by its own account and in the latest
// term that is known. It waits for one.
func (c *Cluster) Leader(t testing.TB) *Member {
	t.Helper()
	var leader *Member
	process.Await(t, "etcd has a leader", func() bool {
		var term uint64
		leader = nil
		for _, m := range c.members {
			if s, err := m.status(t.Context(), c.admin); err == nil && s.RaftTerm >= term {
				if s.RaftTerm > term {
					leader = nil
				}
				term = s.RaftTerm
				if s.Leader == s.Header.MemberId {
					leader = m
				}
			}
		}
		return leader != nil
	})
	return leader
}

// Follower returns a server that does not lead.
func (c *Cluster) Follower(t testing.TB) *Member {
	t.Helper()
	return c.Others(c.Leader(t))[0]
}

// Others returns all servers but one.
func (c *Cluster) Others(than *Member) (others []*Member) {
	for _, m := range c.members {
		if m != than {
			others = append(others, m)
		}
	}
	return others
}

// MoveLeader makes another server the leader.
func (c *Cluster) MoveLeader(t testing.TB) {
	t.Helper()
	process.Await(t, "etcd's leader moves", func() bool {
		from := c.Leader(t)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		to, err := c.Others(from)[0].status(ctx, c.admin)
		if err != nil {
			return false
		}
		client := c.connect(t, from.Endpoint()) // none but the leader does it
		defer func() { _ = client.Close() }()
		_, err = client.MoveLeader(ctx, to.Header.MemberId)
		return err == nil
	})
}

// Client returns a client of all servers that may do everything. It is closed
// at the test's end.
func (c *Cluster) Client() *clientv3.Client { return c.admin }

// ClientTLS returns what a client needs to connect with Options.TLS.
func (c *Cluster) ClientTLS(t testing.TB) *tls.Config {
	t.Helper()
	return c.Certificates.ClientTLS(t)
}

// connect makes a client of the given servers, by default all.
func (c *Cluster) connect(t testing.TB, endpoints ...string) *clientv3.Client {
	t.Helper()
	if len(endpoints) == 0 {
		endpoints = c.Endpoints()
	}
	config := clientv3.Config{
		Endpoints:            endpoints,
		DialTimeout:          process.Soon,
		DialKeepAliveTime:    2 * time.Second,
		DialKeepAliveTimeout: 2 * time.Second,
		Logger:               zap.NewNop(),
	}
	if c.options.TLS {
		config.TLS = c.ClientTLS(t)
	}
	if c.options.Auth && c.admin != nil {
		config.Username, config.Password = Root, RootPassword
	}
	client, err := clientv3.New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() }) // the second time it does nothing
	return client
}

func (c *Cluster) scheme() string {
	if c.options.TLS {
		return "https://"
	}
	return "http://"
}

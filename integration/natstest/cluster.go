package natstest

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"

	"github.com/lockgateway/lockgateway/integration/certificates"
	"github.com/lockgateway/lockgateway/integration/process"
	"github.com/lockgateway/lockgateway/integration/relay"
	"github.com/lockgateway/lockgateway/internal/testaddr"
)

// Cluster is one server or several that keep the same data.
type Cluster struct {
	// Certificates are the files for Options.TLS, otherwise empty.
	Certificates certificates.Files

	// Credentials is the file with those of the user for Options.Operator, otherwise
	// empty.
	Credentials string

	// Seed is the file with the seed of the user for Options.Auth, otherwise empty.
	Seed string

	options  Options
	binary   string
	name     string
	nkey     string   // the public part of Seed
	operator operator // for Options.Operator
	members  []*Member
	routes   map[[2]*Member]*relay.Relay // from the first to the second, for Options.Relayed
	admin    *nats.Conn
}

// Start starts a single server.
func Start(t testing.TB, o Options) *Cluster {
	t.Helper()
	return StartCluster(t, 1, o)
}

// StartCluster starts n servers and returns when JetStream answers. They are gone
// at the test's end.
func StartCluster(t testing.TB, n int, o Options) *Cluster {
	t.Helper()
	c := &Cluster{options: o, name: rand.Text(), binary: buildVersion(t, o.Version)}
	if o.TLS {
		c.Certificates = certificates.New(t)
	}
	if o.Auth {
		c.makeSeed(t)
	}
	if o.Operator {
		c.operator = newOperator(t, o)
		c.Credentials = c.operator.user
	}
	// Between finding free addresses and taking them, somebody else may.
	const attempts = 5
	for range attempts {
		if c.start(t, n) {
			c.admin = c.Connect(t)
			if !o.WithoutJetStream {
				c.awaitJetStream(t)
			}
			return c
		}
	}
	t.Fatal("nats-server does not start")
	return nil
}

func (c *Cluster) makeSeed(t testing.TB) {
	t.Helper()
	pair, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	seed, err := pair.Seed()
	if err != nil {
		t.Fatal(err)
	}
	if c.nkey, err = pair.PublicKey(); err != nil {
		t.Fatal(err)
	}
	c.Seed = filepath.Join(t.TempDir(), "user.nk")
	if err := os.WriteFile(c.Seed, seed, 0o600); err != nil {
		t.Fatal(err)
	}
}

// start starts n members. It reports whether all found their addresses free.
func (c *Cluster) start(t testing.TB, n int) bool {
	t.Helper()
	c.members = nil
	for i := range n {
		c.members = append(c.members, &Member{
			Name:    fmt.Sprintf("nats-%d", i+1),
			cluster: c,
			dir:     t.TempDir(),
			client:  testaddr.Free(t),
			route:   testaddr.Free(t),
			leaf:    testaddr.Free(t),
		})
	}
	if c.options.Relayed {
		c.relayRoutes(t)
	}
	for _, m := range c.members {
		m.start(t)
	}
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

// awaitJetStream waits until the servers have found each other and a leader.
func (c *Cluster) awaitJetStream(t testing.TB) {
	t.Helper()
	js := c.JetStream(t)
	process.Await(t, "JetStream answers", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := js.AccountInfo(ctx)
		return err == nil
	})
}

// Members returns the servers. The tag of each is its name.
func (c *Cluster) Members() []*Member { return c.members }

// URLs returns those of all servers.
func (c *Cluster) URLs() (urls []string) {
	for _, m := range c.members {
		urls = append(urls, m.URL())
	}
	return urls
}

// Leader returns the server that leads a stream. It waits for one.
func (c *Cluster) Leader(t testing.TB, stream string) *Member {
	t.Helper()
	js := c.JetStream(t)
	var leader *Member
	process.Await(t, "the stream has a leader", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		s, err := js.Stream(ctx, stream)
		if err != nil {
			return false
		}
		for _, m := range c.members {
			if cluster := s.CachedInfo().Cluster; cluster != nil && cluster.Leader == m.Name && !m.process.HasExited() {
				leader = m
			}
		}
		return leader != nil
	})
	return leader
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

// StepDown makes the leader of a stream give up that place.
func (c *Cluster) StepDown(t testing.TB, stream string) {
	t.Helper()
	_, err := c.admin.Request("$JS.API.STREAM.LEADER.STEPDOWN."+stream, nil, 5*time.Second)
	if err != nil {
		t.Logf("stepping down: %v", err)
	}
}

// JetStream returns what an operator uses.
func (c *Cluster) JetStream(t testing.TB) jetstream.JetStream {
	t.Helper()
	js, err := jetstream.New(c.admin, jetstream.WithDefaultTimeout(process.Soon))
	if err != nil {
		t.Fatal(err)
	}
	return js
}

// Conn returns an operator's connection. It is closed at the test's end.
func (c *Cluster) Conn() *nats.Conn { return c.admin }

// Connect makes a connection to the servers that may do everything. It is closed at
// the test's end.
func (c *Cluster) Connect(t testing.TB) *nats.Conn {
	t.Helper()
	closed := make(chan struct{})
	options := []nats.Option{
		nats.MaxReconnects(-1), nats.ReconnectWait(100 * time.Millisecond), nats.PingInterval(2 * time.Second),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}),
		nats.ClosedHandler(func(*nats.Conn) { close(closed) }),
	}
	if c.options.TLS {
		options = append(options, nats.Secure(c.Certificates.ClientTLS(t)))
	}
	if c.options.Auth {
		options = append(options, nats.UserInfo(Root, RootPassword))
	}
	if c.options.Operator {
		options = append(options, nats.UserCredentials(c.operator.root))
	}
	if c.options.Token != "" {
		options = append(options, nats.Token(c.options.Token))
	}
	var conn *nats.Conn
	process.Await(t, "a server takes a connection", func() (ok bool) {
		var err error
		conn, err = nats.Connect(strings.Join(c.URLs(), ","), options...)
		return err == nil
	})
	t.Cleanup(func() {
		conn.Close()
		<-closed
	})
	return conn
}

package etcd

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
)

// Connection says how to reach a cluster.
type Connection struct {
	// Endpoints are URLs of members, all http or all https.
	Endpoints []string

	// DiscoverySRV is a domain whose SRV records name the members, instead of
	// Endpoints.
	DiscoverySRV string

	// Username and Password are for authentication, if it is enabled.
	Username, Password string

	// TLS has the files for https; without any, the system's roots are trusted.
	TLS TLS

	// DialTimeout is how long an attempt to connect, or to log in, may take.
	DialTimeout time.Duration

	// KeepAliveTime is after how much silence the other side is asked for a
	// sign of life, and KeepAliveTimeout how long it has for that.
	KeepAliveTime, KeepAliveTimeout time.Duration
}

const (
	firstRetry = 100 * time.Millisecond
	lastRetry  = 3 * time.Second

	// srvRefresh is how often SRV records are looked up again.
	srvRefresh = time.Minute
)

// callOptions: gRPC by default refuses calls while there is no connection, and
// answers of more than 4 MiB.
var callOptions = []grpc.CallOption{grpc.WaitForReady(true), grpc.MaxCallRecvMsgSize(math.MaxInt32)}

// connection is a client of the cluster. The goroutine that connect starts makes
// it, since that may need DNS or a login; with SRV records it goes on to follow
// them. It ends with the connection's context.
type connection struct {
	settings Connection
	tls      *tls.Config

	cancel context.CancelFunc
	tried  chan struct{} // closed after the first attempt
	ended  chan struct{} // closed by the goroutine

	mu      sync.Mutex // guards what follows
	clients *clients   // nil until an attempt succeeds
	failure error      // of the last attempt
}

// clients speak to a cluster.
type clients struct {
	etcd  *clientv3.Client
	kv    pb.KVClient
	lease pb.LeaseClient
	watch pb.WatchClient
}

func connect(ctx context.Context, settings Connection) (*connection, error) {
	c := &connection{settings: settings, tried: make(chan struct{}), ended: make(chan struct{})}
	var err error
	if c.tls, err = settings.TLS.Config(); err != nil {
		return nil, err
	}
	ctx, c.cancel = context.WithCancel(ctx)
	go c.run(ctx)
	return c, nil
}

func (c *connection) run(ctx context.Context) {
	defer close(c.ended)
	tried := sync.OnceFunc(func() { close(c.tried) })
	defer tried()
	for wait := firstRetry; ; wait = min(2*wait, lastRetry) {
		clients, err := c.open(ctx)
		c.mu.Lock()
		c.clients, c.failure = clients, err
		c.mu.Unlock()
		tried()
		if err == nil {
			break
		}
		if !sleep(ctx, wait) {
			return
		}
	}
	for c.settings.DiscoverySRV != "" && sleep(ctx, srvRefresh) {
		c.refresh(ctx)
	}
}

// open makes the clients.
func (c *connection) open(ctx context.Context) (*clients, error) {
	endpoints := c.settings.Endpoints
	if c.settings.DiscoverySRV != "" {
		var err error
		if endpoints, err = c.lookUp(ctx); err != nil {
			return nil, err
		}
	}
	options := []grpc.DialOption{grpc.WithConnectParams(grpc.ConnectParams{
		// gRPC's own limit of two minutes would be how long locks stay away
		// after an outage.
		Backoff:           backoff.Config{BaseDelay: firstRetry, Multiplier: 1.6, Jitter: 0.2, MaxDelay: lastRetry},
		MinConnectTimeout: c.settings.DialTimeout,
	})}
	if name := c.settings.TLS.ServerName; name != "" {
		// The client names each endpoint's host, whatever tls.Config says.
		options = append(options, grpc.WithAuthority(name))
	}
	client, err := clientv3.New(clientv3.Config{
		Context:              ctx,
		Endpoints:            endpoints,
		Username:             c.settings.Username,
		Password:             c.settings.Password,
		TLS:                  c.tlsOf(endpoints),
		DialTimeout:          c.settings.DialTimeout,
		DialKeepAliveTime:    c.settings.KeepAliveTime,
		DialKeepAliveTimeout: c.settings.KeepAliveTimeout,
		PermitWithoutStream:  true,
		// The client would repeat a transaction whose time-out it sees a moment
		// after the server; then a swap that was applied would look refused by
		// itself. So it repeats nothing, and we repeat what we may.
		MaxUnaryRetries: 1,
		// It warns of every attempt; errors come back to whoever called.
		Logger:      zap.NewNop(),
		DialOptions: options,
	})
	if err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", strings.Join(endpoints, ", "), explain(err))
	}
	conn := client.ActiveConnection()
	return &clients{etcd: client, kv: pb.NewKVClient(conn), lease: pb.NewLeaseClient(conn), watch: pb.NewWatchClient(conn)}, nil
}

// tlsOf returns what the client is to use. It takes any for a wish for TLS.
func (c *connection) tlsOf(endpoints []string) *tls.Config {
	if strings.HasPrefix(endpoints[0], "https://") {
		return c.tls
	}
	return nil
}

// get returns the clients, if there are any. It waits for the first attempt only.
func (c *connection) get(ctx context.Context) (*clients, error) {
	select {
	case <-c.tried:
	case <-ctx.Done():
		return nil, fmt.Errorf("connecting to etcd: %w", ctx.Err())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.clients == nil {
		return nil, c.failure
	}
	return c.clients, nil
}

// lookUp returns the endpoints that the domain's SRV records name: those for TLS,
// or if there are none those without.
func (c *connection) lookUp(ctx context.Context) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, c.settings.DialTimeout)
	defer cancel()
	var failures []error
	for _, kind := range []struct{ service, scheme string }{{"etcd-client-ssl", "https"}, {"etcd-client", "http"}} {
		_, records, err := net.DefaultResolver.LookupSRV(ctx, kind.service, "tcp", c.settings.DiscoverySRV)
		if err != nil {
			failures = append(failures, err)
			continue
		}
		if kind.scheme == "http" && c.settings.TLS != (TLS{}) {
			return nil, fmt.Errorf("discovery_srv %s has members without TLS only, and there are settings for tls", c.settings.DiscoverySRV)
		}
		var endpoints []string
		for _, r := range records {
			host := strings.TrimSuffix(r.Target, ".")
			endpoints = append(endpoints, kind.scheme+"://"+net.JoinHostPort(host, strconv.Itoa(int(r.Port))))
		}
		slices.Sort(endpoints)
		return endpoints, nil
	}
	return nil, fmt.Errorf("discovery_srv %s: %w", c.settings.DiscoverySRV, errors.Join(failures...))
}

// refresh follows changes of the SRV records. While they cannot be found, or
// their scheme is another one, the members stay those from before.
func (c *connection) refresh(ctx context.Context) {
	endpoints, err := c.lookUp(ctx)
	if err != nil {
		return
	}
	before := c.clients.etcd.Endpoints()
	if !slices.Equal(endpoints, before) && (c.tlsOf(endpoints) == nil) == (c.tlsOf(before) == nil) {
		c.clients.etcd.SetEndpoints(endpoints...)
	}
}

// close cuts what is under way on the connection.
func (c *connection) close() {
	c.cancel()
	<-c.ended
	if c.clients != nil {
		_ = c.clients.etcd.Close() // its error is that its context is done
	}
}

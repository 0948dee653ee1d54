package nats

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

// Connection says how to reach the servers.
type Connection struct {
	// Servers are URLs of servers of one cluster. Others that these know of are
	// found by themselves.
	Servers []string

	// Local is a server in this process, instead of Servers.
	Local LocalServer

	Login

	// TLS has the files for encryption; without any, servers that ask for it are
	// checked against the system's roots.
	TLS *TLS

	// DialTimeout is how long an attempt to connect to one server may take.
	DialTimeout time.Duration
}

const (
	firstRetry = 100 * time.Millisecond
	lastRetry  = time.Second

	// firstPatience is how long the first look at the bucket may take; those after
	// one that failed may take longer, up to lastPatience or a request's time.
	// What servers without a leader are asked they never answer.
	firstPatience = time.Second
	lastPatience  = time.Minute

	// A server that is silent for pingEvery is asked for a sign of life, and has
	// the same time again to answer.
	pingEvery = 2 * time.Second

	// recheckEvery is how often the bucket is looked at when nobody takes what is
	// sent to it.
	recheckEvery = time.Second

	// closePatience is how long the client's own goroutines may take to end.
	closePatience = 3 * time.Second
)

// connection connects to the servers again and again, in the goroutine that connect
// starts and that ends with the connection's context. (The client could reconnect
// by itself. It would not say why it cannot, and block whoever calls it meanwhile.)
type connection struct {
	settings Connection
	tls      *tls.Config
	login    []nats.Option
	attach   func(context.Context, *link) error
	hears    func(*link, *nats.Subscription, error) // of errors that belong to no call

	cancel   context.CancelFunc
	ended    chan struct{} // closed by the goroutine
	suspects chan struct{} // has room for one; see suspect
	found    []string      // servers that others told of; the goroutine's own

	mu      sync.Mutex // guards what follows
	link    *link      // nil: there is none that can be used
	failure error      // why there is none
	changed chan struct{}
}

// connect starts to connect. s.attach is called with each connection, and whenever
// something seems to be wrong with the bucket; what it refuses is not used.
func (s *Store) connect(settings Connection) (*connection, error) {
	c := &connection{
		settings: settings, attach: s.attach, hears: s.hears,
		ended: make(chan struct{}), suspects: make(chan struct{}, 1), changed: make(chan struct{}),
		failure: errors.New("no attempt has ended yet"),
	}
	var err error
	if settings.TLS != nil {
		if c.tls, err = settings.TLS.Config(); err != nil {
			return nil, err
		}
	}
	if c.login, err = settings.options(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(s.ctx)
	c.cancel = cancel
	go c.run(ctx)
	return c, nil
}

func (c *connection) run(ctx context.Context) {
	defer close(c.ended)
	for wait := firstRetry; ; wait = min(2*wait, lastRetry) {
		served, err := c.serve(ctx)
		c.set(nil, err)
		if served {
			wait = firstRetry
		}
		if !sleep(ctx, wait/2+rand.N(wait)) { //nolint:gosec // Not a secret.
			return
		}
	}
}

// serve connects, and returns when the connection has broken. It reports whether
// there was any use in it.
func (c *connection) serve(ctx context.Context) (served bool, err error) {
	l, closed, err := c.dial(ctx)
	if err != nil {
		return false, err
	}
	defer func() {
		l.conn.Close()
		select {
		case <-closed:
		case <-time.After(closePatience):
		}
	}()
	for retry, patience := firstRetry, firstPatience; ; {
		looked := time.Now()
		attempt, cancel := context.WithTimeout(ctx, patience)
		err := c.attach(attempt, l)
		cancel()
		var refusal *refusalError
		var again <-chan time.Time
		switch {
		case err == nil:
			c.set(l, nil)
			served, retry, patience = true, firstRetry, firstPatience
		case !served || errors.As(err, &refusal):
			c.set(nil, err)
			again = time.After(retry)
			retry = min(2*retry, lastRetry)
			patience = min(2*patience, lastPatience)
		default: // it is only not known whether all is as before
			again = time.After(recheckEvery)
		}
		select {
		case <-c.suspects:
			if !sleep(ctx, time.Until(looked.Add(recheckEvery))) {
				return served, ctx.Err()
			}
		case <-again:
		case <-closed:
			return served, errBroke
		case <-ctx.Done():
			return served, ctx.Err()
		}
	}
}

// dial connects to one of the servers, or else to one that they told of last. The
// channel is closed when the connection has, and the client has nothing left in this
// process.
func (c *connection) dial(ctx context.Context) (l *link, closed <-chan struct{}, err error) {
	if l, closed, err = c.dialOne(ctx, c.settings.Servers); err == nil {
		c.found = l.conn.DiscoveredServers()
		return l, closed, nil
	}
	if len(c.found) > 0 {
		if l, closed, foundErr := c.dialOne(ctx, c.found); foundErr == nil {
			return l, closed, nil
		}
	}
	return nil, nil, err
}

func (c *connection) dialOne(ctx context.Context, servers []string) (*link, <-chan struct{}, error) {
	closed := make(chan struct{})
	d := &dialer{ctx: ctx, timeout: c.settings.DialTimeout, local: c.settings.Local}
	// A handshake that hangs ends with the context, too.
	stop := context.AfterFunc(ctx, d.hangUp)
	defer stop()
	l := newLink(nil)
	options := append([]nats.Option{
		nats.Name("lockgateway"),
		nats.NoReconnect(),
		// Nothing is kept to be sent later: it was said to have failed.
		nats.ReconnectBufSize(-1),
		nats.Timeout(c.settings.DialTimeout),
		nats.PingInterval(pingEvery),
		nats.MaxPingsOutstanding(1),
		nats.SetCustomDialer(d),
		nats.SkipHostLookup(), // the dialer does it, and stops when told to
		nats.ClosedHandler(func(*nats.Conn) { close(closed) }),
		nats.ErrorHandler(func(_ *nats.Conn, sub *nats.Subscription, err error) { c.hears(l, sub, err) }),
	}, c.login...)
	if c.settings.TLS != nil {
		options = append(options, nats.Secure(c.tls.Clone()))
	}
	if d.local != nil {
		options = append(options, nats.InProcessServer(d))
	}
	conn, err := nats.Connect(strings.Join(servers, ","), options...)
	if err != nil {
		return nil, nil, c.explain(err, d)
	}
	l.conn = conn
	return l, closed, nil
}

// explain tells why no server could be connected to.
func (c *connection) explain(err error, d *dialer) error {
	if errors.Is(err, nats.ErrNoServers) && d.failure != nil {
		err = d.failure // of which the client says only that it was refused
	}
	if errors.Is(err, nats.ErrAuthorization) || errors.Is(err, nats.ErrAuthExpired) || errors.Is(err, nats.ErrAuthRevoked) {
		return fmt.Errorf("connecting to NATS: %w; check the settings credentials, nkey, username, password and token", err)
	}
	return fmt.Errorf("connecting to NATS: %w", err)
}

// dialer opens connections until its context is done.
type dialer struct {
	ctx     context.Context //nolint:containedctx // The client's interface takes none.
	timeout time.Duration
	local   LocalServer // or nil
	failure error       // the last

	mu   sync.Mutex // guards what follows
	conn net.Conn
}

// Dial implements nats.CustomDialer.
func (d *dialer) Dial(network, address string) (net.Conn, error) {
	return d.dial(func(ctx context.Context) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, address)
	})
}

// InProcessConn implements nats.InProcessConnProvider.
func (d *dialer) InProcessConn() (net.Conn, error) { return d.dial(d.local.Dial) }

func (d *dialer) dial(open func(context.Context) (net.Conn, error)) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(d.ctx, d.timeout)
	defer cancel()
	conn, err := open(ctx)
	d.failure = err
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	d.conn = conn
	d.mu.Unlock()
	if d.ctx.Err() != nil {
		d.hangUp()
	}
	return conn, nil
}

func (d *dialer) hangUp() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.conn != nil {
		_ = d.conn.Close() // whoever uses it is told
	}
}

// set notes the link that is to be used, or why there is none.
func (c *connection) set(l *link, failure error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if l != nil && l == c.link {
		return
	}
	c.link, c.failure = l, failure
	close(c.changed)
	c.changed = make(chan struct{})
}

// get returns the link. It waits for one, unless the reason why there is none
// does not go away by waiting.
func (c *connection) get(ctx context.Context) (*link, error) {
	for {
		l, changed, failure := c.state()
		if l != nil {
			return l, nil
		}
		var refusal *refusalError
		if errors.As(failure, &refusal) {
			return nil, failure
		}
		select {
		case <-changed:
		case <-ctx.Done():
			_, _, failure = c.state()
			return nil, fmt.Errorf("%w: %w", failure, ctx.Err())
		}
	}
}

// state returns the link, or why there is none, and a channel that is closed when
// either changes.
func (c *connection) state() (l *link, changed <-chan struct{}, failure error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.link, c.changed, c.failure
}

// suspect has the bucket looked at: something may be wrong with it.
func (c *connection) suspect() {
	select {
	case c.suspects <- struct{}{}:
	default:
	}
}

// close ends the connection, and all that is under way on it.
func (c *connection) close() {
	c.cancel()
	<-c.ended
}

package embedded

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/nats-io/nats-server/v2/server"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

const (
	// lookEvery is how often the server is asked whether it can still write.
	lookEvery = 2 * time.Second

	// stopPatience is how long a server may take to stop.
	stopPatience = 5 * time.Second

	// readyPatience is how long a server may take to tell what it has read.
	readyPatience = 10 * time.Second
)

// nodes are the servers of this process, by folder. Those who have a share in one
// are modules of loaded configs, and open backends.
var nodes = caddy.NewUsagePool()

// owners are the nodes that have a folder, by its name. They are others than in nodes
// if they are stopping.
var owners sync.Map

// node is a server, from when somebody has a share in it until nobody has. A server
// that cannot go on is replaced by another on the same folder.
type node struct {
	settings serverSettings
	logger   atomic.Pointer[zap.Logger]

	ctx    context.Context // done when the node is to stop
	cancel context.CancelFunc
	ended  chan struct{} // closed by watch
	left   error         // what it ended with

	seen atomic.Pointer[sight] // nil: the server was not looked at yet

	noted       progress // what is in its file; watch's own
	toldCurrent bool     // what the log was told last; watch's own

	mu      sync.Mutex // guards what follows
	started bool
	server  *server.Server
	failure error         // why there is none
	changed chan struct{} // closed and replaced when either changes
}

// share takes a share in the server of a folder. A new one is not started.
func share(s serverSettings) (*node, error) {
	meter()
	value, _, err := nodes.LoadOrNew(s.dir, func() (caddy.Destructor, error) {
		n := &node{settings: s, ended: make(chan struct{}), changed: make(chan struct{}), failure: errors.New("it was not started yet")}
		n.ctx, n.cancel = context.WithCancel(context.Background())
		n.logger.Store(zap.NewNop())
		return n, nil
	})
	if err != nil {
		return nil, err
	}
	return value.(*node), nil
}

// join takes another share. Who calls it has one.
func (n *node) join() {
	_, _, _ = nodes.LoadOrNew(n.settings.dir, func() (caddy.Destructor, error) { return n, nil })
}

// leave gives a share up. The last to leave stops the server.
func (n *node) leave() error {
	_, err := nodes.Delete(n.settings.dir)
	return err
}

// Dial implements nats.LocalServer.
func (n *node) Dial(ctx context.Context) (net.Conn, error) {
	for {
		n.mu.Lock()
		s, changed, failure := n.server, n.changed, n.failure
		n.mu.Unlock()
		if s != nil {
			return s.InProcessConn()
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, fmt.Errorf("the embedded NATS server does not run: %w", failure)
		}
	}
}

func (n *node) set(s *server.Server, failure error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.server, n.failure = s, failure
	close(n.changed)
	n.changed = make(chan struct{})
}

// start starts the server, unless it runs. From now on it tells the given log.
func (n *node) start(logger *zap.Logger) error {
	n.logger.Store(logger)
	n.mu.Lock()
	started := n.started
	n.mu.Unlock()
	if started {
		return nil
	}
	if err := n.awaitOwner(); err != nil {
		return fmt.Errorf("embedded NATS server: %w", err)
	}
	f, err := n.settings.claim()
	if err != nil {
		return fmt.Errorf("embedded NATS server: %w", err)
	}
	begun := time.Now()
	s, log, err := n.launch()
	if err != nil {
		return errors.Join(fmt.Errorf("embedded NATS server: %w", err), f.release())
	}
	n.mu.Lock()
	n.started = true
	n.mu.Unlock()
	owners.Store(n.settings.dir, n)
	n.set(s, nil)
	logger.Info("embedded NATS server started", zap.String("dir", n.settings.dir), zap.String("version", server.VERSION),
		zap.Duration("took", time.Since(begun)))
	go n.watch(s, log, f)
	return nil
}

// awaitOwner waits until a server of an earlier config has left the folder.
func (n *node) awaitOwner() error {
	owner, ok := owners.Load(n.settings.dir)
	if !ok {
		return nil
	}
	select {
	case <-owner.(*node).ended:
		return nil
	case <-time.After(stopPatience):
		return fmt.Errorf("dir: the server that had %s before does not stop", n.settings.dir)
	}
}

// launch runs a server.
func (n *node) launch() (*server.Server, *serverLog, error) {
	o, err := n.settings.options()
	if err != nil {
		return nil, nil, err
	}
	log := &serverLog{logger: n.logger.Load, level: zapcore.DebugLevel, fatal: make(chan error, 1)}
	if c := n.settings.cluster; c != nil {
		log.level = zapcore.InfoLevel // who leads is worth knowing
		l, err := new(net.ListenConfig).Listen(n.ctx, "tcp", c.Listen)
		if err != nil {
			return nil, nil, fmt.Errorf("cluster listen: %w", err)
		}
		if err := l.Close(); err != nil {
			return nil, nil, err
		}
	}
	s, err := server.NewServer(o)
	if err != nil {
		return nil, nil, err
	}
	if p, ok := o.CustomClientAuthentication.(*inProcessOnly); ok {
		p.server = s
	}
	s.SetLoggerV2(log, false, false, false)
	s.Start()
	select {
	case err = <-log.fatal:
	default:
		err = n.lost(s)
	}
	if err != nil {
		s.Shutdown()
		return nil, nil, err
	}
	return s, log, nil
}

// lost returns what a server that is alone could not read, or nil. It would serve
// without that, as if the locks had never been. A node of a cluster gets it from
// the others.
func (n *node) lost(s *server.Server) error {
	if n.settings.cluster != nil {
		return nil
	}
	for begun := time.Now(); ; {
		problems := health(s)
		if len(problems) == 0 {
			return n.checkProgress(s)
		}
		if i := slices.IndexFunc(problems, unread); i >= 0 {
			return fmt.Errorf("dir: what is in %s cannot be read; put a backup there, or empty it to begin without any locks: %s", n.settings.dir, problems[i].Error)
		}
		if time.Since(begun) > readyPatience {
			return fmt.Errorf("it is not ready after %v, but its data are not known to be damaged: %s", readyPatience, problems[0].Error)
		}
		select {
		case <-time.After(readyPatience / 1000):
		case <-n.ctx.Done():
			return n.ctx.Err()
		}
	}
}

// watch owns the server and the folder, in a goroutine that start starts and that
// ends with the node. It replaces a server that cannot go on. A full disk, for one,
// makes a server refuse all writes until it is started again.
func (n *node) watch(s *server.Server, log *serverLog, f *folder) {
	defer func() {
		n.left = f.release()
		owners.CompareAndDelete(n.settings.dir, n)
		close(n.ended)
	}()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	broken := n.look(s)
	for {
		if broken != nil {
			n.logger.Load().Error("the embedded NATS server cannot go on, and is started again", zap.Error(broken))
			n.set(nil, broken)
			n.seen.Store(nil)
			s.Shutdown()
			if s, log = n.relaunch(tick); s == nil {
				return
			}
			n.logger.Load().Info("the embedded NATS server runs again")
			n.set(s, nil)
		}
		select {
		case <-n.ctx.Done():
			_ = n.look(s) // for its progress
			s.Shutdown()
			return
		case broken = <-log.fatal:
		case <-tick.C:
			broken = n.look(s)
		}
	}
}

// relaunch runs another server, as soon as that works. It returns nil if the node is
// to stop. It waits before each attempt: the server before may still write what it
// had not written.
func (n *node) relaunch(tick *time.Ticker) (*server.Server, *serverLog) {
	told := ""
	tick.Reset(lookEvery) // else one that is overdue would come at once
	for {
		select {
		case <-tick.C:
		case <-n.ctx.Done():
			return nil, nil
		}
		err := n.settings.tryWriting()
		if err == nil {
			var s *server.Server
			var log *serverLog
			if s, log, err = n.launch(); err == nil {
				return s, log
			}
		}
		if err.Error() != told {
			told = err.Error()
			n.logger.Load().Error("the embedded NATS server does not start again", zap.Error(err))
		}
		n.set(nil, err)
	}
}

// Destruct implements caddy.Destructor: it stops the server.
func (n *node) Destruct() error {
	n.cancel()
	n.mu.Lock()
	started := n.started
	n.mu.Unlock()
	if !started {
		return nil
	}
	n.set(nil, errors.New("it was stopped"))
	select {
	case <-n.ended:
		return n.left
	case <-time.After(stopPatience):
		// The folder stays ours until it has, as it may still be written to.
		return fmt.Errorf("the embedded NATS server does not stop within %v", stopPatience)
	}
}

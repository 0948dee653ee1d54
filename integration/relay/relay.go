// Package relay stands between a client and a server and does to their
// connections what networks do: it cuts them, falls silent, and loses answers.
package relay

import (
	"io"
	"net"
	"sync"
	"testing"
)

// Direction is a way that bytes go.
type Direction int

// The two directions.
const (
	Requests Direction = iota // from the client to the server
	Answers                   // from the server to the client
)

// Relay passes TCP connections on to a server.
type Relay struct {
	target   string
	listener net.Listener
	running  sync.WaitGroup

	mu      sync.Mutex
	changed *sync.Cond // something below is another
	cut     bool
	stalled [2]bool // by Direction
	toLose  int     // answers still to be lost
	lost    int     // those that were
	open    map[*link]bool
}

// link is a connection through the relay. The relay's mutex guards closed.
type link struct {
	client, server net.Conn
	closed         bool
}

// New starts a relay to a server, which need not run yet. It ends with the
// test.
func New(t testing.TB, target string) *Relay {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // The cleanup below ends it.
	if err != nil {
		t.Fatal(err)
	}
	r := &Relay{target: target, listener: listener, open: make(map[*link]bool)}
	r.changed = sync.NewCond(&r.mu)
	t.Cleanup(func() {
		_ = listener.Close()
		r.Cut()
		r.running.Wait()
	})
	r.running.Go(func() { // ends when the listener is closed
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			r.running.Go(func() { r.pass(client) }) // ends with the connection
		}
	})
	return r
}

// Address is where clients connect to.
func (r *Relay) Address() string { return r.listener.Addr().String() }

// Cut closes all connections, with all that is held of them. New ones are
// closed at once, until Heal.
func (r *Relay) Cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cut = true
	for l := range r.open {
		r.close(l)
	}
}

// Stall holds what goes in the given directions, or in both if none is given.
// Connections stay open, and new ones are opened. Heal lets everything through
// that was held.
func (r *Relay) Stall(directions ...Direction) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(directions) == 0 {
		directions = []Direction{Requests, Answers}
	}
	for _, d := range directions {
		r.stalled[d] = true
	}
}

// Heal ends a cut or a stall.
func (r *Relay) Heal() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cut = false
	r.stalled = [2]bool{}
	r.changed.Broadcast()
}

// LoseAnswers drops the next n pieces of answers, each with its connection.
// What the client sent before has reached the server.
func (r *Relay) LoseAnswers(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.toLose = n
}

// Lost returns how many answers LoseAnswers has dropped.
func (r *Relay) Lost() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lost
}

// close closes both ends. The caller holds the mutex.
func (r *Relay) close(l *link) {
	l.closed = true
	_ = l.client.Close()
	_ = l.server.Close()
	delete(r.open, l)
	r.changed.Broadcast()
}

func (r *Relay) pass(client net.Conn) {
	server, err := net.Dial("tcp", r.target) //nolint:noctx // On loopback it does not hang.
	if err != nil {
		_ = client.Close()
		return
	}
	l := &link{client: client, server: server}
	r.mu.Lock()
	r.open[l] = true
	if r.cut {
		r.close(l)
	}
	r.mu.Unlock()

	var both sync.WaitGroup
	both.Go(func() { r.pump(l, Requests, client, server) }) // ends when either end is closed
	r.pump(l, Answers, server, client)
	both.Wait()
}

// pump copies one direction until either end is closed, and closes both then.
func (r *Relay) pump(l *link, d Direction, from io.Reader, to io.Writer) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 && r.lets(l, d) {
			_, writeErr := to.Write(buffer[:n])
			if err == nil {
				err = writeErr
			}
		}
		if err != nil {
			break
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.close(l)
}

// lets waits while the direction is stalled. It reports whether what was read
// is to be passed on; if not, the connection is closed.
func (r *Relay) lets(l *link, d Direction) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.stalled[d] && !l.closed {
		r.changed.Wait()
	}
	if d == Answers && r.toLose > 0 && !l.closed {
		r.toLose--
		r.lost++
		r.close(l)
	}
	return !l.closed
}

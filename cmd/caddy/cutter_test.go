package main_test

import (
	"io"
	"net"
	"slices"
	"sync"
	"testing"
)

// cutter passes connections on to a server, and breaks them when told.
type cutter struct {
	t        *testing.T
	listener net.Listener
	running  sync.WaitGroup

	mu     sync.Mutex
	whole  *sync.Cond // the line: new connections get through
	broken bool
	closed bool
	target string
	open   []net.Conn // both ends of all connections
	toLose int        // answers still to be lost
	lost   []string   // those that were
}

func newCutter(t *testing.T) *cutter {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cutter{t: t, listener: listener, broken: true}
	c.whole = sync.NewCond(&c.mu)
	t.Cleanup(func() {
		_ = listener.Close()
		c.cut()
		c.mu.Lock()
		c.closed = true
		c.mu.Unlock()
		c.whole.Broadcast()
		c.running.Wait()
	})
	c.running.Go(func() { // ends when the listener is closed
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			c.running.Go(func() { c.pass(client) }) // ends with the connection
		}
	})
	return c
}

func (c *cutter) address() string { return c.listener.Addr().String() }

// forwardTo says where the server is. Before, connections wait.
func (c *cutter) forwardTo(target string) {
	c.mu.Lock()
	c.target = target
	c.mu.Unlock()
	c.mend()
}

// cut closes all connections. New ones are accepted, but wait for mend.
func (c *cutter) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.broken = true
	for _, conn := range c.open {
		_ = conn.Close()
	}
	c.open = nil
}

func (c *cutter) mend() {
	c.mu.Lock()
	c.broken = false
	c.mu.Unlock()
	c.whole.Broadcast()
}

// lose makes the next n answers be read and thrown away, each with its
// connection.
func (c *cutter) lose(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.toLose = n
}

func (c *cutter) lostAnswers() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.lost)
}

func (c *cutter) pass(client net.Conn) {
	defer client.Close()
	server, ok := c.connect(client)
	if !ok {
		return
	}
	defer server.Close()
	c.running.Go(func() { // ends when either end is closed
		_, _ = io.Copy(server, client)
		_ = server.Close()
	})
	buffer := make([]byte, 64<<10)
	for {
		n, err := server.Read(buffer)
		if err != nil || c.loses(buffer[:n]) {
			return
		}
		if _, err := client.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// connect connects a client's connection with the server once the line is
// whole.
func (c *cutter) connect(client net.Conn) (server net.Conn, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.broken && !c.closed {
		c.whole.Wait()
	}
	if c.closed {
		return nil, false
	}
	server, err := net.Dial("tcp", c.target)
	if err != nil {
		c.t.Error(err)
		return nil, false
	}
	c.open = append(c.open, client, server)
	return server, true
}

func (c *cutter) loses(answer []byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.toLose == 0 {
		return false
	}
	c.toLose--
	c.lost = append(c.lost, string(answer))
	return true
}

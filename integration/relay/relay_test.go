package relay_test

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/lockgateway/lockgateway/integration/process"
	"github.com/lockgateway/lockgateway/integration/relay"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// echo is a server that sends every line back, and counts them.
type echo struct {
	net.Listener

	lines atomic.Int64
}

func newEcho(t *testing.T) *echo {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	e := &echo{Listener: listener}
	var running sync.WaitGroup
	t.Cleanup(func() {
		_ = listener.Close()
		running.Wait()
	})
	running.Go(func() { // ends when the listener is closed
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			running.Go(func() { // ends when the other end is closed
				defer conn.Close()
				for scanner := bufio.NewScanner(conn); scanner.Scan(); {
					e.lines.Add(1)
					_, _ = fmt.Fprintf(conn, "%s\n", scanner.Text())
				}
			})
		}
	})
	return e
}

// client is a connection that sends and expects lines.
type client struct {
	net.Conn

	t       *testing.T
	scanner *bufio.Scanner
}

func dial(t *testing.T, r *relay.Relay) *client {
	t.Helper()
	conn, err := net.Dial("tcp", r.Address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(process.Soon)); err != nil {
		t.Fatal(err)
	}
	return &client{Conn: conn, t: t, scanner: bufio.NewScanner(conn)}
}

func (c *client) send(line string) {
	c.t.Helper()
	if _, err := fmt.Fprintf(c.Conn, "%s\n", line); err != nil {
		c.t.Fatal(err)
	}
}

func (c *client) expect(line string) {
	c.t.Helper()
	if !c.scanner.Scan() || c.scanner.Text() != line {
		c.t.Fatalf("received %q, error %v; want %q", c.scanner.Text(), c.scanner.Err(), line)
	}
}

func (c *client) expectClosed() {
	c.t.Helper()
	if c.scanner.Scan() {
		c.t.Fatalf("received %q; want the connection closed", c.scanner.Text())
	}
	if errors.Is(c.scanner.Err(), os.ErrDeadlineExceeded) {
		c.t.Fatal("the connection was not closed")
	}
}

func TestRelayPassesOn(t *testing.T) {
	r := relay.New(t, newEcho(t).Addr().String())
	for range 3 {
		c := dial(t, r)
		c.send("hello")
		c.expect("hello")
	}
}

func TestCutClosesUntilHealed(t *testing.T) {
	e := newEcho(t)
	r := relay.New(t, e.Addr().String())
	before := dial(t, r)
	before.send("before")
	before.expect("before")

	r.Cut()
	before.expectClosed()
	dial(t, r).expectClosed()

	r.Heal()
	after := dial(t, r)
	after.send("after")
	after.expect("after")
}

func TestStallHoldsADirection(t *testing.T) {
	e := newEcho(t)
	r := relay.New(t, e.Addr().String())
	c := dial(t, r)

	r.Stall(relay.Answers)
	c.send("one")
	process.Await(t, "the server has the line", func() bool { return e.lines.Load() == 1 })
	r.Heal()
	c.expect("one")

	r.Stall()
	c.send("two")
	other := dial(t, r)
	other.send("three")
	r.Heal()
	c.expect("two")
	other.expect("three")
}

func TestCutDropsWhatWasHeld(t *testing.T) {
	e := newEcho(t)
	r := relay.New(t, e.Addr().String())
	c := dial(t, r)
	r.Stall(relay.Answers)
	c.send("held")
	process.Await(t, "the server has the line", func() bool { return e.lines.Load() == 1 })
	r.Cut()
	r.Heal()
	c.expectClosed()

	c = dial(t, r)
	c.send("passed on") // the relay has the connection, then
	c.expect("passed on")
	r.Stall(relay.Requests)
	c.send("held")
	r.Cut()
	r.Heal()
	c.expectClosed()
	c = dial(t, r)
	c.send("passed on")
	c.expect("passed on")
	if n := e.lines.Load(); n != 3 {
		t.Errorf("the server has %d lines, want 3", n)
	}
}

func TestLostAnswerReachedTheServer(t *testing.T) {
	e := newEcho(t)
	r := relay.New(t, e.Addr().String())
	r.LoseAnswers(2)
	for i := range 2 {
		c := dial(t, r)
		c.send("lost")
		c.expectClosed()
		if n := e.lines.Load(); n != int64(i+1) {
			t.Fatalf("the server has %d lines, want %d", n, i+1)
		}
	}
	if n := r.Lost(); n != 2 {
		t.Errorf("%d answers are said to be lost", n)
	}
	c := dial(t, r)
	c.send("kept")
	c.expect("kept")
}

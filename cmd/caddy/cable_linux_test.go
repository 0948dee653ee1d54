package main_test

import (
	"errors"
	"syscall"
	"testing"
)

// A client that vanishes without a word is noticed by TCP keep-alive alone, and
// its place goes with the settings of Caddy's servers option.
func TestB32PulledCableIsNoticed(t *testing.T) {
	// The first probe comes after a second, and finds nobody. Where not even an
	// error came back, the connection would have 1 s + 3 × 1 s. The other site
	// does not probe for longer than the test takes: it shows that nothing but
	// the probe told the first.
	const config = `{
	admin ADMIN
	default_bind 127.0.0.1
	servers SITE {
		keepalive_idle 1s
		keepalive_interval 1s
		keepalive_count 3
	}
	servers OTHER {
		keepalive_idle 1h
	}
}
http://SITE, http://OTHER {
	lock_gateway
}
`
	s := startServer(t, config, nil)
	s.take("1/probed", "")
	s.take("1/unprobed", "")

	unprobed := s.dial(s.other)
	unprobed.send("/v1/1/unprobed/acquire?" + forLong)
	s.awaitWaiting("1/unprobed", 1)
	probed := s.dial(s.site)
	probed.send("/v1/1/probed/acquire?" + forLong)
	s.awaitWaiting("1/probed", 1)

	unprobed.vanish()
	probed.vanish()
	s.awaitWaiting("1/probed", 0)
	s.awaitWaiting("1/unprobed", 1)

	s.expect("/v1/1/probed/release", `{"released":true}`)
	s.expect("/v1/1/probed/value", `{"value":0}`)
}

// vanish ends the connection at this end without telling the other.
func (c rawConn) vanish() {
	c.t.Helper()
	// In repair mode, made for moving connections to another machine, closing
	// sends nothing.
	const repair = 19 // TCP_REPAIR, which package syscall has not
	raw, err := c.Conn.(syscall.Conn).SyscallConn()
	if err != nil {
		c.t.Fatal(err)
	}
	var setErr error
	err = raw.Control(func(fd uintptr) {
		setErr = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, repair, 1)
	})
	if err = errors.Join(err, setErr); errors.Is(err, syscall.EPERM) {
		c.t.Skip("closing a connection silently needs the capability CAP_NET_ADMIN:", err)
	}
	if err != nil {
		c.t.Fatal(err)
	}
	c.close()
}

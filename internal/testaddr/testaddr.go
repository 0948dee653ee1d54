// Package testaddr finds addresses for the servers that tests start.
package testaddr

import (
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"testing"
)

var handedOut sync.Map // ports that Free has returned

// Free returns a loopback address that nobody listens on, never the same one twice.
// Two servers would both listen on one, as Caddy lets its successor do, and answer for
// each other. Its port is not one of those that systems give to outgoing connections, so
// that a server can be restarted on it. Another program may take it all the same;
// whoever starts a server has to look.
func Free(t testing.TB) string {
	t.Helper()
	const first, end = 12000, 32000
	for range 1000 {
		port := first + rand.IntN(end-first) //nolint:gosec // Not a secret.
		if _, twice := handedOut.LoadOrStore(port, true); twice {
			continue
		}
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		listener, err := net.Listen("tcp", address) //nolint:noctx // It ends on the next line.
		if err != nil {
			continue
		}
		if err := listener.Close(); err != nil {
			t.Fatal(err)
		}
		return address
	}
	t.Fatal("no port is free")
	return ""
}

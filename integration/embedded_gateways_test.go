package integration_test

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/lockgateway/lockgateway/integration/certificates"
	"github.com/lockgateway/lockgateway/integration/gatewaytest"
	"github.com/lockgateway/lockgateway/integration/relay"
	"github.com/lockgateway/lockgateway/internal/testaddr"
)

// embeddedBackend is the config of a gateway that runs its own server, with these
// lines in the server's block.
func embeddedBackend(limits timing, server ...string) string {
	return fmt.Sprintf(`backend nats {
	session_ttl %s
	request_timeout %s
	embedded {
		%s
	}
}`, limits.session, limits.request, strings.Join(server, "\n\t\t"))
}

// startEmbedded starts a gateway with a server that is alone, which serves.
func startEmbedded(t *testing.T, limits timing, server ...string) *gatewaytest.Gateway {
	t.Helper()
	g := gatewaytest.Start(t, "single", embeddedBackend(limits, server...))
	awaitServing(t, g)
	return g
}

// embeddedNodes are the settings of a cluster of gateways.
type embeddedNodes struct {
	secret    string
	files     certificates.Files // empty: no TLS
	addresses []string           // on which nodes listen
	dirs      []string           // with the nodes' data
	relays    map[[2]int]*relay.Relay
}

const embeddedSecret = "a-secret-of-embedded-nodes"

func newEmbeddedNodes(t *testing.T) *embeddedNodes {
	t.Helper()
	e := &embeddedNodes{secret: embeddedSecret}
	for range 3 {
		e.addresses = append(e.addresses, testaddr.Free(t))
		e.dirs = append(e.dirs, t.TempDir())
	}
	return e
}

// relayed puts relays between all nodes. They cannot get around them: what they
// tell each other of where they are is where the relays are, and nobody listens on
// those ports.
func (e *embeddedNodes) relayed(t *testing.T) {
	t.Helper()
	e.relays = make(map[[2]int]*relay.Relay)
	for i, address := range e.addresses {
		_, port, err := net.SplitHostPort(address)
		if err != nil {
			t.Fatal(err)
		}
		e.addresses[i] = net.JoinHostPort(fmt.Sprintf("127.0.1.%d", i+1), port)
	}
	for from := range e.addresses {
		for to, address := range e.addresses {
			if from != to {
				e.relays[[2]int{from, to}] = relay.New(t, address)
			}
		}
	}
}

// around returns all relays between a node and the others.
func (e *embeddedNodes) around(node int) (relays []*relay.Relay) {
	for ends, r := range e.relays {
		if slices.Contains(ends[:], node) {
			relays = append(relays, r)
		}
	}
	return relays
}

func (e *embeddedNodes) config(node int, limits timing) string {
	return embeddedBackend(limits, "dir "+e.dirs[node], e.cluster(node))
}

// cluster is the block of a node's server that makes it one of them.
func (e *embeddedNodes) cluster(node int) string {
	routes := slices.Clone(e.addresses)
	for to := range routes {
		if r := e.relays[[2]int{node, to}]; r != nil {
			routes[to] = r.Address()
		}
	}
	lines := []string{
		"cluster {",
		fmt.Sprintf("node node-%d", node+1),
		"listen " + e.addresses[node],
		"routes " + strings.Join(routes, " "),
		"secret " + e.secret,
	}
	if f := e.files; f.CA != "" {
		lines = append(lines, "tls {", "ca "+f.CA, "cert "+f.ServerCert, "key "+f.ServerKey, "}")
	}
	return strings.Join(append(lines, "}"), "\n")
}

// start starts a node. It need not serve yet.
func (e *embeddedNodes) start(t *testing.T, node int, limits timing) *gatewaytest.Gateway {
	t.Helper()
	return gatewaytest.Start(t, fmt.Sprintf("node-%d", node+1), e.config(node, limits))
}

// startAll starts all nodes, and returns when they serve.
func (e *embeddedNodes) startAll(t *testing.T, limits timing) (gateways []*gatewaytest.Gateway) {
	t.Helper()
	for node := range e.addresses {
		gateways = append(gateways, e.start(t, node, limits))
	}
	for _, g := range gateways {
		awaitServing(t, g)
	}
	return gateways
}

// embeddedCluster makes tests of gateways on a store tests of gateways that are the
// store.
type embeddedCluster struct {
	cluster // nil: such tests do not touch the servers
	nodes   *embeddedNodes
}

func (e embeddedCluster) gateways(t *testing.T, limits timing) []*gatewaytest.Gateway {
	t.Helper()
	return e.nodes.startAll(t, limits)
}

// onEmbedded runs a test on a cluster of three gateways.
func onEmbedded(t *testing.T, test func(t *testing.T, start starter)) {
	t.Helper()
	t.Parallel()
	test(t, func(t *testing.T, _ int) cluster {
		t.Helper()
		return embeddedCluster{nodes: newEmbeddedNodes(t)}
	})
}

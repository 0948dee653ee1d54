package integration_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/lockgateway/lockgateway/integration/etcdtest"
	"github.com/lockgateway/lockgateway/integration/gatewaytest"
)

// Locks whose names are alike have nothing to do with each other.
func TestB8LocksDoNotMeet(t *testing.T) {
	t.Parallel()
	etcd := etcdtest.Start(t, etcdtest.Options{})
	gateways := startGateways(t, 2, patient, etcdCluster{etcd})
	// Another system on the same cluster, below the first.
	below := gatewaytest.Start(t, "below", etcdBackend(prefix+"/1", patient, etcd.Endpoints()))
	beside := gatewaytest.Start(t, "beside", etcdBackend(prefix+"1", patient, etcd.Endpoints()))
	var locks []string
	for _, id := range []string{
		"path", "path%", "path%25", "path%2F", "a", "a1", "A", "1", "11", "a b", " a", "a ", ".", "..", "...", "a?b", "a#b", "a+b",
		"🔒", "é", "e\u0301", "\x00", "\x00a", "a\n", "locks", "sessions", "expiring", "1:a", "1\\a", "a:1",
		strings.Repeat("a", 255), strings.Repeat("a", 256), strings.Repeat("🔒", 256), strings.Repeat("%", 256),
	} {
		for _, slots := range []string{"1", "2", "11", "99999999999999999999999"} {
			locks = append(locks, slots+"/"+url.PathEscape(id))
		}
	}
	for i, lock := range locks {
		gateways[i%2].Take(t, lock, "")
	}
	for i, lock := range locks {
		gateways[(i+1)%2].ExpectState(t, lock, 1, 0)
		for _, other := range []*gatewaytest.Gateway{below, beside} {
			if a := other.State(t, lock); a.Value != nil {
				t.Errorf("%s has the state %v with another prefix", lock, a)
			}
		}
	}
	for i, lock := range locks {
		gateways[i%2].ExpectRelease(t, lock, "", true)
		gateways[(i+1)%2].ExpectState(t, lock, 0, 0)
	}
}

// The whole way with certificates and a user who may do no more than he must.
func TestCertificatesAndPassword(t *testing.T) {
	t.Parallel()
	etcd := etcdtest.Start(t, etcdtest.Options{TLS: true, Auth: true, UserPrefix: prefix + "/"})
	c := etcd.Certificates
	config := etcdBackend(prefix, patient, etcd.Endpoints(),
		"username "+etcdtest.User,
		"password "+etcdtest.UserPassword,
		fmt.Sprintf("tls {\n\t\tca %s\n\t\tcert %s\n\t\tkey %s\n\t}", c.CA, c.ClientCert, c.ClientKey),
	)
	g1 := gatewaytest.Start(t, "gateway-1", config)
	g2 := gatewaytest.Start(t, "gateway-2", config)
	load := startLoad(t, g1, g2)
	g1.Take(t, "1/x", gatewaytest.Named(firstHolder, "ttlMs=600000"))
	expectInOrder(t, "1/x", queueAll(t, "1/x", 4, g1, g2), g2, g1)
	etcd.Members()[0].Kill(t)
	etcd.Members()[0].Restart(t)
	load.expectRecovery(t)
	load.stop(t)
}

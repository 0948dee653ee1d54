package integration_test

import (
	"os"
	"strings"
	"testing"

	"github.com/lockgateway/lockgateway/integration/etcdtest"
	"github.com/lockgateway/lockgateway/integration/gatewaytest"
)

// The example of docs/backends.md serves locks on three members with TLS and a
// user of its own, once it has their names, files and password.
func TestEtcdExample(t *testing.T) {
	t.Parallel()
	cluster := etcdtest.StartCluster(t, 3, etcdtest.Options{TLS: true, Auth: true, UserPrefix: "/lockgateway/"})
	text, err := os.ReadFile("../examples/etcd/Caddyfile")
	if err != nil {
		t.Fatal(err)
	}
	_, block, _ := strings.Cut(string(text), "lock_gateway {\n")
	block, _, _ = strings.Cut(block, "\n\t}\n")
	files := cluster.Certificates
	for i, m := range cluster.Members() {
		block = strings.ReplaceAll(block, []string{
			"https://etcd-1.example.com:2379", "https://etcd-2.example.com:2379", "https://etcd-3.example.com:2379",
		}[i], m.Endpoint())
	}
	for _, r := range [][2]string{
		{"username lockgateway", "username " + etcdtest.User},
		{"{env.ETCD_PASSWORD}", etcdtest.UserPassword},
		{"/etc/caddy/etcd-ca.pem", files.CA},
		{"/etc/caddy/etcd-client.pem", files.ClientCert},
		{"/etc/caddy/etcd-client-key.pem", files.ClientKey},
	} {
		if !strings.Contains(block, r[0]) {
			t.Errorf("the example does not have %q", r[0])
		}
		block = strings.ReplaceAll(block, r[0], r[1])
	}
	// In a slow minute nobody's time runs out.
	block = strings.Replace(block, "backend etcd {", "backend etcd {\nrequest_timeout 20s\nsession_ttl 1m", 1)
	a := gatewaytest.Start(t, "a", block)
	b := gatewaytest.Start(t, "b", block)
	a.Take(t, "1/example", "")
	waiting := b.Queue(t, "1/example", gatewaytest.ForLong(), 1)
	a.ExpectRelease(t, "1/example", "", true)
	waiting.ExpectGrant(t)
}

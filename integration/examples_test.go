package integration_test

import (
	"os"
	"strings"
	"testing"

	"github.com/lockgateway/lockgateway/integration/etcdtest"
	"github.com/lockgateway/lockgateway/integration/gatewaytest"
	"github.com/lockgateway/lockgateway/integration/natstest"
)

// The examples of docs/backends.md serve locks on three members with TLS and a
// user of its own, once they have the members' names, files and password.

func TestEtcdExample(t *testing.T) {
	t.Parallel()
	cluster := etcdtest.StartCluster(t, 3, etcdtest.Options{TLS: true, Auth: true, UserPrefix: "/lockgateway/"})
	files, members := cluster.Certificates, cluster.Members()
	serveExample(t, "../examples/etcd/Caddyfile", []string{
		"https://etcd-1.example.com:2379", members[0].Endpoint(),
		"https://etcd-2.example.com:2379", members[1].Endpoint(),
		"https://etcd-3.example.com:2379", members[2].Endpoint(),
		"username lockgateway", "username " + etcdtest.User,
		"{env.ETCD_PASSWORD}", etcdtest.UserPassword,
		"/etc/caddy/etcd-ca.pem", files.CA,
		"/etc/caddy/etcd-client.pem", files.ClientCert,
		"/etc/caddy/etcd-client-key.pem", files.ClientKey,
	})
}

func TestNATSExample(t *testing.T) {
	t.Parallel()
	cluster := natstest.StartCluster(t, 3, natstest.Options{TLS: true, Auth: true, Bucket: "lockgateway", SyncAlways: true})
	files, members := cluster.Certificates, cluster.Members()
	serveExample(t, "../examples/nats/Caddyfile", []string{
		"tls://nats-1.example.com:4222", "tls://" + members[0].Address(),
		"tls://nats-2.example.com:4222", "tls://" + members[1].Address(),
		"tls://nats-3.example.com:4222", "tls://" + members[2].Address(),
		"username lockgateway", "username " + natstest.User,
		"{env.NATS_PASSWORD}", natstest.UserPassword,
		"/etc/caddy/nats-ca.pem", files.CA,
		"/etc/caddy/nats-client.pem", files.ClientCert,
		"/etc/caddy/nats-client-key.pem", files.ClientKey,
	})
}

func TestNATSCredentialsExample(t *testing.T) {
	t.Parallel()
	cluster := natstest.StartCluster(t, 3, natstest.Options{TLS: true, Operator: true, Bucket: "lockgateway", SyncAlways: true})
	files, members := cluster.Certificates, cluster.Members()
	serveExample(t, "../examples/nats/credentials.Caddyfile", []string{
		"tls://nats-1.example.com:4222", "tls://" + members[0].Address(),
		"tls://nats-2.example.com:4222", "tls://" + members[1].Address(),
		"tls://nats-3.example.com:4222", "tls://" + members[2].Address(),
		"/etc/caddy/lockgateway.creds", cluster.Credentials,
		"/etc/caddy/nats-ca.pem", files.CA,
		"/etc/caddy/nats-client.pem", files.ClientCert,
		"/etc/caddy/nats-client-key.pem", files.ClientKey,
	})
}

// serveExample starts two gateways with the block of the handler in an example,
// after replacing pairs of texts in it, and tries them.
func serveExample(t *testing.T, path string, replace []string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	_, block, _ := strings.Cut(string(text), "lock_gateway {\n")
	block, _, _ = strings.Cut(block, "\n\t}\n")
	for i := 0; i < len(replace); i += 2 {
		if !strings.Contains(block, replace[i]) {
			t.Errorf("the example does not have %q", replace[i])
		}
	}
	block = strings.NewReplacer(replace...).Replace(block)
	// In a slow minute nobody's time runs out.
	before, settings, _ := strings.Cut(block, "backend ")
	name, settings, _ := strings.Cut(settings, " {\n")
	block = before + "backend " + name + " {\nrequest_timeout 20s\nsession_ttl 1m\n" + settings

	a, b := gatewaytest.Start(t, "a", block), gatewaytest.Start(t, "b", block)
	awaitServing(t, a)
	awaitServing(t, b)
	a.Take(t, "1/example", "")
	waiting := b.Queue(t, "1/example", gatewaytest.ForLong(), 1)
	a.ExpectRelease(t, "1/example", "", true)
	waiting.ExpectGrant(t)
}

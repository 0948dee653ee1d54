package etcdtest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/lockgateway/lockgateway/integration/etcdtest"
	"github.com/lockgateway/lockgateway/integration/process"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// put writes a key until that succeeds.
func put(t *testing.T, client *clientv3.Client, key string) {
	t.Helper()
	process.Await(t, "a write succeeds", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		_, err := client.Put(ctx, key, "value")
		return err == nil
	})
}

// expectKey checks that a key is there.
func expectKey(t *testing.T, client *clientv3.Client, key string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), process.Soon)
	defer cancel()
	got, err := client.Get(ctx, key)
	if err != nil || got.Count != 1 {
		t.Fatalf("%s: %v, error %v", key, got, err)
	}
}

func TestKilledServerKeepsItsData(t *testing.T) {
	t.Parallel()
	c := etcdtest.Start(t, etcdtest.Options{})
	put(t, c.Client(), "key")
	m := c.Members()[0]
	m.Kill(t)
	m.Restart(t)
	expectKey(t, c.Client(), "key")
}

func TestClusterOutlivesItsLeader(t *testing.T) {
	t.Parallel()
	c := etcdtest.StartCluster(t, 3, etcdtest.Options{})
	put(t, c.Client(), "first")
	first := c.Leader(t)
	first.Kill(t)
	second := c.Leader(t)
	if second == first {
		t.Fatalf("%s leads after its death", first.Name)
	}
	put(t, c.Client(), "second")
	first.Restart(t)

	second.Pause(t)
	put(t, c.Client(), "third")
	third := c.Leader(t)
	second.Resume(t)
	if third == second {
		t.Fatalf("%s leads while it is frozen", second.Name)
	}
	for _, key := range []string{"first", "second", "third"} {
		expectKey(t, c.Client(), key)
	}

	before := c.Leader(t)
	c.MoveLeader(t)
	process.Await(t, "another leads", func() bool { return c.Leader(t) != before })
}

func TestFullDatabaseTakesWritesAgain(t *testing.T) {
	t.Parallel()
	c := etcdtest.Start(t, etcdtest.Options{QuotaBytes: 16 << 20})
	c.Fill(t)
	if _, err := c.Client().Put(t.Context(), "key", "value"); !errors.Is(err, rpctypes.ErrNoSpace) {
		t.Fatalf("a write to a full database: error %v", err)
	}
	c.MakeRoom(t)
	put(t, c.Client(), "key")
}

func TestRevokedLeaseTakesItsKeys(t *testing.T) {
	t.Parallel()
	c := etcdtest.Start(t, etcdtest.Options{KeepRevisions: 1000, Checkpoint: true, Heartbeat: 50 * time.Millisecond, Election: 500 * time.Millisecond})
	lease, err := c.Client().Grant(t.Context(), 600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Client().Put(t.Context(), "key", "value", clientv3.WithLease(lease.ID)); err != nil {
		t.Fatal(err)
	}
	c.RevokeLeases(t)
	if got, err := c.Client().Get(t.Context(), "key"); err != nil || got.Count != 0 {
		t.Fatalf("the key is there: %v, error %v", got, err)
	}
}

func TestServersAskForCertificatesAndPasswords(t *testing.T) {
	t.Parallel()
	c := etcdtest.Start(t, etcdtest.Options{TLS: true, Auth: true, UserPrefix: "mine/"})
	put(t, c.Client(), "anything")
	for _, test := range []struct {
		name   string
		config clientv3.Config
		key    string
		want   error
	}{
		{"no certificate", clientv3.Config{Username: etcdtest.User, Password: etcdtest.UserPassword}, "mine/key", context.DeadlineExceeded},
		{"no permission", clientv3.Config{Username: etcdtest.User, Password: etcdtest.UserPassword, TLS: c.ClientTLS(t)}, "other", rpctypes.ErrPermissionDenied},
		{"all there", clientv3.Config{Username: etcdtest.User, Password: etcdtest.UserPassword, TLS: c.ClientTLS(t)}, "mine/key", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.config.Endpoints = c.Endpoints()
			test.config.DialTimeout = process.Soon
			if errors.Is(test.want, context.DeadlineExceeded) {
				test.config.DialTimeout = 2 * time.Second
			}
			test.config.Logger = zap.NewNop()
			client, err := clientv3.New(test.config)
			if err == nil {
				defer client.Close()
				_, err = client.Put(t.Context(), test.key, "value")
			}
			if !errors.Is(err, test.want) {
				t.Fatalf("error %v, want %v", err, test.want)
			}
		})
	}
}

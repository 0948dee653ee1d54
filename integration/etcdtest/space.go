package etcdtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/lockgateway/lockgateway/integration/process"
)

const ballast = "ballast/" // what the keys begin with that fill the database

// Fill writes until the servers refuse to, for want of space.
func (c *Cluster) Fill(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), process.Soon)
	defer cancel()
	// Pieces get smaller, so that no write finds room in the end.
	for size := 1 << 20; size >= 1; size /= 16 {
		value := string(bytes.Repeat([]byte("x"), size))
		for i := 0; ; i++ {
			_, err := c.admin.Put(ctx, fmt.Sprintf("%s%d/%d", ballast, size, i), value)
			if errors.Is(err, rpctypes.ErrNoSpace) {
				break
			}
			if err != nil {
				t.Fatal("filling etcd:", err)
			}
		}
	}
}

// MakeRoom does what an operator does after Fill: it deletes, compacts,
// defragments, and disarms the alarm.
func (c *Cluster) MakeRoom(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), process.Soon)
	defer cancel()
	if _, err := c.admin.Delete(ctx, ballast, clientv3.WithPrefix()); err != nil {
		t.Fatal("deleting:", err)
	}
	c.Compact(t)
	for _, m := range c.members {
		if _, err := c.admin.Defragment(ctx, m.Endpoint()); err != nil {
			t.Fatal("defragmenting:", err)
		}
	}
	if _, err := c.admin.AlarmDisarm(ctx, &clientv3.AlarmMember{}); err != nil {
		t.Fatal("disarming:", err)
	}
}

// Compact makes the servers forget all revisions before the present one.
func (c *Cluster) Compact(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), process.Soon)
	defer cancel()
	now, err := c.admin.Get(ctx, "any key")
	if err == nil {
		_, err = c.admin.Compact(ctx, now.Header.Revision, clientv3.WithCompactPhysical())
	}
	if err != nil && !errors.Is(err, rpctypes.ErrCompacted) {
		t.Fatal("compacting:", err)
	}
}

// RevokeLeases ends all leases, whoever keeps them alive.
func (c *Cluster) RevokeLeases(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), process.Soon)
	defer cancel()
	leases, err := c.admin.Leases(ctx)
	if err != nil {
		t.Fatal("listing leases:", err)
	}
	for _, l := range leases.Leases {
		if _, err := c.admin.Revoke(ctx, l.ID); err != nil && !errors.Is(err, rpctypes.ErrLeaseNotFound) {
			t.Fatal("revoking a lease:", err)
		}
	}
}

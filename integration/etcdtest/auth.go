package etcdtest

import (
	"context"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/lockgateway/lockgateway/integration/process"
)

// enableAuth makes the two users, and has the servers ask for passwords.
func (c *Cluster) enableAuth(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), process.Soon)
	defer cancel()
	end := clientv3.GetPrefixRangeEnd(c.options.UserPrefix)
	for _, step := range []func() error{
		func() error { _, err := c.admin.RoleAdd(ctx, Root); return err },
		func() error { _, err := c.admin.RoleAdd(ctx, User); return err },
		func() error {
			all := clientv3.PermissionType(clientv3.PermReadWrite)
			_, err := c.admin.RoleGrantPermission(ctx, User, c.options.UserPrefix, end, all)
			return err
		},
		func() error { _, err := c.admin.UserAdd(ctx, Root, RootPassword); return err },
		func() error { _, err := c.admin.UserAdd(ctx, User, UserPassword); return err },
		func() error { _, err := c.admin.UserGrantRole(ctx, Root, Root); return err },
		func() error { _, err := c.admin.UserGrantRole(ctx, User, User); return err },
		func() error { _, err := c.admin.AuthEnable(ctx); return err },
	} {
		if err := step(); err != nil {
			t.Fatal("enabling authentication:", err)
		}
	}
	c.admin = c.connect(t)
}

package etcd

import (
	"context"
	"fmt"

	"go.uber.org/zap"
)

// checkVersions warns, once, if a member of the cluster is older than what keeps
// the promises about expiry. It asks in the background, whenever a session was
// opened: the members may have changed. Members that do not answer are left out.
func (s *Store) checkVersions() {
	if s.warned.Load() || !s.checking.CompareAndSwap(false, true) {
		return
	}
	s.run(func() {
		defer s.checking.Store(false)
		ctx, cancel := context.WithTimeout(s.ctx, s.requestTimeout())
		defer cancel()
		c, err := s.clients(ctx)
		if err != nil {
			return
		}
		for _, endpoint := range c.etcd.Endpoints() {
			status, err := c.etcd.Status(ctx, endpoint)
			if err == nil && outdated(status.Version) && s.warned.CompareAndSwap(false, true) {
				s.logger().Warn("this etcd may revoke leases early or renew them in vain; update it to 3.5.24, 3.6.5 or later",
					zap.String("endpoint", endpoint), zap.String("version", status.Version))
			}
		}
	})
}

// outdated reports whether a version is older than 3.5.24 or 3.6.5. One that
// cannot be read is not.
func outdated(version string) bool {
	var major, minor, patch int
	if _, err := fmt.Sscanf(version, "%d.%d.%d", &major, &minor, &patch); err != nil || major > 3 {
		return false
	}
	switch {
	case major < 3 || minor < 5:
		return true
	case minor == 5:
		return patch < 24
	case minor == 6:
		return patch < 5
	default:
		return false
	}
}

func (s *Store) logger() *zap.Logger { return s.options.Load().Logger }

// Package lockgateway is everything that a build of Caddy with the lock gateway
// has: importing it for its side effects registers the handler and all backends,
// so that one --with of xcaddy is enough. A slim build names packages instead:
// caddymodule, which brings the memory backend along, and the wanted folders of
// backends.
package lockgateway

import (
	_ "github.com/lockgateway/lockgateway/backends/etcd"
	_ "github.com/lockgateway/lockgateway/backends/memory"
	_ "github.com/lockgateway/lockgateway/backends/nats"
	_ "github.com/lockgateway/lockgateway/backends/nats/embedded"
	_ "github.com/lockgateway/lockgateway/caddymodule"
)

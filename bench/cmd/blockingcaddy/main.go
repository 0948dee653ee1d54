// Command blockingcaddy is Caddy with the lock gateway and, to measure it
// against, a handler that only blocks.
package main

import (
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	_ "github.com/caddyserver/caddy/v2/modules/standard"

	_ "github.com/lockgateway/lockgateway/caddymodule"
)

func main() { caddycmd.Main() }

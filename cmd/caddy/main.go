// Command caddy is Caddy with the lock gateway and all its backends compiled
// in.
package main

import (
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	_ "github.com/caddyserver/caddy/v2/modules/standard"

	_ "github.com/lockgateway/lockgateway"
)

func main() { caddycmd.Main() }

// Package settings is what the settings of the handler and of the modules of all
// backends have in common: how a Caddyfile has them, their placeholders, TLS, and what
// may be wrong with them. Errors name the setting, and of a Caddyfile the line.
package settings

import (
	"strconv"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
)

// Text reads the one value of the setting that d is at, which must not be empty.
func Text(d *caddyfile.Dispenser) (string, error) {
	name := d.Val()
	var value string
	if !d.AllArgs(&value) || value == "" {
		return "", d.Errf("%s takes one value", name)
	}
	return value, nil
}

// NoArgument refuses an argument of a setting that has none.
func NoArgument(d *caddyfile.Dispenser) error {
	if d.NextArg() {
		return d.ArgErr()
	}
	return nil
}

// Duration reads a positive duration.
func Duration(d *caddyfile.Dispenser) (caddy.Duration, error) {
	name := d.Val()
	text, err := Text(d)
	if err != nil {
		return 0, err
	}
	value, err := caddy.ParseDuration(text)
	if err != nil || value <= 0 {
		return 0, d.Errf("%s: %q is not a positive duration such as 30s", name, text)
	}
	return caddy.Duration(value), nil
}

// Count reads a positive number.
func Count(d *caddyfile.Dispenser) (int64, error) {
	name := d.Val()
	text, err := Text(d)
	if err != nil {
		return 0, err
	}
	value, err := strconv.ParseInt(text, 10, 64)
	if err != nil || value <= 0 {
		return 0, d.Errf("%s: %q is not a positive number", name, text)
	}
	return value, nil
}

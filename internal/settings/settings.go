// Package settings reads the values of Caddyfile settings, for the handler and
// the modules of all backends alike. Its errors name the file, the line and the
// setting.
package settings

import (
	"strconv"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
)

// Given are the settings of a block that were read so far.
type Given map[string]bool

// Once returns an error if the setting that d is at was read before.
func (g Given) Once(d *caddyfile.Dispenser) error {
	if g[d.Val()] {
		return d.Errf("%s is given twice", d.Val())
	}
	g[d.Val()] = true
	return nil
}

// Text reads the one value of the setting that d is at, which must not be empty.
func Text(d *caddyfile.Dispenser) (string, error) {
	name := d.Val()
	var value string
	if !d.AllArgs(&value) || value == "" {
		return "", d.Errf("%s takes one value", name)
	}
	return value, nil
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

package etcd

import (
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/lockgateway/lockgateway/internal/settings"
)

// UnmarshalCaddyfile sets up the module from Caddyfile tokens. Syntax:
//
//	etcd {
//		endpoints         <urls...>
//		discovery_srv     <domain>
//		prefix            <prefix>
//		username          <name>
//		password          <password>
//		tls {
//			ca          <file>
//			cert        <file>
//			key         <file>
//			server_name <name>
//		}
//		dial_timeout      <duration>
//		request_timeout   <duration>
//		keepalive_time    <duration>
//		keepalive_timeout <duration>
//		session_ttl       <duration>
//		forget_after      <duration>
//	}
func (m *Module) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // the backend's name
	if d.NextArg() {
		return d.ArgErr()
	}
	block := block{given: make(settings.Given), at: map[string]caddyfile.Dispenser{}, whole: *d}
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		err := block.begin(d)
		if err == nil {
			err = m.unmarshalSetting(d, block)
		}
		if err != nil {
			return err
		}
	}
	return block.refuse(m.check())
}

func (m *Module) unmarshalSetting(d *caddyfile.Dispenser, b block) (err error) {
	switch d.Val() {
	case "endpoints":
		if m.Endpoints = d.RemainingArgs(); len(m.Endpoints) == 0 {
			err = d.Err("endpoints takes one URL or more")
		}
	case "discovery_srv":
		m.DiscoverySRV, err = settings.Text(d)
	case "prefix":
		m.Prefix, err = settings.Text(d)
	case "username":
		m.Username, err = settings.Text(d)
	case "password":
		m.Password, err = settings.Text(d)
	case "tls":
		m.TLS = new(TLS)
		err = m.TLS.unmarshal(d, b)
	case "dial_timeout":
		m.DialTimeout, err = settings.Duration(d)
	case "request_timeout":
		m.RequestTimeout, err = settings.Duration(d)
	case "keepalive_time":
		m.KeepAliveTime, err = settings.Duration(d)
	case "keepalive_timeout":
		m.KeepAliveTimeout, err = settings.Duration(d)
	case "session_ttl":
		m.SessionTTL, err = settings.Duration(d)
	case "forget_after":
		m.ForgetAfter, err = settings.Duration(d)
	default:
		err = d.Errf("unrecognized setting %q of the etcd backend; there are endpoints, discovery_srv, prefix, username, password, tls, dial_timeout, request_timeout, keepalive_time, keepalive_timeout, session_ttl and forget_after", d.Val())
	}
	return err
}

func (t *TLS) unmarshal(d *caddyfile.Dispenser, b block) error {
	if d.NextArg() {
		return d.ArgErr()
	}
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		err := b.begin(d)
		if err != nil {
			return err
		}
		switch d.Val() {
		case "ca":
			t.CA, err = settings.Text(d)
		case "cert":
			t.Cert, err = settings.Text(d)
		case "key":
			t.Key, err = settings.Text(d)
		case "server_name":
			t.ServerName, err = settings.Text(d)
		default:
			err = d.Errf("unrecognized setting %q of tls; there are ca, cert, key and server_name", d.Val())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// block knows where in the Caddyfile the settings are.
type block struct {
	given settings.Given
	at    map[string]caddyfile.Dispenser // at each setting
	whole caddyfile.Dispenser            // at the backend's name
}

// begin notes the setting that d is at.
func (b block) begin(d *caddyfile.Dispenser) error {
	b.at[d.Val()] = *d
	return b.given.Once(d)
}

// refuse makes an error of what is wrong with a setting, with the line where it is,
// or, if it is missing, where the backend is.
func (b block) refuse(problem *settingError) error {
	if problem == nil {
		return nil
	}
	where, given := b.at[problem.setting]
	if !given {
		where = b.whole
	}
	return where.WrapErr(problem)
}

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
	block := settings.NewBlock(d)
	if err := block.Each(d, func() error { return m.unmarshalSetting(d, block) }); err != nil {
		return err
	}
	return block.Refuse(m.check())
}

func (m *Module) unmarshalSetting(d *caddyfile.Dispenser, b *settings.Block) (err error) {
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
		err = m.TLS.Unmarshal(d, b)
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

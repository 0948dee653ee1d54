package nats

import (
	"math"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/dustin/go-humanize"

	"github.com/lockgateway/lockgateway/internal/settings"
)

// UnmarshalCaddyfile sets up the module from Caddyfile tokens. Syntax:
//
//	nats {
//		servers         <urls...>
//		embedded {
//			...
//		}
//		bucket          <name>
//		replicas        <count>
//		storage         file|memory
//		placement {
//			cluster <name>
//			tags    <tags...>
//		}
//		max_bytes       <size>
//		credentials     <file>
//		nkey            <file>
//		username        <name>
//		password        <password>
//		token           <token>
//		tls {
//			ca          <file>
//			cert        <file>
//			key         <file>
//			server_name <name>
//		}
//		domain          <name>
//		dial_timeout    <duration>
//		request_timeout <duration>
//		session_ttl     <duration>
//		forget_after    <duration>
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
	case "servers":
		if m.Servers = d.RemainingArgs(); len(m.Servers) == 0 {
			err = d.Err("servers takes one URL or more")
		}
	case "embedded":
		m.EmbeddedRaw, err = unmarshalEmbedded(d)
	case "bucket":
		m.Bucket, err = settings.Text(d)
	case "replicas":
		var count int64
		count, err = settings.Count(d)
		m.Replicas = int(min(count, maxReplicas+1))
	case "storage":
		m.Storage, err = settings.Text(d)
	case "placement":
		m.Placement = new(Placement)
		err = m.Placement.unmarshal(d, b)
	case "max_bytes":
		m.MaxBytes, err = size(d)
	case "credentials":
		m.Credentials, err = settings.Text(d)
	case "nkey":
		m.NKey, err = settings.Text(d)
	case "username":
		m.Username, err = settings.Text(d)
	case "password":
		m.Password, err = settings.Text(d)
	case "token":
		m.Token, err = settings.Text(d)
	case "tls":
		m.TLS = new(TLS)
		err = m.TLS.Unmarshal(d, b)
	case "domain":
		m.Domain, err = settings.Text(d)
	case "dial_timeout":
		m.DialTimeout, err = settings.Duration(d)
	case "request_timeout":
		m.RequestTimeout, err = settings.Duration(d)
	case "session_ttl":
		m.SessionTTL, err = settings.Duration(d)
	case "forget_after":
		m.ForgetAfter, err = settings.Duration(d)
	default:
		err = d.Errf("unrecognized setting %q of the nats backend; there are servers, embedded, bucket, replicas, storage, placement, max_bytes, credentials, nkey, username, password, token, tls, domain, dial_timeout, request_timeout, session_ttl and forget_after", d.Val())
	}
	return err
}

// size reads a number of bytes.
func size(d *caddyfile.Dispenser) (int64, error) {
	text, err := settings.Text(d)
	if err != nil {
		return 0, err
	}
	bytes, err := humanize.ParseBytes(text)
	if err != nil || bytes == 0 || bytes > math.MaxInt64 {
		return 0, d.Errf("max_bytes: %q is not a size such as 10GiB", text)
	}
	return int64(bytes), nil
}

func (p *Placement) unmarshal(d *caddyfile.Dispenser, b *settings.Block) error {
	return b.Each(d, func() (err error) {
		switch d.Val() {
		case "cluster":
			p.Cluster, err = settings.Text(d)
		case "tags":
			if p.Tags = d.RemainingArgs(); len(p.Tags) == 0 {
				err = d.Err("tags takes one tag or more")
			}
		default:
			err = d.Errf("unrecognized setting %q of placement; there are cluster and tags", d.Val())
		}
		return err
	})
}

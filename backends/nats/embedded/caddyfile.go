package embedded

import (
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/lockgateway/lockgateway/internal/settings"
)

// UnmarshalCaddyfile sets up the module from Caddyfile tokens. Syntax:
//
//	embedded {
//		dir           <path>
//		sync_interval always|<duration>
//		cluster {
//			name   <name>
//			node   <name>
//			listen <address>
//			routes <addresses...>
//			secret <text>
//			tls {
//				ca   <file>
//				cert <file>
//				key  <file>
//			}
//			insecure
//		}
//	}
func (m *Module) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // embedded
	block := settings.NewBlock(d)
	err := block.Each(d, func() (err error) {
		switch d.Val() {
		case "dir":
			m.Dir, err = settings.Text(d)
		case "sync_interval":
			m.SyncInterval, err = settings.Text(d)
		case "cluster":
			m.Cluster = new(Cluster)
			err = m.Cluster.unmarshal(d, block)
		default:
			err = d.Errf("unrecognized setting %q of embedded; there are dir, sync_interval and cluster", d.Val())
		}
		return err
	})
	if err != nil {
		return err
	}
	return block.Refuse(m.check())
}

func (c *Cluster) unmarshal(d *caddyfile.Dispenser, b *settings.Block) error {
	return b.Each(d, func() (err error) {
		switch d.Val() {
		case "name":
			c.Name, err = settings.Text(d)
		case "node":
			c.Node, err = settings.Text(d)
		case "listen":
			c.Listen, err = settings.Text(d)
		case "routes":
			if c.Routes = d.RemainingArgs(); len(c.Routes) == 0 {
				err = d.Err("routes takes the hosts and ports of all nodes")
			}
		case "secret":
			c.Secret, err = settings.Text(d)
		case "tls":
			c.TLS = new(TLS)
			err = c.TLS.unmarshal(d, b)
		case "insecure":
			c.Insecure = true
			err = settings.NoArgument(d)
		default:
			err = d.Errf("unrecognized setting %q of cluster; there are name, node, listen, routes, secret, tls and insecure", d.Val())
		}
		return err
	})
}

func (t *TLS) unmarshal(d *caddyfile.Dispenser, b *settings.Block) error {
	return b.Each(d, func() (err error) {
		switch d.Val() {
		case "ca":
			t.CA, err = settings.Text(d)
		case "cert":
			t.Cert, err = settings.Text(d)
		case "key":
			t.Key, err = settings.Text(d)
		default:
			err = d.Errf("unrecognized setting %q of tls; there are ca, cert and key", d.Val())
		}
		return err
	})
}

package settings

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
)

// TLS has settings of encrypted connections to servers. Files are in PEM.
type TLS struct {
	// The file with the certificates of those who may have signed the servers'.
	// Default: whom the system trusts
	CA string `json:"ca,omitempty"`

	// The file with the certificate to show to servers that ask for one. It is
	// read again with each connection, and so is its key: they can be renewed.
	Cert string `json:"cert,omitempty"`

	// The file with the key of the certificate.
	Key string `json:"key,omitempty"`

	// The name that the servers' certificates must be for. Default: the host of
	// each server's URL
	ServerName string `json:"server_name,omitempty"`
}

// Config reads the files.
func (t TLS) Config() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName}
	if t.CA != "" {
		pem, err := os.ReadFile(t.CA)
		if err != nil {
			return nil, fmt.Errorf("tls ca: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("tls ca: %s has no certificate in PEM", t.CA)
		}
	}
	if t.Cert != "" {
		load := func() (*tls.Certificate, error) {
			pair, err := tls.LoadX509KeyPair(t.Cert, t.Key)
			if err != nil {
				return nil, fmt.Errorf("tls cert and key: %w", err)
			}
			return &pair, nil
		}
		if _, err := load(); err != nil {
			return nil, err
		}
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return load() }
	}
	return config, nil
}

// Unmarshal reads the block, which is within another.
func (t *TLS) Unmarshal(d *caddyfile.Dispenser, b *Block) error {
	return b.Each(d, func() (err error) {
		switch d.Val() {
		case "ca":
			t.CA, err = Text(d)
		case "cert":
			t.Cert, err = Text(d)
		case "key":
			t.Key, err = Text(d)
		case "server_name":
			t.ServerName, err = Text(d)
		default:
			err = d.Errf("unrecognized setting %q of tls; there are ca, cert, key and server_name", d.Val())
		}
		return err
	})
}

// Check returns what is wrong with the settings, or nil. There may be none.
func (t *TLS) Check() *Problem {
	if t == nil {
		return nil
	}
	return First(
		If(t.Cert != "" && t.Key == "", "cert", "there is no key in tls; give both, or none"),
		If(t.Key != "" && t.Cert == "", "key", "there is no cert in tls; give both, or none"),
	)
}

// Fill fills in placeholders. There may be no settings.
func (t *TLS) Fill(r *Replacer) {
	if t == nil {
		return
	}
	r.Fill("tls ca", &t.CA)
	r.Fill("tls cert", &t.Cert)
	r.Fill("tls key", &t.Key)
	r.Fill("tls server_name", &t.ServerName)
}

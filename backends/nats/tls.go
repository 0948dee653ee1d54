package nats

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
)

// TLS has settings of encrypted connections. Files are in PEM.
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
	// each endpoint
	ServerName string `json:"server_name,omitempty"`
}

// config reads the files.
func (t TLS) config() (*tls.Config, error) {
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

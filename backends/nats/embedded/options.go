package embedded

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/url"
	"os"

	"github.com/nats-io/nats-server/v2/server"
)

const (
	// singleName is what a server that is alone calls itself. Nobody sees it.
	singleName = "single"

	// routeUser is whom nodes log in as with the secret.
	routeUser = "lockgateway"

	// maxMemory is the most that streams in memory may take. There are none.
	maxMemory = 1 << 20

	// maxStore is no limit: that of the disk holds. By default it would be what is
	// free when the server starts, which is nothing after the disk was full.
	maxStore = 1 << 60
)

// options returns the server's own options.
func (s serverSettings) options() (*server.Options, error) {
	o := &server.Options{
		ServerName:             singleName,
		DontListen:             true,
		NoSigs:                 true, // they are Caddy's
		JetStream:              true,
		DisableJetStreamBanner: true,
		JetStreamMaxMemory:     maxMemory,
		JetStreamMaxStore:      maxStore,
		StoreDir:               s.dir,
		SyncAlways:             s.syncInterval == 0,
		SyncInterval:           s.syncInterval,
	}
	if s.cluster == nil {
		return o, nil
	}
	c := s.cluster
	host, port, err := splitAddress(c.Listen)
	if err != nil {
		return nil, fmt.Errorf("cluster listen: %q %w", c.Listen, err)
	}
	o.ServerName = c.Node
	// A server that does not listen for clients does not connect to other nodes
	// either. So it does, on a port of the system's choice, and lets nobody in.
	o.DontListen = false
	o.Host, o.Port = "127.0.0.1", server.RANDOM_PORT
	o.CustomClientAuthentication = new(inProcessOnly)
	o.Cluster = server.ClusterOpts{Name: c.Name, Host: host, Port: port, NoAdvertise: true}
	var user *url.Userinfo
	if c.Secret != "" {
		o.Cluster.Username, o.Cluster.Password = routeUser, c.Secret
		user = url.UserPassword(routeUser, c.Secret)
	}
	for _, r := range c.Routes {
		o.Routes = append(o.Routes, &url.URL{Scheme: "nats-route", Host: r, User: user})
	}
	if c.TLS != nil {
		if o.Cluster.TLSConfig, err = c.TLS.config(); err != nil {
			return nil, err
		}
	}
	return o, nil
}

// config reads the files. Nodes are each other's servers and clients.
func (t TLS) config() (*tls.Config, error) {
	pem, err := os.ReadFile(t.CA)
	if err != nil {
		return nil, fmt.Errorf("cluster tls ca: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("cluster tls ca: %s has no certificate in PEM", t.CA)
	}
	load := func() (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(t.Cert, t.Key)
		if err != nil {
			return nil, fmt.Errorf("cluster tls cert and key: %w", err)
		}
		return &pair, nil
	}
	if _, err := load(); err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion:           tls.VersionTLS12,
		RootCAs:              pool,
		ClientCAs:            pool,
		ClientAuth:           tls.RequireAndVerifyClientCert,
		GetCertificate:       func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return load() },
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return load() },
	}, nil
}

// inProcessOnly lets in whoever is in this process, and nobody else.
type inProcessOnly struct {
	server *server.Server // set before it starts
}

// Check implements server.Authentication.
func (p *inProcessOnly) Check(c server.ClientAuthentication) bool {
	address := c.RemoteAddress()
	if address == nil || address.Network() != "pipe" {
		return false
	}
	if c.GetOpts().Username == operator {
		c.RegisterUser(&server.User{Username: operator, Account: p.server.SystemAccount()})
	}
	return true
}

package main_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lockgateway/lockgateway/internal/testaddr"
)

// documented returns the block of docs/operations.md in a language that has a
// text in it.
func documented(t *testing.T, language, text string) string {
	t.Helper()
	for _, sn := range snippets(t) {
		if sn.file == "docs/operations.md" && sn.language == language && strings.Contains(sn.text, text) {
			return sn.text
		}
	}
	t.Fatalf("docs/operations.md has no %s block with %q", language, text)
	return ""
}

// asSite makes a documented site one on the address SITE.
func asSite(block string) string {
	return "{\n\tadmin ADMIN\n\tdefault_bind 127.0.0.1\n}\n" + strings.Replace(block, "locks.example.com {", "http://SITE {", 1)
}

// expectTransparent checks that requests through a proxy wait, are granted and
// go away as they do without it, and are never sent twice.
func expectTransparent(t *testing.T, s *server, proxy string, c *cutter) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(client.CloseIdleConnections)
	get := func(path string) string { return mustFetch(t, client, "http://"+proxy+path).body }

	const lock = "1/proxied"
	if got := get("/v1/" + lock + "/acquire"); got != `{"acquired":true,"value":1}` {
		t.Fatalf("through the proxy: %s", got)
	}
	// The id reaches the gateway as it was spelled.
	if got := get("/v1/1/a%2Fb/acquire"); !strings.Contains(got, "slash") {
		t.Errorf("an id with a slash: %s", got)
	}
	get("/v1/9/a%20b%25/acquire")
	s.expect("/v1/9/a%20b%25/value", `{"value":1}`)

	gone := s.dial(proxy)
	gone.send("/v1/" + lock + "/acquire?" + forLong)
	s.awaitWaiting(lock, 1)
	stays := s.dial(proxy)
	stays.send("/v1/" + lock + "/acquire?" + forLong)
	s.awaitWaiting(lock, 2)
	gone.close()
	s.awaitWaiting(lock, 1)
	s.expect("/v1/"+lock+"/release", `{"released":true}`)
	if a := stays.receive(); a.body != `{"acquired":true,"value":1}` {
		t.Errorf("after waiting through the proxy: %d %s", a.status, a.body)
	}

	// An answer that is lost on its way to the proxy is an error, not a second
	// request; also on a connection that was used before.
	get("/v1/5/repeated/value")
	c.lose(1)
	if a := mustFetch(t, client, "http://"+proxy+"/v1/5/repeated/acquire"); a.status != http.StatusBadGateway {
		t.Errorf("a lost answer gave %d %s", a.status, a.body)
	}
	s.expect("/v1/5/repeated/value", `{"value":1}`)
}

func TestNginxInFront(t *testing.T) {
	nginx, err := exec.LookPath("nginx")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	s := startServer(t, onlySite, nil)
	c := newCutter(t)
	c.forwardTo(s.site)
	proxy, dir := testaddr.Free(t), t.TempDir()
	site := strings.NewReplacer("listen 80;", "listen "+proxy+";", "http://localhost:8080", "http://"+c.address()).
		Replace(documented(t, "nginx", "proxy_pass"))
	config := "daemon off;\nmaster_process off;\npid nginx.pid;\nerror_log stderr;\nevents {}\nhttp {\naccess_log off;\n" +
		"client_body_temp_path body;\nproxy_temp_path proxy;\nfastcgi_temp_path f;\nuwsgi_temp_path u;\nscgi_temp_path s;\n" + site + "}\n"
	path := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	var output bytes.Buffer
	cmd := exec.Command(nginx, "-p", dir, "-c", path)
	cmd.Stderr = &output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }() // ends with the process
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
	})
	await(t, "nginx answers", func() bool {
		conn, err := net.Dial("tcp", proxy)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
	expectTransparent(t, s, proxy, c)
}

func TestCaddyInFront(t *testing.T) {
	s := startServer(t, onlySite, nil)
	c := newCutter(t)
	c.forwardTo(s.site)
	front := startServer(t, asSite(documented(t, "caddyfile", "reverse_proxy")), map[string]string{"localhost:8080": c.address()})
	expectTransparent(t, s, front.site, c)
}

func TestBasicAuth(t *testing.T) {
	s := startServer(t, asSite(documented(t, "caddyfile", "\tbasic_auth {\n\t\tdeploy")), nil)
	url := "http://" + s.site + "/v1/1/a/acquire"
	if a := mustFetch(t, s.client, url); a.status != http.StatusUnauthorized {
		t.Errorf("without a password: %d %s", a.status, a.body)
	}
	if a := mustFetch(t, s.client, strings.Replace(url, "http://", "http://deploy:change%20me@", 1)); a.body != `{"acquired":true,"value":1}` {
		t.Errorf("with the password: %d %s", a.status, a.body)
	}
}

func TestForwardAuth(t *testing.T) {
	const service = "http://OTHER {\n\t@known header Authorization \"Bearer good\"\n\trespond @known 204\n\trespond 403\n}\n"
	site := strings.Replace(documented(t, "caddyfile", "forward_auth"), "localhost:9091", "OTHER", 1)
	s := startServer(t, asSite(site)+service, nil)
	if a := s.get("/v1/1/a/acquire"); a.status != http.StatusForbidden {
		t.Errorf("without the token: %d %s", a.status, a.body)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.site+"/v1/1/a/acquire", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer good")
	res, err := s.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		t.Errorf("with the token: %s", res.Status)
	}
}

func TestTeamsHaveTheirOwnLocks(t *testing.T) {
	s := startServer(t, asSite(documented(t, "caddyfile", "/blue/*")), nil)
	site := "change%20me@" + s.site
	for _, team := range []string{"blue", "green"} {
		if a := mustFetch(t, s.client, "http://"+team+":"+site+"/"+team+"/v1/1/a/acquire"); a.body != `{"acquired":true,"value":1}` {
			t.Errorf("%s: %d %s", team, a.status, a.body)
		}
	}
	if a := mustFetch(t, s.client, "http://green:"+site+"/blue/v1/1/a/acquire"); a.status != http.StatusUnauthorized {
		t.Errorf("the other team: %d %s", a.status, a.body)
	}
}

// authorityFile is where the documentation has the clients' authority.
const authorityFile = "/etc/caddy/clients.pem"

// certificates are an authority, its file, and a certificate that it signed.
type certificates struct {
	file   string
	client tls.Certificate
}

func authority(t *testing.T) certificates {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority of the clients"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	client := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "client"}, NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	caBytes, err := x509.CreateCertificate(rand.Reader, ca, ca, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	clientBytes, err := x509.CreateCertificate(rand.Reader, client, ca, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "clients.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: caBytes}), 0o600); err != nil {
		t.Fatal(err)
	}
	return certificates{file: file, client: tls.Certificate{Certificate: [][]byte{clientBytes}, PrivateKey: key}}
}

func TestClientCertificates(t *testing.T) {
	c := authority(t)
	_, port, _ := net.SplitHostPort(testaddr.Free(t))
	site := strings.Replace(documented(t, "caddyfile", "client_auth"), "locks.example.com {", "https://localhost:"+port+" {", 1)
	s := startServer(t, strings.Replace(onlySite, "default_bind", "local_certs\n\tskip_install_trust\n\tauto_https disable_redirects\n\tdefault_bind", 1)+site,
		map[string]string{authorityFile: c.file})
	get := func(certs ...tls.Certificate) (answer, error) {
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true, Certificates: certs}}}
		defer client.CloseIdleConnections()
		return fetch(t.Context(), client, "https://localhost:"+port+"/v1/1/a/acquire")
	}
	await(t, "the certificate is there", func() bool {
		a, err := get(c.client)
		return err == nil && a.body == `{"acquired":true,"value":1}`
	})
	if a, err := get(); err == nil {
		t.Errorf("without a certificate: %d %s", a.status, a.body)
	}
	if a, err := get(authority(t).client); err == nil {
		t.Errorf("with a certificate of another authority: %d %s", a.status, a.body)
	}
	s.expect("/v1/1/a/value", `{"value":1}`)
}

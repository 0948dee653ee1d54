package nats

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"

	"github.com/lockgateway/lockgateway/internal/settings"
)

const (
	storageFile   = "file"
	storageMemory = "memory"

	// maxReplicas is what JetStream can do.
	maxReplicas = 5

	defaultPort = "4222"
)

// check returns what is wrong with the settings, or nil. Values with placeholders
// that are not filled in yet are taken to be right.
func (m *Module) check() *settings.Problem {
	problem := settings.First(
		settings.If(len(m.Servers) == 0 && m.EmbeddedRaw == nil, "servers", "there are none; give URLs such as nats://localhost:4222, or embedded to run one in Caddy"),
		settings.If(!settings.HasPlaceholder(m.Bucket) && !settings.IsName(m.Bucket), "bucket", "its name has letters, digits, - and _ only"),
		settings.If(m.Replicas < 0 || m.Replicas > maxReplicas, "replicas", "there may be 1 to "+strconv.Itoa(maxReplicas)),
		settings.If(!settings.HasPlaceholder(m.Storage) && m.Storage != "" && m.Storage != storageFile && m.Storage != storageMemory, "storage", "it is "+storageFile+" or "+storageMemory),
		settings.If(m.MaxBytes < 0, "max_bytes", "it is negative; leave it out for no limit"),
		settings.If(m.Placement != nil && m.Placement.Cluster == "" && len(m.Placement.Tags) == 0, "placement", "there is neither cluster nor tags"),
		settings.If(!settings.HasPlaceholder(m.Domain) && !settings.IsName(m.Domain), "domain", "its name has letters, digits, - and _ only"),
		settings.If(m.Password != "" && m.Username == "", "password", "there is no username; give both, or none"),
		settings.If(m.Username != "" && m.Password == "", "username", "there is no password; give both, or none"),
		settings.If(m.RequestTimeout < 0, "request_timeout", "it is negative; leave it out for "+DefaultRequestTimeout.String()),
		settings.If(m.DialTimeout < 0, "dial_timeout", "it is negative; leave it out for "+DefaultDialTimeout.String()),
		settings.If(settings.Below(m.SessionTTL, leastSessionTTL), "session_ttl", "it must be "+leastSessionTTL.String()+" or more; leave it out for "+DefaultSessionTTL.String()),
		settings.If(settings.Below(m.ForgetAfter, leastForgetAfter), "forget_after", "it must be "+leastForgetAfter.String()+" or more; leave it out for "+DefaultForgetAfter.String()),
		m.TLS.Check(),
		m.checkEmbedded(),
		m.checkLogin(),
	)
	if problem != nil {
		return problem
	}
	for _, s := range m.Servers {
		if settings.HasPlaceholder(s) {
			continue
		}
		if err := checkURL(serverURL(s)); err != nil {
			return settings.Wrong("servers", fmt.Sprintf("%q %s", s, err))
		}
	}
	return nil
}

// checkEmbedded refuses settings that make no sense for a server in this process.
func (m *Module) checkEmbedded() *settings.Problem {
	if m.EmbeddedRaw == nil {
		return nil
	}
	for _, elsewhere := range []struct {
		given   bool
		setting string
	}{
		{len(m.Servers) > 0, "servers"},
		{m.Credentials != "", "credentials"},
		{m.NKey != "", "nkey"},
		{m.Username != "", "username"},
		{m.Token != "", "token"},
		{m.TLS != nil, "tls"},
		{m.Domain != "", "domain"},
		{m.Placement != nil, "placement"},
	} {
		if elsewhere.given {
			return settings.Wrong(elsewhere.setting, "there is embedded, too, and this is for servers elsewhere; leave one of them out")
		}
	}
	if m.Storage == storageMemory {
		return settings.Wrong("storage", "an embedded server keeps files; for locks in memory there is the memory backend")
	}
	return nil
}

// checkLogin refuses more than one way to log in.
func (m *Module) checkLogin() *settings.Problem {
	first := ""
	for _, way := range []struct{ setting, value string }{
		{"credentials", m.Credentials}, {"nkey", m.NKey}, {"username", m.Username}, {"token", m.Token},
	} {
		switch {
		case way.value == "":
		case first == "":
			first = way.setting
		default:
			return settings.Wrong(way.setting, "there is "+first+", too; leave one of them out")
		}
	}
	return nil
}

// checkURL returns what is wrong with a server.
func checkURL(server string) error {
	u, err := url.Parse(server)
	if err != nil {
		return errors.New("is no URL such as nats://localhost:4222")
	}
	port, err := strconv.Atoi(u.Port())
	if err != nil || port < 1 || port > 65535 || u.Hostname() == "" {
		return errors.New("has no host and port, as in nats://localhost:4222")
	}
	switch u.Scheme {
	case "nats", "tls", "ws", "wss":
	default:
		return errors.New("is none of nats, tls, ws and wss")
	}
	if u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return errors.New("has more than scheme, host and port; there are settings for username, password and token")
	}
	return nil
}

// serverURL returns a server with its scheme and port, in lower case.
func serverURL(server string) string {
	server = strings.TrimSuffix(strings.ToLower(server), "/")
	if !strings.Contains(server, "://") {
		server = "nats://" + server
	}
	if u, err := url.Parse(server); err == nil && u.Port() == "" && u.Hostname() != "" && !strings.HasPrefix(u.Scheme, "ws") {
		u.Host = net.JoinHostPort(u.Hostname(), defaultPort)
		return u.String()
	}
	return server
}

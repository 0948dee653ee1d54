package nats

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
)

const (
	storageFile   = "file"
	storageMemory = "memory"

	// maxReplicas is what JetStream can do.
	maxReplicas = 5

	defaultPort = "4222"
)

// settingError is a setting that is wrong, or does not go with another one.
type settingError struct {
	setting string // as it is called in a Caddyfile; in blocks, too
	problem string
}

func (e *settingError) Error() string { return e.setting + ": " + e.problem }

// check returns what is wrong with the settings, or nil. Values with placeholders
// that are not filled in yet are taken to be right.
func (m *Module) check() *settingError {
	for _, c := range []struct {
		wrong            bool
		setting, problem string
	}{
		{len(m.Servers) == 0, "servers", "there are none; give URLs such as nats://localhost:4222"},
		{!hasPlaceholder(m.Bucket) && !isName(m.Bucket), "bucket", "its name has letters, digits, - and _ only"},
		{m.Replicas < 0 || m.Replicas > maxReplicas, "replicas", "there may be 1 to " + strconv.Itoa(maxReplicas)},
		{!hasPlaceholder(m.Storage) && m.Storage != "" && m.Storage != storageFile && m.Storage != storageMemory, "storage", "it is " + storageFile + " or " + storageMemory},
		{m.MaxBytes < 0, "max_bytes", "it is negative; leave it out for no limit"},
		{m.Placement != nil && m.Placement.Cluster == "" && len(m.Placement.Tags) == 0, "placement", "there is neither cluster nor tags"},
		{!hasPlaceholder(m.Domain) && !isName(m.Domain), "domain", "its name has letters, digits, - and _ only"},
		{m.Password != "" && m.Username == "", "password", "there is no username; give both, or none"},
		{m.Username != "" && m.Password == "", "username", "there is no password; give both, or none"},
		{m.TLS != nil && m.TLS.Cert != "" && m.TLS.Key == "", "cert", "there is no key in tls; give both, or none"},
		{m.TLS != nil && m.TLS.Key != "" && m.TLS.Cert == "", "key", "there is no cert in tls; give both, or none"},
		{m.RequestTimeout < 0, "request_timeout", "it is negative; leave it out for " + DefaultRequestTimeout.String()},
		{m.DialTimeout < 0, "dial_timeout", "it is negative; leave it out for " + DefaultDialTimeout.String()},
		{below(m.SessionTTL, leastSessionTTL), "session_ttl", "it must be " + leastSessionTTL.String() + " or more; leave it out for " + DefaultSessionTTL.String()},
		{below(m.ForgetAfter, leastForgetAfter), "forget_after", "it must be " + leastForgetAfter.String() + " or more; leave it out for " + DefaultForgetAfter.String()},
	} {
		if c.wrong {
			return &settingError{c.setting, c.problem}
		}
	}
	if problem := m.checkLogin(); problem != nil {
		return problem
	}
	for _, s := range m.Servers {
		if hasPlaceholder(s) {
			continue
		}
		if err := checkURL(serverURL(s)); err != nil {
			return &settingError{"servers", fmt.Sprintf("%q %s", s, err)}
		}
	}
	return nil
}

// checkLogin refuses more than one way to log in.
func (m *Module) checkLogin() *settingError {
	first := ""
	for _, way := range []struct{ setting, value string }{
		{"credentials", m.Credentials}, {"nkey", m.NKey}, {"username", m.Username}, {"token", m.Token},
	} {
		switch {
		case way.value == "":
		case first == "":
			first = way.setting
		default:
			return &settingError{way.setting, "there is " + first + ", too; leave one of them out"}
		}
	}
	return nil
}

// below reports whether a duration is given and too short.
func below(d caddy.Duration, least time.Duration) bool {
	return d != 0 && time.Duration(d) < least
}

// isName reports whether a text is a name as JetStream takes it, or empty.
func isName(text string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"
	return !strings.ContainsFunc(text, func(r rune) bool { return !strings.ContainsRune(letters, r) })
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

func hasPlaceholder(text string) bool { return strings.Contains(text, "{") }

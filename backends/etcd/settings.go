package etcd

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
)

// settingError is a setting that is wrong, or does not go with another one.
type settingError struct {
	setting string // as it is called in a Caddyfile; in tls, too
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
		{len(m.Endpoints) == 0 && m.DiscoverySRV == "", "endpoints", "there are none; give URLs such as http://localhost:2379, or discovery_srv"},
		{len(m.Endpoints) > 0 && m.DiscoverySRV != "", "discovery_srv", "there are endpoints, too; leave one of them out"},
		{m.Password != "" && m.Username == "", "password", "there is no username; give both, or none"},
		{m.Username != "" && m.Password == "", "username", "there is no password; give both, or none"},
		{m.TLS != nil && m.TLS.Cert != "" && m.TLS.Key == "", "cert", "there is no key in tls; give both, or none"},
		{m.TLS != nil && m.TLS.Key != "" && m.TLS.Cert == "", "key", "there is no cert in tls; give both, or none"},
		{m.RequestTimeout < 0, "request_timeout", "it is negative; leave it out for " + DefaultRequestTimeout.String()},
		{m.DialTimeout < 0, "dial_timeout", "it is negative; leave it out for " + DefaultDialTimeout.String()},
		{m.KeepAliveTimeout < 0, "keepalive_timeout", "it is negative; leave it out for " + DefaultKeepAliveTimeout.String()},
		{below(m.KeepAliveTime, leastKeepAliveTime), "keepalive_time", "gRPC does not go below " + leastKeepAliveTime.String() + "; leave it out for that"},
		{below(m.SessionTTL, leastSessionTTL), "session_ttl", "etcd does not go below " + leastSessionTTL.String() + "; leave it out for " + DefaultSessionTTL.String()},
		{below(m.ForgetAfter, leastForgetAfter), "forget_after", "it must be " + leastForgetAfter.String() + " or more; leave it out for " + DefaultForgetAfter.String()},
	} {
		if c.wrong {
			return &settingError{c.setting, c.problem}
		}
	}
	if err := checkPrefix(m.Prefix); err != nil {
		return &settingError{"prefix", err.Error()}
	}
	return m.checkEndpoints()
}

// below reports whether a duration is given and too short.
func below(d caddy.Duration, least time.Duration) bool {
	return d != 0 && time.Duration(d) < least
}

func (m *Module) checkEndpoints() *settingError {
	schemes := make(map[string]string) // an endpoint of each
	for _, e := range m.Endpoints {
		if hasPlaceholder(e) {
			continue
		}
		scheme, err := checkURL(m.url(e))
		if err != nil {
			return &settingError{"endpoints", fmt.Sprintf("%q %s", e, err)}
		}
		schemes[scheme] = e
	}
	switch e := schemes["http"]; {
	case e != "" && m.TLS != nil:
		return &settingError{"tls", fmt.Sprintf("the endpoint %q has no TLS; make it https, or leave tls out", e)}
	case e != "" && schemes["https"] != "":
		return &settingError{"endpoints", fmt.Sprintf("%q has no TLS and %q has; make all https, or all http", e, schemes["https"])}
	}
	return nil
}

// checkURL returns the scheme of an endpoint, or what is wrong with it.
func checkURL(endpoint string) (scheme string, err error) {
	u, err := url.Parse(endpoint)
	if err != nil {
		return "", errors.New("is no URL such as http://localhost:2379")
	}
	port, err := strconv.Atoi(u.Port())
	if err != nil || port < 1 || port > 65535 || u.Hostname() == "" {
		return "", errors.New("has no host and port, as in http://localhost:2379")
	}
	if u.Scheme != "http" && u.Scheme != "https" {
		return "", errors.New("is neither http nor https")
	}
	if u.Path != "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return "", errors.New("has more than scheme, host and port; there are settings for username and password")
	}
	return u.Scheme, nil
}

// url returns an endpoint with its scheme, in lower case.
func (m *Module) url(endpoint string) string {
	endpoint = strings.TrimSuffix(strings.ToLower(endpoint), "/")
	switch {
	case strings.Contains(endpoint, "://"):
		return endpoint
	case m.TLS != nil:
		return "https://" + endpoint
	default:
		return "http://" + endpoint
	}
}

func hasPlaceholder(text string) bool { return strings.Contains(text, "{") }

package etcd

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/lockgateway/lockgateway/internal/settings"
)

// check returns what is wrong with the settings, or nil. Values with placeholders
// that are not filled in yet are taken to be right.
func (m *Module) check() *settings.Problem {
	problem := settings.First(
		settings.If(len(m.Endpoints) == 0 && m.DiscoverySRV == "", "endpoints", "there are none; give URLs such as http://localhost:2379, or discovery_srv"),
		settings.If(len(m.Endpoints) > 0 && m.DiscoverySRV != "", "discovery_srv", "there are endpoints, too; leave one of them out"),
		settings.If(m.Password != "" && m.Username == "", "password", "there is no username; give both, or none"),
		settings.If(m.Username != "" && m.Password == "", "username", "there is no password; give both, or none"),
		settings.If(m.RequestTimeout < 0, "request_timeout", "it is negative; leave it out for "+DefaultRequestTimeout.String()),
		settings.If(m.DialTimeout < 0, "dial_timeout", "it is negative; leave it out for "+DefaultDialTimeout.String()),
		settings.If(m.KeepAliveTimeout < 0, "keepalive_timeout", "it is negative; leave it out for "+DefaultKeepAliveTimeout.String()),
		settings.If(settings.Below(m.KeepAliveTime, leastKeepAliveTime), "keepalive_time", "gRPC does not go below "+leastKeepAliveTime.String()+"; leave it out for that"),
		settings.If(settings.Below(m.SessionTTL, leastSessionTTL), "session_ttl", "etcd does not go below "+leastSessionTTL.String()+"; leave it out for "+DefaultSessionTTL.String()),
		settings.If(settings.Below(m.ForgetAfter, leastForgetAfter), "forget_after", "it must be "+leastForgetAfter.String()+" or more; leave it out for "+DefaultForgetAfter.String()),
		m.TLS.Check(),
	)
	if problem != nil {
		return problem
	}
	if err := checkPrefix(m.Prefix); err != nil {
		return settings.Wrong("prefix", err.Error())
	}
	return m.checkEndpoints()
}

func (m *Module) checkEndpoints() *settings.Problem {
	schemes := make(map[string]string) // an endpoint of each
	for _, e := range m.Endpoints {
		if settings.HasPlaceholder(e) {
			continue
		}
		scheme, err := checkURL(m.url(e))
		if err != nil {
			return settings.Wrong("endpoints", fmt.Sprintf("%q %s", e, err))
		}
		schemes[scheme] = e
	}
	switch e := schemes["http"]; {
	case e != "" && m.TLS != nil:
		return settings.Wrong("tls", fmt.Sprintf("the endpoint %q has no TLS; make it https, or leave tls out", e))
	case e != "" && schemes["https"] != "":
		return settings.Wrong("endpoints", fmt.Sprintf("%q has no TLS and %q has; make all https, or all http", e, schemes["https"]))
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

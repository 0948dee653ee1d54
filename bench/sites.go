package main

import (
	"fmt"
	"net"
	"strings"
)

// site is one of the server's: an address of its own and what answers there.
type site struct {
	address    string
	directives string
}

// newSite returns a site on an address that is free.
func newSite(directives string) (site, error) {
	address, err := freeAddress()
	return site{address: address, directives: directives}, err
}

// caddyfile is the config of a server with these sites. It has no access log,
// and plain HTTP only.
func caddyfile(admin string, sites []site) string {
	var b strings.Builder
	fmt.Fprintf(&b, "{\n\tadmin %s\n\tauto_https off\n\tpersist_config off\n\tservers {\n\t\tprotocols h1 h2c\n\t}\n\tlog default {\n\t\tlevel WARN\n\t}\n}\n", admin)
	for _, s := range sites {
		// A port without a host: a request is not matched against anything.
		host, port, _ := net.SplitHostPort(s.address)
		fmt.Fprintf(&b, "http://:%s {\n\tbind %s\n\t%s\n}\n", port, host, strings.ReplaceAll(s.directives, "\n", "\n\t"))
	}
	return b.String()
}

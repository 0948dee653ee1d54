package etcd

import (
	"context"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// answerSRV makes Go's resolver ask a server that has nothing but these records,
// by their names.
func answerSRV(t *testing.T, records map[string][]dnsmessage.SRVResource) {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		packet := make([]byte, 512)
		for {
			n, from, err := conn.ReadFrom(packet)
			if err != nil {
				return // closed
			}
			var m dnsmessage.Message
			if m.Unpack(packet[:n]) != nil || len(m.Questions) != 1 {
				continue
			}
			q := m.Questions[0]
			m.Response, m.RCode, m.Additionals = true, dnsmessage.RCodeNameError, nil
			for _, r := range records[q.Name.String()] {
				m.RCode = dnsmessage.RCodeSuccess
				m.Answers = append(m.Answers, dnsmessage.Resource{
					Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class, TTL: 1},
					Body:   &r,
				})
			}
			if reply, err := m.Pack(); err == nil {
				_, _ = conn.WriteTo(reply, from)
			}
		}
	})
	before := net.DefaultResolver
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
	t.Cleanup(func() {
		net.DefaultResolver = before
		conn.Close()
		serving.Wait()
	})
}

func member(host string, port uint16) dnsmessage.SRVResource {
	return dnsmessage.SRVResource{Target: dnsmessage.MustNewName(host + "."), Port: port}
}

func TestDiscoveryPrefersTLS(t *testing.T) {
	answerSRV(t, map[string][]dnsmessage.SRVResource{
		"_etcd-client-ssl._tcp.both.example.": {member("b.example", 2379), member("a.example", 2381)},
		"_etcd-client._tcp.both.example.":     {member("c.example", 2379)},
		"_etcd-client._tcp.plain.example.":    {member("c.example", 2379)},
	})
	for _, c := range []struct {
		domain string
		tls    TLS
		want   []string
		err    string
	}{
		{"both.example", TLS{}, []string{"https://a.example:2381", "https://b.example:2379"}, ""},
		{"plain.example", TLS{}, []string{"http://c.example:2379"}, ""},
		{"plain.example", TLS{ServerName: "c"}, nil, "without TLS"},
		{"none.example", TLS{}, nil, "no such host"},
	} {
		connection := &connection{settings: Connection{DiscoverySRV: c.domain, TLS: c.tls, DialTimeout: 10 * time.Second}}
		got, err := connection.lookUp(t.Context())
		if !slices.Equal(got, c.want) || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s has the members %v, error %v; want %v, error %q", c.domain, got, err, c.want, c.err)
		}
	}
}

func TestDiscoveryThatFailsIsToldToCallers(t *testing.T) {
	answerSRV(t, nil)
	o := Options{Connection: Connection{DiscoverySRV: "none.example", DialTimeout: 10 * time.Second}}
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Get(t.Context(), "a"); err == nil || !strings.Contains(err.Error(), "none.example") {
		t.Errorf("reading gave the error %v", err)
	}
}

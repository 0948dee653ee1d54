package storetest

import (
	"time"

	"github.com/lockgateway/lockgateway/backends/replicated"
)

var gatewayPromises = []promise{
	{"GatewaysShareRecords", "the stores of all gateways are one: what one swaps the others read, and it refuses their swaps", func(s *subject) {
		a, b := s.gateway, s.another()
		k := key()
		e := s.create(a, k, "a")
		s.reads(b, k, e)
		s.refuse(b, replicated.Swap{Key: k, Value: []byte("b")}, e)
		now := s.apply(b, replicated.Swap{Key: k, Expect: e.Revision, Value: []byte("c")})
		s.reads(a, k, now)
		s.refuse(a, replicated.Swap{Key: k, Expect: e.Revision, Value: []byte("d")}, now)
	}},
	{"RecordsOutliveTheirGateway", "records and expiring keys stay when the gateway that made them is closed", func(s *subject) {
		a, b := s.another(), s.gateway
		k := key()
		_, x := s.newExpiring(a, time.Hour)
		e := s.apply(a, replicated.Swap{Key: k, Value: []byte("a"), Expiring: []replicated.Expiring{x}})
		s.must("ending a session", a.session.End(s.ctx))
		s.close(a)
		s.reads(b, k, e)
		s.live(b, x)
		s.apply(b, replicated.Swap{Key: k, Expect: e.Revision, Value: []byte("b")})
	}},
	{"GatewaysShareExpiring", "an expiring key is everybody's: each gateway sees it, and can restart and discard it", func(s *subject) {
		a, b := s.gateway, s.another()
		_, x := s.newExpiring(a, time.Hour)
		k := key()
		e := s.apply(a, replicated.Swap{Key: k, Value: []byte("a"), Expiring: []replicated.Expiring{x}})
		s.live(b, x)
		s.must("restart", b.Restart(s.ctx, x))
		s.live(a, x)
		s.apply(b, replicated.Swap{Key: k, Expect: e.Revision, Value: []byte("b")})
		b.Discard(x.ID)
		s.gone(a, x)
	}},
}

package storetest

import (
	"crypto/rand"
	"slices"

	"github.com/lockgateway/lockgateway/backends/replicated"
)

var recordPromises = []promise{
	{"AbsentRecord", "Get returns a zero Entry if there is no record, and so does a refused Swap", func(s *subject) {
		k, elsewhere := key(), s.create(s.gateway, key(), "elsewhere")
		s.reads(s.gateway, k, replicated.Entry{})
		s.refuse(s.gateway, replicated.Swap{Key: k, Expect: elsewhere.Revision, Value: []byte("a")}, replicated.Entry{})
		s.reads(s.gateway, k, replicated.Entry{})
		s.create(s.gateway, k, "b")
	}},
	{"CreateMakesTheRecord", "a swap that expects no record makes one if there is none", func(s *subject) {
		k := key()
		s.reads(s.gateway, k, s.create(s.gateway, k, "a"))
	}},
	{"CreateSparesTheRecord", "a swap that expects no record changes nothing if there is one, and returns it", func(s *subject) {
		k := key()
		e := s.create(s.gateway, k, "a")
		s.refuse(s.gateway, replicated.Swap{Key: k, Value: []byte("b")}, e)
		s.reads(s.gateway, k, e)
	}},
	{"SwapReplacesTheRecord", "a swap that expects the record's revision replaces the record", func(s *subject) {
		k := key()
		e := s.create(s.gateway, k, "a")
		for _, value := range []string{"b", "b", "a", "c"} { // the same value is a change, too
			e = s.apply(s.gateway, replicated.Swap{Key: k, Expect: e.Revision, Value: []byte(value)})
			s.reads(s.gateway, k, e)
		}
	}},
	{"IdleRecordsStay", "an idle record may be forgotten once it has been left alone for long, which is not at once", func(s *subject) {
		k := key()
		e := s.apply(s.gateway, replicated.Swap{Key: k, Value: []byte("a"), Idle: true})
		s.reads(s.gateway, k, e)
		e = s.apply(s.gateway, replicated.Swap{Key: k, Expect: e.Revision, Value: []byte("b")})
		e = s.apply(s.gateway, replicated.Swap{Key: k, Expect: e.Revision, Value: []byte("c"), Idle: true})
		s.reads(s.gateway, k, e)
	}},
	{"RefusedSwapReturnsTheRecord", "if the record's revision is another, Swap returns the record that the store has", func(s *subject) {
		k := key()
		old := s.create(s.gateway, k, "a")
		now := s.apply(s.gateway, replicated.Swap{Key: k, Expect: old.Revision, Value: []byte("b")})
		wrongs := []uint64{old.Revision}
		if s.Linearizable() { // or else a record that is older than what is expected says nothing
			later := s.create(s.gateway, key(), "elsewhere")
			wrongs = append(wrongs, later.Revision, now.Revision+1<<40)
		}
		for _, wrong := range wrongs {
			s.refuse(s.gateway, replicated.Swap{Key: k, Expect: wrong, Value: []byte("c")}, now)
		}
	}},
	{"RefusedSwapChangesNothing", "a refused swap changes neither the record nor its revision", func(s *subject) {
		k := key()
		old := s.create(s.gateway, k, "a")
		now := s.apply(s.gateway, replicated.Swap{Key: k, Expect: old.Revision, Value: []byte("b")})
		s.refuse(s.gateway, replicated.Swap{Key: k, Expect: old.Revision, Value: []byte("c")}, now)
		s.refuse(s.gateway, replicated.Swap{Key: k, Value: []byte("d")}, now)
		s.reads(s.gateway, k, now)
		s.apply(s.gateway, replicated.Swap{Key: k, Expect: now.Revision, Value: []byte("e")})
	}},
	{"RevisionsRise", "a revision is greater than that of any earlier swap of any key", func(s *subject) {
		gateways := []*gateway{s.gateway, s.another()}
		keys := []string{key(), key(), key()}
		records := make(map[string]replicated.Entry)
		last := uint64(0)
		for n := range 5 * len(keys) {
			k := keys[n%len(keys)]
			e := s.apply(gateways[n%2], replicated.Swap{Key: k, Expect: records[k].Revision, Value: []byte{byte(n)}})
			if e.Revision <= last {
				s.broken("swap %d gave revision %d, after %d for another key", n, e.Revision, last)
			}
			last, records[k] = e.Revision, e
		}
	}},
	{"ValuesAreBytes", "a value is up to 64 KiB of any bytes", func(s *subject) {
		big := make([]byte, 64<<10)
		_, _ = rand.Read(big) // it never fails
		every := make([]byte, 256)
		for i := range every {
			every[i] = byte(i)
		}
		k := key()
		var e replicated.Entry
		for _, value := range [][]byte{every, big, {0}, slices.Repeat([]byte("\xff"), len(big))} {
			e = s.apply(s.gateway, replicated.Swap{Key: k, Expect: e.Revision, Value: value})
			s.reads(s.gateway, k, e)
			s.refuse(s.gateway, replicated.Swap{Key: k, Value: []byte("a")}, e)
		}
	}},
	{"EpochStays", "the epoch changes when the store is another one or went back in time, and else never", func(s *subject) {
		epoch, k := s.Epoch(), key()
		s.create(s.gateway, k, "a")
		s.another()
		s.create(s.gateway, key(), "b")
		if now := s.Epoch(); now != epoch {
			s.broken("the epoch went from %d to %d", epoch, now)
		}
	}},
}

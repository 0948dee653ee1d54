package locktest

import (
	"math"
	"strconv"

	"github.com/lockgateway/lockgateway/lock"
)

var countingPromises = []promise{
	{"FreshLock", "a lock that was never acquired has no value; release answers false and changes nothing", func(s *subject) {
		k := s.key("1")
		s.fresh(k)
		s.release(k, "", false)
		s.release(k, "nobody", false)
		s.reset(k)
		s.fresh(k)
		s.take(anonymous(k), 1)
	}},
	{"AcquireCountsToTheMaximum", "acquire takes a slot if value < maxValue, and answers the number of holders right after it", func(s *subject) {
		k := s.key("3")
		for n := int64(1); n <= 3; n++ {
			s.take(anonymous(k), n)
			s.held(k, n)
		}
		s.refused(anonymous(k))
		s.refused(named(k, "late"))
		s.held(k, 3)
	}},
	{"ReleaseFreesOneSlot", "release frees one held slot, and answers false only when the count is 0", func(s *subject) {
		k := s.key("3")
		s.take(anonymous(k), 1)
		s.take(anonymous(k), 2)
		s.release(k, "", true)
		s.held(k, 1)
		s.release(k, "", true)
		s.held(k, 0)
		s.release(k, "", false)
		s.held(k, 0)
	}},
	{"B14DoubleReleaseNeverExceedsMax", "there are never more than maxValue grants outstanding, however often release is called", func(s *subject) {
		k := s.key("3")
		s.take(anonymous(k), 1)
		s.release(k, "", true)
		s.release(k, "", false)
		s.release(k, "", false)
		for n := int64(1); n <= 3; n++ {
			s.take(anonymous(k), n)
		}
		s.refused(anonymous(k))
	}},
	{"ResetFreesAll", "reset sets the count to 0 and the lock reads as never acquired", func(s *subject) {
		k := s.key("3")
		s.take(anonymous(k), 1)
		s.take(named(k, "a"), 2)
		s.take(anonymous(k), 3)
		s.reset(k)
		s.fresh(k)
		s.release(k, "", false)
		s.release(k, "a", false)
		for n := int64(1); n <= 3; n++ {
			s.take(anonymous(k), n)
		}
		s.refused(anonymous(k))
	}},
	{"B15SlotsStayHeldUntilReset", "a slot without a TTL stays held until release or reset", func(s *subject) {
		k := s.key("3")
		for n := int64(1); n <= 3; n++ {
			s.take(anonymous(k), n)
		}
		w := s.queue(anonymous(k), 1)
		s.held(k, 3)
		w.waiting()
		w.cancel()
		s.reset(k)
		s.take(anonymous(k), 1)
	}},
	{"HugeMaximum", "maxValue has no upper bound, and every maximum is another lock", func(s *subject) {
		const huge = "99999999999999999999999"
		a, b := s.keyOf(huge, "huge-"+s.key("1").ID()), s.key(huge+"0")
		c := s.key(strconv.FormatInt(math.MaxInt64, 10))
		for _, k := range []lock.Key{a, b, c, s.keyOf(huge+"0", a.ID())} {
			s.fresh(k)
			s.take(anonymous(k), 1)
			s.take(anonymous(k), 2)
			s.release(k, "", true)
			s.held(k, 1)
		}
		s.held(a, 1)
	}},
	{"B8UnrelatedLocksNeverMeet", "the identity is the pair of maxValue and id; two different pairs are two unrelated locks", func(s *subject) {
		base := s.key("1").ID()
		ids := []string{
			"", "a", "a1", "A", "path", "path%2F1", "path%25", "path%252F1", "%", "%%", " ", "  ", "+", "a b", "a+b",
			".", "..", "...", "?", "#", ";", "&", "=", "*", ">", "$", "\\", "'", "\"", "\x00", "\n", "\t", "\x7f",
			"é", "e\u0301", "\u00c5", "\u212b", "ſ", "s", "🔒", "🔓", "👩‍🚀", "١", "1", "01", "\ufeff", "\u200b",
			"~", "-", "_", "_a", ":", "|", "1:a", "1|a", "base64==",
		}
		var keys []lock.Key
		for _, id := range ids {
			for _, maxValue := range []string{"1", "2", "11"} {
				keys = append(keys, s.keyOf(maxValue, base+id), s.keyOf(maxValue, id+base))
			}
		}
		held := make(map[lock.Key]bool)
		for _, k := range keys {
			if held[k] {
				continue // two ways of writing the empty addition
			}
			s.fresh(k)
			s.take(anonymous(k), 1)
			held[k] = true
		}
		for k := range held {
			s.release(k, "", true)
			s.release(k, "", false)
		}
	}},
	{"Detail", "detail lists the named holders with token and time left, and counts the queue; without it neither is given", func(s *subject) {
		k := s.key("3")
		s.take(anonymous(k), 1)
		a := s.take(named(k, "a"), 2)
		b := s.take(withTTL(named(k, "b"), lock.Forever/4), 3)
		w := s.queue(anonymous(k), 1)
		s.queue(named(k, "c"), 2)
		v := s.detail(k)
		if v.Held != 3 || v.Waiting != 2 || len(v.Holders) != 2 {
			s.broken("value gave %+v; want 3 held, 2 waiting, 2 named holders", v)
		}
		if h := v.Holders[0]; h != (lock.Holder{Name: "a", Token: a.Token}) {
			s.broken("the first holder is %+v; want a with token %d and no TTL", h, a.Token)
		}
		if h := v.Holders[1]; h.Name != "b" || h.Token != b.Token || h.ExpiresIn <= 0 {
			s.broken("the second holder is %+v; want b with token %d and a TTL", h, b.Token)
		}
		s.held(k, 3)
		w.cancel()
		s.queued(k, 1)
	}},
}

package locktest

var giveBackPromises = []promise{
	{"GivenBackSlotIsHandedOn", "a slot whose answer reached nobody is given back and handed to the next waiter", func(s *subject) {
		k := s.key("1")
		r := anonymous(k)
		s.giveBack(r, s.take(r, 1))
		s.held(k, 0)

		r = named(k, "a")
		s.giveBack(r, s.take(r, 1))
		s.held(k, 0)

		res := s.take(r, 1)
		w := s.queue(anonymous(k), 1)
		s.giveBack(r, res)
		res = w.granted(1)
		next := s.queue(named(k, "b"), 1)
		s.giveBack(w.req, res)
		next.granted(1)
		s.release(k, "b", true)
		s.held(k, 0)
	}},
	{"FirstAnswerDiesLate", "a holder whose retry was answered goes on holding when the first answer is given back", func(s *subject) {
		k := s.key("1")
		r := named(k, "a")
		first := s.take(r, 1)
		retry := s.take(r, 1)
		s.giveBack(r, first)
		s.held(k, 1)
		s.refused(named(k, "b"))
		if again := s.take(r, 1); again.Token != retry.Token {
			s.broken("the holder has token %d after a give-back of its first answer; want %d", again.Token, retry.Token)
		}
	}},
	{"RepeatDies", "a holder that was answered goes on holding when a repeat's answer is given back", func(s *subject) {
		k := s.key("2")
		r := named(k, "a")
		first := s.take(r, 1)
		for range 3 {
			s.giveBack(r, s.take(r, 1))
		}
		s.held(k, 1)
		if v := s.detail(k); len(v.Holders) != 1 || v.Holders[0].Token != first.Token {
			s.broken("value gave %+v; want the holder with token %d", v, first.Token)
		}
	}},
	{"AllAnswersDie", "a named slot none of whose answers reached anybody is free", func(s *subject) {
		k := s.key("1")
		r := named(k, "a")
		first := s.take(r, 1)
		repeat := s.take(r, 1)
		w := s.queue(named(k, "b"), 1)
		s.giveBack(r, repeat)
		w.waiting()
		s.giveBack(r, first)
		w.granted(1)
	}},
	{"SharedGrantIsHeldByTheLastAnswer", "requests of one holder that were granted together hold until all their answers are given back", func(s *subject) {
		k := s.key("1")
		s.take(anonymous(k), 1)
		r := named(k, "a")
		one := s.queue(r, 1)
		two := s.begin(r)
		s.release(k, "", true)
		first, second := one.granted(1), two.granted(1)
		s.giveBack(r, first)
		s.held(k, 1)
		s.giveBack(r, second)
		s.held(k, 0)
	}},
	{"AnonymousGiveBackOfAReleasedSlot", "a give-back frees no slot that a release took already", func(s *subject) {
		k := s.key("1")
		r := anonymous(k)
		first := s.take(r, 1)
		s.release(k, "", true)
		s.giveBack(r, first)
		s.held(k, 0)

		first = s.take(r, 1)
		s.release(k, "", true)
		s.take(r, 1)
		s.giveBack(r, first)
		s.held(k, 1)

		s.release(k, "", true)
		first = s.take(r, 1)
		w := s.queue(r, 1)
		s.release(k, "", true)
		w.granted(1)
		s.giveBack(r, first)
		s.held(k, 1)
	}},
	{"NamedGiveBackOfAnEndedGrant", "a give-back of a grant that has ended leaves the holder's next one alone", func(s *subject) {
		k := s.key("1")
		r := named(k, "a")
		first := s.take(r, 1)
		s.release(k, "a", true)
		s.giveBack(r, first)
		s.held(k, 0)
		s.take(r, 1)
		s.giveBack(r, first)
		s.held(k, 1)
	}},
	{"GiveBackAfterReset", "a give-back of a grant from before a reset changes nothing", func(s *subject) {
		k := s.key("2")
		r, n := anonymous(k), named(k, "a")
		first := s.take(r, 1)
		second := s.take(n, 2)
		s.reset(k)
		s.giveBack(r, first)
		s.giveBack(n, second)
		s.fresh(k)
		s.take(r, 1)
		s.take(n, 2)
		s.giveBack(r, first)
		s.giveBack(n, second)
		s.held(k, 2)
	}},
	{"KindsAreGivenBackApart", "a give-back of one kind of slot frees none of the other", func(s *subject) {
		k := s.key("2")
		r, n := anonymous(k), named(k, "a")
		first := s.take(r, 1)
		second := s.take(n, 2)
		s.giveBack(n, second)
		s.held(k, 1)
		s.release(k, "", true)
		s.take(n, 1)
		s.giveBack(r, first)
		s.held(k, 1)
		s.release(k, "a", true)
	}},
}

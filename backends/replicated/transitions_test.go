package replicated

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"
)

// transition is a row: what is done to a record, and what must come of it.
type transition struct {
	name   string
	before record
	do     func(*record) any
	want   any // that do returns
	after  record
}

func checkTransitions(t *testing.T, rows ...transition) {
	t.Helper()
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			printed := fmt.Sprintf("%+v", row.before)
			got := row.before.clone()
			if result := row.do(got); !reflect.DeepEqual(result, row.want) {
				t.Errorf("the result is %v, not %v", result, row.want)
			}
			if !equalRecords(got, &row.after) {
				t.Errorf("the record is\n%+v, not\n%+v", *got, row.after)
			}
			if now := fmt.Sprintf("%+v", row.before); now != printed {
				t.Errorf("the record that was cloned changed from\n%s to\n%s", printed, now)
			}
		})
	}
}

// equalRecords compares records; an empty list is as good as none.
func equalRecords(a, b *record) bool {
	plain := func(r *record) *record {
		c := r.clone()
		c.extra = slices.Clone(c.extra)
		c.holders, c.queue, c.batches, c.extra = orNil(c.holders), orNil(c.queue), orNil(c.batches), orNil(c.extra)
		for i := range c.holders {
			c.holders[i].waits = orNil(c.holders[i].waits)
		}
		for i := range c.queue {
			c.queue[i].waits = orNil(c.queue[i].waits)
		}
		for i := range c.extra {
			c.extra[i].value = orNil(c.extra[i].value)
		}
		return c
	}
	return reflect.DeepEqual(plain(a), plain(b))
}

func orNil[S ~[]E, E any](list S) S {
	if len(list) == 0 {
		return nil
	}
	return list
}

// doing makes a transition without a result one for the table.
func doing(f func(*record)) func(*record) any {
	return func(r *record) any {
		f(r)
		return nil
	}
}

func namedPlace(name string, waits ...SessionID) ticket {
	return ticket{hash: hashName(name), nameLength: len(name), waits: waits}
}

// since dates a ticket.
func since(at int64, t ticket) ticket {
	t.since = at
	return t
}

func isOneOf(list ...SessionID) func(SessionID) bool {
	return func(s SessionID) bool { return slices.Contains(list, s) }
}

func TestTakeMakesTheLockUsedAndBusySinceTheFirstSlot(t *testing.T) {
	checkTransitions(t,
		transition{
			name: "the first, anonymous", before: record{created: 7, fresh: true},
			do:    doing(func(r *record) { r.takeAnonymous(100) }),
			after: record{created: 7, anonymous: 1, busySince: 100},
		},
		transition{
			name: "the first, named", before: record{created: 7, fresh: true},
			do:    doing(func(r *record) { r.takeNamed("a", 3, 100) }),
			after: record{created: 7, busySince: 100, holders: []holder{{name: "a", index: 3, since: 100}}},
		},
		transition{
			name: "more", before: record{anonymous: 1, busySince: 50},
			do: doing(func(r *record) {
				r.takeAnonymous(100)
				h := r.takeNamed("a", 0, 110)
				h.answers = 1
				r.takeNamed("b", 1, 120)
			}),
			after: record{anonymous: 2, busySince: 50, holders: []holder{{name: "a", answers: 1, since: 110}, {name: "b", index: 1, since: 120}}},
		},
	)
}

func TestReleaseAnonymousFreesOneSlotAndEndsTheEraWithTheLast(t *testing.T) {
	release := func(r *record) any { return r.releaseAnonymous() }
	named := []holder{{name: "a", token: 9, answers: 1}}
	checkTransitions(t,
		transition{
			name: "one of several", before: record{eras: 4, anonymous: 2, busySince: 5}, do: release,
			want: true, after: record{eras: 4, anonymous: 1, busySince: 5},
		},
		transition{
			name: "the last slot", before: record{eras: 4, anonymous: 1, busySince: 5}, do: release,
			want: true, after: record{eras: 5},
		},
		transition{
			name: "the last anonymous beside a named one", before: record{eras: 4, anonymous: 1, busySince: 5, holders: named}, do: release,
			want: true, after: record{eras: 5, busySince: 5, holders: named},
		},
		transition{
			name: "never a named slot", before: record{eras: 4, busySince: 5, holders: named}, do: release,
			want: false, after: record{eras: 4, busySince: 5, holders: named},
		},
		transition{
			name: "nothing", before: record{eras: 4, fresh: true}, do: release,
			want: false, after: record{eras: 4, fresh: true},
		},
	)
}

func TestReleaseNamedFreesThatHolderAndWithdrawsItsPlace(t *testing.T) {
	a, b := holder{name: "a", token: 1, answers: 3, waits: []SessionID{2}}, holder{name: "b", token: 2, answers: 1}
	release := func(r *record) any { return r.releaseNamed("a") }
	queue := []ticket{{session: 1, run: 5, count: 2}, namedPlace("b", 1)}
	checkTransitions(t,
		transition{
			name: "its slot, whatever was answered and shared", before: record{eras: 4, busySince: 5, holders: []holder{a, b}, queue: queue}, do: release,
			want: true, after: record{eras: 4, busySince: 5, holders: []holder{b}, queue: queue},
		},
		transition{
			name: "the last slot", before: record{eras: 4, busySince: 5, holders: []holder{a}}, do: release,
			want: true, after: record{eras: 4},
		},
		transition{
			name: "its place", before: record{anonymous: 1, busySince: 5, queue: []ticket{queue[0], namedPlace("a", 1, 2), queue[1]}}, do: release,
			want: false, after: record{anonymous: 1, busySince: 5, queue: queue},
		},
		transition{
			name: "never an anonymous slot", before: record{anonymous: 1, busySince: 5, holders: []holder{b}}, do: release,
			want: false, after: record{anonymous: 1, busySince: 5, holders: []holder{b}},
		},
	)
}

func TestGiveBackAnonymousFreesASlotOfItsEraOnly(t *testing.T) {
	giveBack := func(era uint64) func(*record) any {
		return func(r *record) any { return r.giveBackAnonymous(era) }
	}
	held := record{created: 100, eras: 4, anonymous: 2, busySince: 5}
	checkTransitions(t,
		transition{
			name: "of this era", before: held, do: giveBack(104),
			want: true, after: record{created: 100, eras: 4, anonymous: 1, busySince: 5},
		},
		transition{name: "of the era before", before: held, do: giveBack(103), want: false, after: held},
		transition{name: "of another creation", before: held, do: giveBack(4), want: false, after: held},
		transition{
			name: "the last, once", before: record{created: 100, eras: 4, anonymous: 1, busySince: 5},
			do: func(r *record) any {
				era := r.era()
				return []bool{r.giveBackAnonymous(era), r.giveBackAnonymous(era)}
			},
			want: []bool{true, false}, after: record{created: 100, eras: 5},
		},
		transition{
			name: "not of whoever came after a stranger's release", before: record{created: 100, eras: 4, anonymous: 1, busySince: 5},
			do: func(r *record) any {
				era := r.era()
				r.releaseAnonymous()
				r.takeAnonymous(9)
				return r.giveBackAnonymous(era)
			},
			want: false, after: record{created: 100, eras: 5, anonymous: 1, busySince: 9},
		},
		transition{
			name: "not of whoever came after a reset", before: held,
			do: func(r *record) any {
				era := r.era()
				r.reset()
				r.takeAnonymous(9)
				return r.giveBackAnonymous(era)
			},
			want: false, after: record{created: 100, eras: 5, resets: 1, anonymous: 1, busySince: 9},
		},
	)
}

func TestGiveBackNamedWithdrawsOneAnswer(t *testing.T) {
	of := func(answers uint64) record {
		return record{eras: 2, busySince: 5, holders: []holder{{name: "a", token: 9, answers: answers}}}
	}
	giveBack := func(name string, token uint64) func(*record) any {
		return func(r *record) any { return r.giveBackNamed(name, token) }
	}
	checkTransitions(t,
		transition{name: "one of several", before: of(3), do: giveBack("a", 9), want: true, after: of(2)},
		transition{name: "the last frees the slot", before: of(1), do: giveBack("a", 9), want: true, after: record{eras: 2}},
		transition{name: "of another grant", before: of(1), do: giveBack("a", 8), want: false, after: of(1)},
		transition{name: "of another holder", before: of(1), do: giveBack("b", 9), want: false, after: of(1)},
	)
}

func TestSharedPlaceReturnsToTheHead(t *testing.T) {
	rest := []ticket{{session: 1, run: 5, count: 2}, namedPlace("b", 1)}
	before := record{anonymous: 1, busySince: 5, queue: rest, holders: []holder{
		{name: "a", token: 9, answers: 1, since: 600, expiring: 77, ttl: time.Second, waits: []SessionID{2, 3}}, {name: "c", token: 10, answers: 1},
	}}
	after := record{
		anonymous: 1, busySince: 5, holders: before.holders[1:],
		queue: []ticket{since(600, namedPlace("a", 2, 3)), rest[0], rest[1]},
	}
	checkTransitions(t,
		transition{name: "given back", before: before, do: func(r *record) any { return r.giveBackNamed("a", 9) }, want: true, after: after},
		transition{name: "expired", before: before, do: func(r *record) any { return r.expire(77) }, want: true, after: after},
		transition{
			name: "not released", before: before, do: func(r *record) any { return r.releaseNamed("a") }, want: true,
			after: record{anonymous: 1, busySince: 5, holders: before.holders[1:], queue: rest},
		},
	)
}

func TestExpireFreesTheHolderWithThatKey(t *testing.T) {
	before := record{busySince: 5, holders: []holder{
		{name: "a", token: 1, answers: 4, expiring: 77}, {name: "b", token: 2, answers: 1}, {name: "c", token: 3, answers: 1, expiring: 78},
	}}
	checkTransitions(t,
		transition{
			name: "whatever was answered", before: before, do: func(r *record) any { return r.expire(77) },
			want: true, after: record{busySince: 5, holders: before.holders[1:]},
		},
		transition{
			name: "the last slot", before: record{busySince: 5, holders: before.holders[2:]}, do: func(r *record) any { return r.expire(78) },
			want: true, after: record{},
		},
		transition{name: "a key that was replaced", before: before, do: func(r *record) any { return r.expire(76) }, want: false, after: before},
	)
}

package replicated

import (
	"slices"
	"testing"
	"time"
)

// The transitions of the queue, and those that are about gateways.

func TestResetEmptiesAndBeginsAnotherGeneration(t *testing.T) {
	checkTransitions(t,
		transition{
			name: "of a used lock",
			before: record{
				name: "1/a", created: 100, resets: 3, eras: 4, anonymous: 2, busySince: 5,
				holders: []holder{{name: "a", token: 9, answers: 2, expiring: 77, ttl: time.Second, waits: []SessionID{2}}},
				queue:   []ticket{{session: 1, run: 5, count: 2}, namedPlace("b", 1)},
				batches: batchList(1, 10, 2, 20), extra: []extension{{2, []byte("x")}},
			},
			do: func(r *record) any {
				g, era := r.generation(), r.era()
				r.reset()
				return []bool{r.generation() == g, r.era() == era, r.idle()}
			},
			want: []bool{false, false, true},
			after: record{
				name: "1/a", created: 100, resets: 4, eras: 5, fresh: true,
				batches: batchList(1, 10, 2, 20), extra: []extension{{2, []byte("x")}},
			},
		},
		transition{
			name: "of a fresh one", before: record{created: 100, fresh: true},
			do:    doing((*record).reset),
			after: record{created: 100, resets: 1, eras: 1, fresh: true},
		},
	)
}

func TestRunsMergeOnlyForOneSessionAndAdjacent(t *testing.T) {
	enqueue := func(s SessionID, run uint64) func(*record) any {
		return func(r *record) any { return r.enqueueRun(s, run, int64(100*run)) }
	}
	first := ticket{since: 500, session: 1, run: 5, count: 1}
	checkTransitions(t,
		transition{name: "an empty queue", do: enqueue(1, 5), want: uint64(5), after: record{queue: []ticket{first}}},
		transition{
			name: "the same session", before: record{queue: []ticket{first}}, do: enqueue(1, 6),
			want: uint64(5), after: record{queue: []ticket{{since: 500, session: 1, run: 5, count: 2}}},
		},
		transition{
			name: "another session", before: record{queue: []ticket{first}}, do: enqueue(2, 5),
			want: uint64(5), after: record{queue: []ticket{first, {since: 500, session: 2, run: 5, count: 1}}},
		},
		transition{
			name: "another session between", before: record{queue: []ticket{first, {session: 2, run: 5, count: 1}}}, do: enqueue(1, 7),
			want: uint64(7), after: record{queue: []ticket{first, {session: 2, run: 5, count: 1}, {since: 700, session: 1, run: 7, count: 1}}},
		},
		transition{
			name: "its own named place between", before: record{queue: []ticket{first, namedPlace("a", 1)}}, do: enqueue(1, 7),
			want: uint64(7), after: record{queue: []ticket{first, namedPlace("a", 1), {since: 700, session: 1, run: 7, count: 1}}},
		},
	)
}

func TestNamedPlaceIsOneWhoeverAsks(t *testing.T) {
	enqueue := func(s SessionID, name string) func(*record) any {
		return doing(func(r *record) { r.enqueueNamed(s, name, hashName(name), 700) })
	}
	run := ticket{session: 1, run: 5, count: 1}
	before := record{queue: []ticket{namedPlace("a", 1), run}}
	checkTransitions(t,
		transition{name: "a new one at the end", before: before, do: enqueue(1, "bc"), after: record{queue: []ticket{namedPlace("a", 1), run, since(700, namedPlace("bc", 1))}}},
		transition{name: "shared with another session", before: before, do: enqueue(2, "a"), after: record{queue: []ticket{namedPlace("a", 1, 2), run}}},
		transition{name: "the same session again", before: before, do: enqueue(1, "a"), after: before},
	)
}

func TestLeaveRunTakesOutThatManyOfThatRun(t *testing.T) {
	before := record{queue: []ticket{{session: 1, run: 5, count: 3}, namedPlace("a", 1), {session: 2, run: 5, count: 1}}}
	leave := func(s SessionID, run uint64, n int64) func(*record) any {
		return doing(func(r *record) { r.leaveRun(s, run, n) })
	}
	checkTransitions(t,
		transition{name: "one", before: before, do: leave(1, 5, 1), after: record{queue: []ticket{{session: 1, run: 5, count: 2}, before.queue[1], before.queue[2]}}},
		transition{name: "all", before: before, do: leave(1, 5, 3), after: record{queue: before.queue[1:]}},
		transition{name: "the same run of another session", before: before, do: leave(2, 5, 1), after: record{queue: before.queue[:2]}},
		transition{name: "a run that is gone", before: before, do: leave(1, 6, 1), after: before},
		transition{name: "not a named place", before: before, do: leave(0, 0, 1), after: before},
	)
}

func TestLeaveNamedEndsOneSessionsShare(t *testing.T) {
	leave := func(s SessionID, name string) func(*record) any {
		return doing(func(r *record) { r.leaveNamed(s, hashName(name), name) })
	}
	run := ticket{session: 1, run: 5, count: 1}
	shared := record{queue: []ticket{run, namedPlace("a", 1, 2), namedPlace("b", 1)}}
	granted := record{busySince: 5, holders: []holder{{name: "a", token: 9, answers: 1, waits: []SessionID{1, 2}}}, queue: []ticket{run}}
	checkTransitions(t,
		transition{name: "of a place that others share", before: shared, do: leave(1, "a"), after: record{queue: []ticket{run, namedPlace("a", 2), namedPlace("b", 1)}}},
		transition{name: "of its own place", before: shared, do: leave(1, "b"), after: record{queue: shared.queue[:2]}},
		transition{name: "of a place it has no share in", before: shared, do: leave(2, "b"), after: shared},
		transition{
			name: "of a place that was granted", before: granted, do: leave(1, "a"),
			after: record{busySince: 5, holders: []holder{{name: "a", token: 9, answers: 1, waits: []SessionID{2}}}, queue: []ticket{run}},
		},
	)
}

func TestPruneTakesPlacesAndNothingElse(t *testing.T) {
	prune := func(ended ...SessionID) func(*record) any {
		return func(r *record) any { return r.prune(isOneOf(ended...)) }
	}
	before := record{
		created: 100, resets: 2, eras: 3, anonymous: 2, busySince: 5, batches: batchList(1, 10, 2, 20, 3, 30),
		holders: []holder{{name: "h", token: 1, answers: 1, waits: []SessionID{1, 2}}, {name: "i", token: 2, answers: 1, waits: []SessionID{2}}},
		queue: []ticket{
			{session: 1, run: 5, count: 2}, {session: 2, run: 5, count: 3}, namedPlace("a", 1, 2), namedPlace("b", 2), {session: 1, run: 6, count: 1}, {session: 2, run: 7, count: 1},
		},
	}
	without2 := before
	without2.holders = []holder{{name: "h", token: 1, answers: 1, waits: []SessionID{1}}, {name: "i", token: 2, answers: 1}}
	without2.batches = batchList(1, 10, 2, 20, 3, 30)
	without2.batches[1].pruned = true
	without2.queue = []ticket{{session: 1, run: 5, count: 2}, namedPlace("a", 1), {session: 1, run: 6, count: 1}}
	without12 := before
	without12.holders = []holder{{name: "h", token: 1, answers: 1}, {name: "i", token: 2, answers: 1}}
	without12.queue = nil
	without12.batches = slices.Clone(without2.batches)
	without12.batches[0].pruned = true
	shares := record{busySince: 5, holders: []holder{{name: "h", token: 1, answers: 1, waits: []SessionID{2}}}}
	checkTransitions(t,
		transition{name: "nobody ended", before: before, do: prune(), want: false, after: before},
		transition{name: "somebody else ended", before: before, do: prune(3), want: false, after: before},
		transition{name: "one session", before: before, do: prune(2), want: true, after: without2},
		transition{name: "all that wait", before: before, do: prune(1, 2), want: true, after: without12},
		transition{
			name: "one of a shared place only", before: record{queue: []ticket{namedPlace("a", 1, 2)}}, do: prune(2),
			want: true, after: record{queue: []ticket{namedPlace("a", 1)}},
		},
		transition{
			name: "a share of a granted place only", before: shares, do: prune(2),
			want: true, after: record{busySince: 5, holders: []holder{{name: "h", token: 1, answers: 1}}},
		},
	)
}

func TestNumberedKeepsTheLastNumberOfASession(t *testing.T) {
	never := isOneOf()
	checkTransitions(t,
		transition{
			name: "a new session", before: record{batches: batchList(1, 10)},
			do: doing(func(r *record) { r.numbered(2, 20, never) }), after: record{batches: batchList(1, 10, 2, 20)},
		},
		transition{
			name: "a known one", before: record{batches: batchList(1, 10, 2, 20)},
			do: func(r *record) any {
				r.numbered(1, 11, never)
				return []uint64{r.batchOf(1), r.batchOf(2), r.batchOf(3)}
			},
			want: []uint64{11, 20, 0}, after: record{batches: batchList(2, 20, 1, 11)},
		},
		transition{
			name: "ended ones stay while there is room", before: record{batches: batchList(1, 10)},
			do: doing(func(r *record) { r.numbered(2, 20, isOneOf(1)) }), after: record{batches: batchList(1, 10, 2, 20)},
		},
	)
}

func TestNumberedForgetsEndedSessionsOldestFirstAndLiveOnesNever(t *testing.T) {
	full := func(n int) []batch {
		var list []batch
		for i := range n {
			list = append(list, batch{session: SessionID(i + 1), number: uint64(i + 100)})
		}
		return list
	}
	newest := batch{session: 1000, number: 1}
	number := func(ended ...SessionID) func(*record) any {
		return doing(func(r *record) { r.numbered(newest.session, newest.number, isOneOf(ended...)) })
	}
	remaining := func(list []batch, gone ...SessionID) []batch {
		return append(slices.DeleteFunc(list, func(b batch) bool { return isOneOf(gone...)(b.session) }), newest)
	}
	checkTransitions(t,
		transition{name: "one below the bound", before: record{batches: full(keptBatches - 1)}, do: number(1, 2), after: record{batches: remaining(full(keptBatches - 1))}},
		transition{name: "at the bound one goes", before: record{batches: full(keptBatches)}, do: number(9, 5, 7), after: record{batches: remaining(full(keptBatches), 5)}},
		transition{name: "beyond it as many as needed", before: record{batches: full(keptBatches + 2)}, do: number(2, 5, 7, 9), after: record{batches: remaining(full(keptBatches+2), 2, 5, 7)}},
		transition{name: "too few have ended", before: record{batches: full(keptBatches + 2)}, do: number(9), after: record{batches: remaining(full(keptBatches+2), 9)}},
		transition{name: "all live", before: record{batches: full(keptBatches + 2)}, do: number(), after: record{batches: remaining(full(keptBatches + 2))}},
	)
}

// batchList returns batches, each given by its session and its number.
func batchList(of ...uint64) []batch {
	var list []batch
	for pair := range slices.Chunk(of, 2) {
		list = append(list, batch{session: SessionID(pair[0]), number: pair[1]})
	}
	return list
}

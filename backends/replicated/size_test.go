package replicated

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

// Whatever the numbers and however many there are of a kind, size() is enough.
func TestSizeIsEnoughForTheGreatestNumbers(t *testing.T) {
	many := []SessionID{math.MaxUint64, math.MaxUint64 - 1, math.MaxUint64 - 2}
	for _, name := range []string{"a", strings.Repeat("a", 4*256)} {
		large := holder{name: name, grant: math.MaxUint64, token: math.MaxUint64, answers: math.MaxUint64, since: latestTime, expiring: math.MaxUint64, ttl: math.MaxInt64, waits: many}
		for i, r := range []*record{
			{name: strings.Repeat("9", 100000), created: math.MaxUint64, resets: math.MaxUint64, eras: math.MaxUint64, anonymous: math.MaxInt64, busySince: latestTime},
			{holders: slices.Repeat([]holder{large}, 50)},
			{queue: slices.Repeat([]ticket{namedPlace(name, many...)}, 50)},
			{queue: slices.Repeat([]ticket{{since: latestTime, session: math.MaxUint64, run: math.MaxUint64, count: math.MaxInt64}}, 2000)},
			{batches: slices.Repeat([]batch{{session: math.MaxUint64, number: math.MaxUint64 >> 1}}, 500)},
			{extra: slices.Repeat([]extension{{math.MaxUint64 - 1, []byte(name)}}, 50)},
		} {
			if size, real := r.size(), len(r.encode()); size < real {
				t.Errorf("record %d: size() is %d, the encoding has %d bytes", i, size, real)
			}
		}
		waiting, holding := record{queue: slices.Repeat([]ticket{namedPlace(name, many...)}, 50)}, record{holders: slices.Repeat([]holder{large}, 50)}
		if size, real := waiting.size(), len(holding.encode()); size < real {
			t.Errorf("size() of named places is %d, as holders they have %d bytes", size, real)
		}
	}
}

// The bound on the size must not waste much of what there is.
func TestSizeIsNotFarFromTheTruth(t *testing.T) {
	r := &record{created: 1 << 63, resets: 5, eras: 500, anonymous: 3, busySince: 1700000000000}
	for i := range uint64(30) {
		name := fmt.Sprintf("%036d", i) // as long as a UUID
		r.holders = append(r.holders, holder{name: name, grant: 1<<63 + i, token: 1<<50 + i, answers: 1, expiring: 1 << 62, ttl: time.Minute})
		r.queue = append(r.queue, ticket{session: SessionID(1<<63 + i), run: 1<<40 + i, count: 200})
		r.batches = append(r.batches, batch{session: SessionID(1<<63 + i), number: 1 << 40})
	}
	if size, real := r.size(), len(r.encode()); size < real || size > real*7/4 {
		t.Errorf("size() of a record of %d bytes is %d", real, size)
	}
}

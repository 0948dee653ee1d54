package replicated

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// goldenRevision is the revision of the golden records.
const goldenRevision = 5

// golden are records of every shape as they are in stores now. A change that
// makes a row fail makes the records of running gateways unreadable: it needs
// another version.
var golden = []struct {
	name    string
	bytes   string // hex; spaces separate fields
	decoded record
}{
	{
		name:    "created and fresh",
		bytes:   "4c470101 0102030405060708 00 00 00 00 00 00 00 00",
		decoded: record{created: 0x0102030405060708, fresh: true},
	},
	{
		name:    "one anonymous slot",
		bytes:   "4c470100 0000000000000064 02 ac02 01 80d095ffbc31 00 00 01 00000000000000c8 0e 00",
		decoded: record{created: 100, resets: 2, eras: 300, anonymous: 1, busySince: 1700000000000, batches: []batch{{session: 200, number: 7}}},
	},
	{
		name:    "of a lock with a long name",
		bytes:   "4c470103 03312f61 0000000000000064 00 00 00 00 00 00 00 00",
		decoded: record{name: "1/a", created: 100, fresh: true},
	},
	{
		name: "holders",
		bytes: "4c470100 0000000000000064 00 00 00 05 04" +
			" 0161 0000000000000007 83a001 01 80d095ffbc31 00 00" + // granted by an earlier swap
			" 0162 0000000000000000 00 00 01 00 00 00" + // by this one
			" 0263c3 1112131415161718 00 01 02 07 00 01 00000000000000c8" + // likewise; another session shared the place
			" 0164 ffffffffffffffff 84a001 03 00 4d dc0b 00" + // with a key
			" 00 00 00",
		decoded: record{created: 100, busySince: 5, holders: []holder{
			{name: "a", grant: 7, token: 20483, answers: 1, since: 1700000000000},
			{name: "b", token: goldenRevision * 4096, answers: 1},
			{name: "c\xc3", grant: 0x1112131415161718, token: goldenRevision*4096 + 1, answers: 2, since: 7, waits: []SessionID{200}},
			{name: "d", grant: math.MaxUint64, token: 20484, answers: 3, expiring: 77, ttl: 1500 * time.Millisecond},
		}},
	},
	{
		name: "queue",
		bytes: "4c470100 0000000000000064 00 00 01 05 00 03" +
			" 09 80d095ffbc31 00000000000000c8 ac02" +
			" 00 81d095ffbc31 ca978112ca1bbdcafac231b39a23dc4d 01 02 00000000000000c8 00000000000000c9" +
			" 8001 00 00000000000000c9 01" +
			" 00 00",
		decoded: record{created: 100, anonymous: 1, busySince: 5, queue: []ticket{
			{since: 1700000000000, session: 200, run: 9, count: 300}, since(1700000000001, namedPlace("a", 200, 201)), {session: 201, run: 128, count: 1},
		}},
	},
	{
		name:    "something of a newer version that may be ignored",
		bytes:   "4c470100 0000000000000064 00 00 00 00 00 00 00 02 02 00 ac02 0378797a",
		decoded: record{created: 100, extra: []extension{{tag: 2}, {tag: 300, value: []byte("xyz")}}},
	},
}

func goldenBytes(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestFormatStaysAsItIs(t *testing.T) {
	for _, row := range golden {
		t.Run(row.name, func(t *testing.T) {
			b := goldenBytes(t, row.bytes)
			r, err := decode(b, goldenRevision)
			if err != nil {
				t.Fatal(err)
			}
			if !equalRecords(r, &row.decoded) {
				t.Errorf("decoded to\n%+v, not\n%+v", *r, row.decoded)
			}
			unresolved := row.decoded.clone()
			for i := range unresolved.holders {
				if h := &unresolved.holders[i]; h.name != "a" && h.name != "d" {
					h.index, h.token = h.token%4096, 0
				}
			}
			if got := unresolved.encode(); !bytes.Equal(got, b) {
				t.Errorf("encoded to\n%x, not\n%x", got, b)
			}
		})
	}
}

func TestTokensCountFromTheRevisionAndThenStay(t *testing.T) {
	r := &record{holders: []holder{{name: "a", token: 77, answers: 1}, {name: "b", index: 0, answers: 1}, {name: "c", index: 4095, answers: 1}}}
	want := []uint64{77, 9 * 4096, 9*4096 + 4095}
	b := r.encode()
	for _, revision := range []uint64{9, 10, 11} {
		again, err := decode(b, revision)
		if err != nil {
			t.Fatal(err)
		}
		for i, h := range again.holders {
			if h.token != want[i] {
				t.Errorf("at revision %d the token of %s is %d, not %d", revision, h.name, h.token, want[i])
			}
		}
		b = again.encode() // as the writer of the next revision does
	}
}

func TestNewerRecordsAreToldFromForeignOnes(t *testing.T) {
	b := goldenBytes(t, golden[1].bytes)
	changed := func(i int, to byte) []byte {
		c := bytes.Clone(b)
		c[i] = to
		return c
	}
	end := len(b) - 1 // the number of extensions
	queue := goldenBytes(t, golden[4].bytes)
	for _, row := range []struct {
		name  string
		value []byte
		want  error
	}{
		{"the next version", changed(2, version+1), errNewer},
		{"the last version", changed(2, 255), errNewer},
		{"an unknown flag", changed(3, knownFlag+1), errNewer},
		{"an odd extension", append(changed(end, 1), 3, 0), errNewer},
		{"an odd extension after an even one", append(changed(end, 2), 2, 1, 'x', 5, 1, 'y'), errNewer},
		{"nothing", nil, errForeign},
		{"another magic", changed(0, 'l'), errForeign},
		{"another magic, in the second byte", changed(1, 'g'), errForeign},
		{"version 0", changed(2, 0), errForeign},
		{"text", []byte("a value that something else put here"), errForeign},
		{"a byte after the end", append(bytes.Clone(b), 0), errForeign},
		{"an extension after the end", append(bytes.Clone(b), 2, 0), errForeign},
		{"a list longer than memory", append(changed(end, 255), 255, 255, 255, 255, 255, 255, 255, 255, 1), errForeign},
		{"a number of more than 64 bits", append(changed(end, 255), 255, 255, 255, 255, 255, 255, 255, 255, 2), errForeign},
		{"a count that would overflow", (&record{anonymous: math.MaxInt64}).encode(), errForeign},
		{"an empty run", (&record{queue: []ticket{{session: 1, run: 1}}}).encode(), errForeign},
		{"an empty named place", (&record{queue: []ticket{namedPlace("a")}}).encode(), errForeign},
		{"a named place twice", (&record{queue: []ticket{namedPlace("a", 1), namedPlace("a", 2)}}).encode(), errForeign},
		{"a holder twice", (&record{holders: []holder{{name: "a", answers: 1}, {name: "a", index: 1, answers: 1}}}).encode(), errForeign},
		{"a holder without a name", (&record{holders: []holder{{answers: 1}}}).encode(), errForeign},
		{"a holder without an answer", (&record{holders: []holder{{name: "a"}}}).encode(), errForeign},
		{"a grant beyond those of a revision", (&record{holders: []holder{{name: "a", index: grantsPerRevision, answers: 1}}}).encode(), errForeign},
		{"a name longer than a record", bytes.Replace(queue, []byte{0x4d, 0x01}, []byte{0x4d, 0x81, 0x80, 0x04}, 1), errForeign},
		{"a name longer than memory", bytes.Replace(queue, []byte{0x4d, 0x01}, []byte{0x4d, 255, 255, 255, 255, 255, 255, 255, 255, 0x3f}, 1), errForeign},
	} {
		t.Run(row.name, func(t *testing.T) {
			r, err := decode(row.value, goldenRevision)
			other := errNewer
			if errors.Is(row.want, errNewer) {
				other = errForeign
			}
			if !errors.Is(err, row.want) || errors.Is(err, other) {
				t.Errorf("%x decoded to %+v, %v; want %v", row.value, r, err, row.want)
			}
		})
	}
}

func TestRecordsCutOffAnywhereAreForeign(t *testing.T) {
	for _, row := range golden {
		b := goldenBytes(t, row.bytes)
		for n := range len(b) {
			if r, err := decode(b[:n], goldenRevision); !errors.Is(err, errForeign) {
				t.Errorf("%s: the first %d bytes decoded to %+v, %v", row.name, n, r, err)
			}
		}
	}
}

// What gateways of a newer version put into a record outlives what older ones
// do to it.
func TestEvenExtensionsAreCarriedAlong(t *testing.T) {
	r, err := decode(goldenBytes(t, golden[5].bytes), goldenRevision)
	if err != nil {
		t.Fatal(err)
	}
	next := r.clone()
	next.takeAnonymous(1)
	next.enqueueRun(1, 1, 1)
	next.reset()
	next.numbered(1, 1, isOneOf())
	if b := next.encode(); !bytes.HasSuffix(b, goldenBytes(t, "02 02 00 ac02 0378797a")) {
		t.Errorf("after transitions the record is %x", b)
	}
}

func TestRecordsComeBackAsTheyWere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := encodableRecords.Draw(t, "record")
		revision := rapid.Uint64Range(1, 1<<41).Draw(t, "revision")
		b := r.encode()
		if size := r.size(); size < len(b) {
			t.Errorf("size() is %d, the encoding has %d bytes", size, len(b))
		}
		got, err := decode(b, revision)
		if err != nil {
			t.Fatal(err)
		}
		r.resolve(revision)
		if !equalRecords(got, r) {
			t.Errorf("decoded to\n%+v, not\n%+v", *got, *r)
		}
		if again := got.encode(); got.size() < len(again) {
			t.Errorf("size() of the resolved record is %d, the encoding has %d bytes", got.size(), len(again))
		}
	})
}

var times = rapid.Int64Range(0, latestTime)

// encodableRecords makes any record that keeps the invariants, with numbers of
// any size.
var encodableRecords = rapid.Custom(func(t *rapid.T) *record {
	sessions := rapid.SliceOfNDistinct(rapid.Map(rapid.Uint64Min(1), func(n uint64) SessionID { return SessionID(n) }), 0, 4, rapid.ID[SessionID])
	several := rapid.Map(sessions, func(list []SessionID) []SessionID { return append(list, 1<<63) })
	counts := rapid.Int64Range(0, math.MaxInt64/2)
	r := &record{
		name: rapid.StringN(0, 20, 1300).Draw(t, "name"), created: rapid.Uint64().Draw(t, "created"),
		resets: rapid.Uint64().Draw(t, "resets"), eras: rapid.Uint64().Draw(t, "eras"),
		fresh: rapid.Bool().Draw(t, "fresh"), anonymous: counts.Draw(t, "anonymous"), busySince: times.Draw(t, "busy since"),
	}
	names := rapid.SliceOfNDistinct(rapid.StringN(1, 256, -1), 0, 8, rapid.ID[string]).Draw(t, "names")
	for i, name := range names {
		if rapid.Bool().Draw(t, "waits") {
			place := namedPlace(name, several.Draw(t, "sessions")...)
			place.since = times.Draw(t, "waits since")
			r.queue = append(r.queue, place)
			continue
		}
		h := holder{
			name: name, grant: rapid.Uint64().Draw(t, "grant"), token: rapid.Uint64().Draw(t, "token"),
			answers: rapid.Uint64Min(1).Draw(t, "answers"), since: times.Draw(t, "held since"), waits: sessions.Draw(t, "sessions"),
		}
		if h.token == 0 {
			h.index = uint64(grantsPerRevision - 1 - i)
		}
		if rapid.Bool().Draw(t, "expires") {
			h.expiring = rapid.Uint64Min(1).Draw(t, "key")
			h.ttl = time.Duration(rapid.Int64Range(0, math.MaxInt64/int64(time.Millisecond)).Draw(t, "ttl")) * time.Millisecond
		}
		r.holders = append(r.holders, h)
	}
	for i := range rapid.IntRange(0, 4).Draw(t, "runs") {
		run := ticket{since: times.Draw(t, "waits since"), session: SessionID(rapid.Uint64Min(1).Draw(t, "session")), run: math.MaxUint64 - uint64(i), count: rapid.Int64Range(1, math.MaxInt64/2).Draw(t, "count")}
		r.queue = append(r.queue, run)
	}
	for _, s := range sessions.Draw(t, "batches") {
		r.batches = append(r.batches, batch{s, rapid.Uint64Max(1<<63-1).Draw(t, "number"), rapid.Bool().Draw(t, "pruned")})
	}
	for range rapid.IntRange(0, 2).Draw(t, "extensions") {
		r.extra = append(r.extra, extension{rapid.Uint64().Draw(t, "tag") &^ 1, rapid.SliceOf(rapid.Byte()).Draw(t, "value")})
	}
	return r
})

package nats

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/lockgateway/lockgateway/backends/replicated"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	lost      = "wrong last sequence: 6"
	nothing   = `{"error":{"code":404,"err_code":10037,"description":"no message found"}}`
	recordAt7 = `{"message":{"subject":"$KV.b.locks.YQ","seq":7,"data":"b3RoZXI=","time":"2026-01-02T03:04:05Z"}}`
	recordAt4 = `{"message":{"subject":"$KV.b.locks.YQ","seq":4,"data":"b2xk","time":"2026-01-02T03:04:05Z"}}`
	// What the swaps below write, which was published on condition that the last
	// sequence was 4.
	ownAt6 = `{"message":{"subject":"$KV.b.locks.YQ","seq":6,"hdrs":"TkFUUy8xLjANCk5hdHMtRXhwZWN0ZWQtTGFzdC1TdWJqZWN0LVNlcXVlbmNlOiA0DQoNCg==","data":"dg==","time":"2026-01-02T03:04:05Z"}}`
	// The headers are NATS/1.0, KV-Operation: PURGE.
	removedAt6 = `{"message":{"subject":"$KV.b.locks.YQ","seq":6,"hdrs":"TkFUUy8xLjANCktWLU9wZXJhdGlvbjogUFVSR0UNCg0K","time":"2026-01-02T03:04:05Z"}}`
)

func TestWhatBecomesOfASwap(t *testing.T) {
	underWay := apiError(10164, "wrong last sequence")
	for _, c := range []struct {
		name     string
		expect   uint64
		read     string
		answers  []string
		applied  bool
		record   uint64 // that there is instead
		certain  string // what the error says, that is certain
		inDoubt  string // what the error says, that is not
		alone    bool   // one server keeps the stream
		expected []string
	}{
		{name: "Applied", expect: 4, answers: []string{acknowledged(6)}, applied: true, expected: []string{"4"}},
		{name: "Lost", expect: 4, read: recordAt7, answers: []string{apiError(10071, lost)}, record: 7, expected: []string{"4"}},
		{name: "Forgotten", expect: 4, read: removedAt6, answers: []string{apiError(10071, lost)}, expected: []string{"4"}},
		{name: "Gone", expect: 4, read: nothing, answers: []string{apiError(10071, lost), acknowledged(6)}, expected: []string{"4", "0"}},
		{name: "GoneInAnOldRead", expect: 4, read: nothing, answers: []string{apiError(10071, lost), apiError(10071, lost), acknowledged(6)}, applied: true, expected: []string{"4", "0", "4"}},
		{name: "AnotherWriteUnderWay", expect: 4, answers: []string{underWay, underWay, underWay, acknowledged(6)}, applied: true, expected: []string{"4", "4", "4", "4"}},
		{name: "AnotherWriteThatWins", expect: 4, read: recordAt7, answers: []string{underWay, apiError(10071, lost)}, record: 7, expected: []string{"4", "4"}},
		{name: "OldRead", expect: 4, read: recordAt4, answers: []string{apiError(10071, lost), acknowledged(9)}, applied: true, expected: []string{"4", "4"}},
		{name: "RecordBeforeThat", expect: 5, read: recordAt4, answers: []string{apiError(10071, lost), acknowledged(9)}, applied: true, expected: []string{"5", "5"}},
		{name: "RefusedByOneLeaderAndAppliedByAnother", expect: 4, read: ownAt6, answers: []string{apiError(10071, lost)}, applied: true, expected: []string{"4"}},
		{name: "RefusedAndThenFull", expect: 4, read: recordAt4, answers: []string{apiError(10071, lost), apiError(10077, "maximum bytes exceeded")}, inDoubt: "max_bytes", expected: []string{"4", "4"}},
		{name: "CreateOverWhatWasForgotten", read: removedAt6, answers: []string{apiError(10071, lost), acknowledged(7)}, applied: true, expected: []string{"0", "6"}},
		{name: "CreateOfWhatIsThere", read: recordAt7, answers: []string{apiError(10071, lost)}, record: 7, expected: []string{"0"}},
		{name: "NobodyThereAtFirst", expect: 4, answers: []string{noResponders, acknowledged(6)}, applied: true, expected: []string{"4", "4"}},
		{name: "Full", expect: 4, alone: true, answers: []string{apiError(10077, "maximum bytes exceeded")}, certain: "max_bytes", expected: []string{"4"}},
		{name: "FullAsOneOfSeveralServersSees", expect: 4, answers: []string{apiError(10077, "maximum bytes exceeded")}, inDoubt: "max_bytes", expected: []string{"4"}},
		{name: "RefusedAndThenFullOnOneServer", expect: 4, alone: true, read: recordAt4, answers: []string{apiError(10071, lost), apiError(10077, "maximum bytes exceeded")}, inDoubt: "max_bytes", expected: []string{"4", "4"}},
		{name: "Silence", expect: 4, answers: []string{silence}, inDoubt: "in time", expected: []string{"4"}},
		{name: "SilenceAfterARefusal", expect: 4, answers: []string{underWay, silence}, inDoubt: "in time", expected: []string{"4", "4"}},
		{name: "Nonsense", expect: 4, answers: []string{"nonsense"}, inDoubt: "cannot be read", expected: []string{"4"}},
		{name: "AnotherStream", expect: 4, answers: []string{`{"stream":"KV_other","seq":6}`}, inDoubt: "KV_other", expected: []string{"4"}},
		{name: "UnknownError", expect: 4, answers: []string{apiError(19999, "something new")}, inDoubt: "something new", expected: []string{"4"}},
		{name: "EarlierState", expect: 4, answers: []string{acknowledged(5)}, inDoubt: "made anew", expected: []string{"4"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			replicas := 3
			if c.alone {
				replicas = 1
			}
			server, s := storeOn(t, replicas, c.read, c.answers...)
			patience := 20 * time.Second
			if slices.Contains(c.answers, silence) {
				patience = time.Second
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			res, err := s.Swap(ctx, replicated.Swap{Key: "a", Expect: c.expect, Value: []byte("v")})
			if got := server.expected(); !slices.Equal(got, c.expected) {
				t.Errorf("publications named the sequences %q; want %q", got, c.expected)
			}
			want := replicated.SwapResult{Applied: c.applied, Entry: replicated.Entry{Revision: c.record}}
			if c.applied {
				want.Entry.Revision = res.Entry.Revision
			}
			if res.Applied != want.Applied || res.Entry.Revision != want.Entry.Revision {
				t.Errorf("the swap gave %+v; want %+v", res, want)
			}
			text := c.certain + c.inDoubt
			if (err != nil) != (text != "") || err != nil && !strings.Contains(err.Error(), text) || errors.Is(err, replicated.ErrNotApplied) != (c.certain != "") {
				t.Errorf("the error is %v; want %q, certain %v", err, text, c.certain != "")
			}
		})
	}
}

// A write that stays under way, as when the servers have lost their majority, keeps
// a swap waiting, but neither loses it nor floods the servers.
func TestSwapWaitsForAWriteThatIsUnderWay(t *testing.T) {
	server, s := storeAt(t, recordAt4, slices.Repeat([]string{apiError(10164, "wrong last sequence")}, 1000)...)
	const patience = 300 * time.Millisecond
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	// If the time is up while the last attempt is on its way, that one is in doubt.
	res, err := s.Swap(ctx, replicated.Swap{Key: "a", Expect: 4, Value: []byte("v")})
	if err == nil || res.Applied {
		t.Errorf("the swap gave %+v, error %v", res, err)
	}
	if n := len(server.expected()); n < busyAttempts || n > int(patience/time.Millisecond) {
		t.Errorf("it was sent %d times", n)
	}
}

// An idle record is marked, one that is not is not, and nothing else is said.
func TestIdleRecordsAreMarked(t *testing.T) {
	server, s := storeAt(t, "", acknowledged(6), acknowledged(7))
	for _, idle := range []bool{true, false} {
		if _, err := s.Swap(t.Context(), replicated.Swap{Key: "a", Expect: 5, Value: []byte("v"), Idle: idle}); err != nil {
			t.Fatal(err)
		}
	}
	got := fmt.Sprint(server.sent)
	if want := "[map[Lockgateway-Idle:[1] Nats-Expected-Last-Subject-Sequence:[5]] map[Nats-Expected-Last-Subject-Sequence:[5]]]"; got != want {
		t.Errorf("the headers are %s; want %s", got, want)
	}
}

// A leader that was deposed may tell an old sequence. What a message gets decides
// whether the end of the stream is lost.
func TestOldSequenceIsDecidedByAMessage(t *testing.T) {
	for _, c := range []struct {
		name     string
		replicas int
		answers  []string // to what is published then
		epoch    uint64
		fails    bool
	}{
		{"Deposed", 3, []string{acknowledged(8)}, 0, false},
		{"EndLost", 3, []string{acknowledged(3)}, 1, false},
		{"NotKnown", 3, []string{apiError(10077, "maximum bytes exceeded")}, 0, true},
		{"OneServer", 1, nil, 1, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			server, s := storeOn(t, c.replicas, "", append([]string{acknowledged(7)}, c.answers...)...)
			if _, err := s.Swap(t.Context(), replicated.Swap{Key: "a", Expect: 5, Value: []byte("v")}); err != nil {
				t.Fatal(err)
			}
			server.mu.Lock()
			server.last = 2
			server.mu.Unlock()
			_, l, err := s.link(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := s.look(t.Context(), l); (err != nil) != c.fails {
				t.Errorf("looking gave the error %v; want one: %v", err, c.fails)
			}
			if got := s.Epoch(); got != c.epoch {
				t.Errorf("the epoch is %d; want %d", got, c.epoch)
			}
			if got := len(server.expected()); got != 1+len(c.answers) {
				t.Errorf("%d messages were published; want %d", got, 1+len(c.answers))
			}
		})
	}
}

// Once its place is taken a record is gone, whatever else cannot be found out.
func TestRecordIsGoneOnceItsPlaceIsTaken(t *testing.T) {
	server, s := storeAt(t, nothing, apiError(10071, lost), acknowledged(6))
	if _, _, err := s.link(t.Context()); err != nil { // it has looked
		t.Fatal(err)
	}
	server.mu.Lock()
	server.mute = true
	server.mu.Unlock()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	res, err := s.Swap(ctx, replicated.Swap{Key: "a", Expect: 4, Value: []byte("v")})
	if err != nil || res.Applied || res.Entry.Revision != 0 {
		t.Errorf("the swap gave %+v, error %v; want that there is nothing", res, err)
	}
}

// A record that is being written was not looked at: the next sweep begins there.
func TestSweepComesBackToABusyRecord(t *testing.T) {
	underWay := slices.Repeat([]string{apiError(10164, "wrong last sequence")}, busyAttempts+1)
	for name, c := range map[string]struct {
		answers []string
		done    bool
	}{
		"Busy": {underWay, false}, "Used": {[]string{apiError(10071, lost)}, true}, "Removed": {[]string{acknowledged(8)}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, s := storeAt(t, "", c.answers...)
			if done := s.forget([]stored{{subject: s.keys.lock("a"), sequence: 4}}); done != c.done {
				t.Errorf("that all was done is said to be %v; want %v", done, c.done)
			}
		})
	}
}

func TestLogIsToldNowAndThenWhatRecurs(t *testing.T) {
	core, logs := observer.New(zap.WarnLevel)
	_, s := storeAt(t, "")
	o := *s.options.Load()
	o.Logger = zap.New(core)
	s.Configure(o)
	l := newLink(nil)
	sub := &nats.Subscription{Subject: s.keys.newsOf(s.keys.lock("a-secret-lock"))}
	for range 3 {
		s.hears(l, sub, nats.ErrSlowConsumer)
	}
	if logs.Len() != 1 || strings.Contains(fmt.Sprint(logs.All()), sub.Subject) {
		t.Errorf("the log has %v; want one entry, without the lock", logs.All())
	}
	s.warned.Range(func(text, _ any) bool {
		s.warned.Store(text, time.Now().Add(-warnEvery))
		return true
	})
	s.hears(l, sub, nats.ErrSlowConsumer)
	if logs.Len() != 2 {
		t.Errorf("after a while the log has %d entries; want 2", logs.Len())
	}
}

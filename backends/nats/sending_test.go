package nats

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/lockgateway/lockgateway/backends/replicated"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	lost      = "wrong last sequence: 6"
	nothing   = `{"error":{"code":404,"err_code":10037,"description":"no message found"}}`
	recordAt7 = `{"message":{"subject":"$KV.b.locks.YQ","seq":7,"data":"b3RoZXI=","time":"2026-01-02T03:04:05Z"}}`
	recordAt4 = `{"message":{"subject":"$KV.b.locks.YQ","seq":4,"data":"b2xk","time":"2026-01-02T03:04:05Z"}}`
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
		expected []string
	}{
		{name: "Applied", expect: 4, answers: []string{acknowledged(6)}, applied: true, expected: []string{"4"}},
		{name: "Lost", expect: 4, read: recordAt7, answers: []string{apiError(10071, lost)}, record: 7, expected: []string{"4"}},
		{name: "Forgotten", expect: 4, read: removedAt6, answers: []string{apiError(10071, lost)}, expected: []string{"4"}},
		{name: "Gone", expect: 4, read: nothing, answers: []string{apiError(10071, lost)}, expected: []string{"4"}},
		{name: "AnotherWriteUnderWay", expect: 4, answers: []string{underWay, underWay, underWay, acknowledged(6)}, applied: true, expected: []string{"4", "4", "4", "4"}},
		{name: "AnotherWriteThatWins", expect: 4, read: recordAt7, answers: []string{underWay, apiError(10071, lost)}, record: 7, expected: []string{"4", "4"}},
		{name: "OldRead", expect: 4, read: recordAt4, answers: []string{apiError(10071, lost), acknowledged(9)}, applied: true, expected: []string{"4", "4"}},
		{name: "CreateOverWhatWasForgotten", read: removedAt6, answers: []string{apiError(10071, lost), acknowledged(7)}, applied: true, expected: []string{"0", "6"}},
		{name: "CreateOfWhatIsThere", read: recordAt7, answers: []string{apiError(10071, lost)}, record: 7, expected: []string{"0"}},
		{name: "NobodyThereAtFirst", expect: 4, answers: []string{noResponders, acknowledged(6)}, applied: true, expected: []string{"4", "4"}},
		{name: "Full", expect: 4, answers: []string{apiError(10077, "maximum bytes exceeded")}, certain: "max_bytes", expected: []string{"4"}},
		{name: "Silence", expect: 4, answers: []string{silence}, inDoubt: "in time", expected: []string{"4"}},
		{name: "SilenceAfterARefusal", expect: 4, answers: []string{underWay, silence}, inDoubt: "in time", expected: []string{"4", "4"}},
		{name: "Nonsense", expect: 4, answers: []string{"nonsense"}, inDoubt: "cannot be read", expected: []string{"4"}},
		{name: "AnotherStream", expect: 4, answers: []string{`{"stream":"KV_other","seq":6}`}, inDoubt: "KV_other", expected: []string{"4"}},
		{name: "UnknownError", expect: 4, answers: []string{apiError(19999, "something new")}, inDoubt: "something new", expected: []string{"4"}},
		{name: "EarlierState", expect: 4, answers: []string{acknowledged(5)}, inDoubt: "made anew", expected: []string{"4"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			server, s := storeAt(t, c.read, c.answers...)
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

package lock_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/lockgateway/lockgateway/lock"
)

func TestKeyIsCanonical(t *testing.T) {
	for _, c := range []struct {
		maxValue, id string
		name         string
		max          int64
	}{
		{"1", "a", "1/a", 1},
		{"01", "a", "1/a", 1},
		{"000100", "a", "100/a", 100},
		{"9223372036854775807", "a", "9223372036854775807/a", math.MaxInt64},
		{"9223372036854775808", "a", "9223372036854775808/a", math.MaxInt64},
		{"99999999999999999999999", "a", "99999999999999999999999/a", math.MaxInt64},
		{"0099999999999999999999999", "a", "99999999999999999999999/a", math.MaxInt64},
		{"1", "..", "1/..", 1},
		{"1", "\x00 %?#", "1/\x00 %?#", 1},
		{"1", strings.Repeat("x", 256), "1/" + strings.Repeat("x", 256), 1},
		{"1", strings.Repeat("é", 256), "1/" + strings.Repeat("é", 256), 1},
		{"1", strings.Repeat("🔒", 256), "1/" + strings.Repeat("🔒", 256), 1},
	} {
		k, err := lock.NewKey(c.maxValue, c.id)
		if err != nil {
			t.Errorf("NewKey(%q, %q): %v", c.maxValue, c.id, err)
			continue
		}
		if k.Name() != c.name || k.Max() != c.max || k.ID() != c.id || k.MaxValue()+"/"+k.ID() != k.Name() {
			t.Errorf("NewKey(%q, %q) is %q with maximum %d", c.maxValue, c.id, k.Name(), k.Max())
		}
		if same, err := lock.ParseKey(k.Name()); err != nil || same != k {
			t.Errorf("ParseKey(%q) is %v, %v", k.Name(), same, err)
		}
	}
}

func TestBadKeysNameThePartAtFault(t *testing.T) {
	for _, c := range []struct{ maxValue, id, want string }{
		{"", "a", "maxValue"},
		{"0", "a", "maxValue"},
		{"000", "a", "maxValue"},
		{"-1", "a", "maxValue"},
		{"+1", "a", "maxValue"},
		{"1.5", "a", "maxValue"},
		{"1e3", "a", "maxValue"},
		{"0x1", "a", "maxValue"},
		{" 1", "a", "maxValue"},
		{"1 ", "a", "maxValue"},
		{"one", "a", "maxValue"},
		{"١", "a", "maxValue"},
		{"1/2", "a", "maxValue"},
		{strings.Repeat("x", 10_000), "a", "maxValue"},
		{"1", "", "lockId is empty"},
		{"1", "a/b", "lockId contains a slash"},
		{"1", "a\xff", "lockId is not valid UTF-8"},
		{"1", strings.Repeat("x", 257), "lockId has 257 characters"},
		{"1", strings.Repeat("é", 257), "lockId has 257 characters"},
		{"1", strings.Repeat("🔒", 257), "lockId has 257 characters"},
	} {
		_, err := lock.NewKey(c.maxValue, c.id)
		if err == nil || !strings.Contains(err.Error(), c.want) || len(err.Error()) > 200 {
			t.Errorf("NewKey(%.20q, %.20q) gave the error %v; want one about %s", c.maxValue, c.id, err, c.want)
		}
	}
	if _, err := lock.ParseKey("1"); err == nil {
		t.Error("a key without an id was accepted")
	}
}

func TestDifferentKeysHaveDifferentNames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		digits := rapid.StringMatching(`0{0,3}[1-9][0-9]{0,30}`)
		id := rapid.StringOfN(rapid.Rune().Filter(func(r rune) bool { return r != '/' }), 1, 256, -1)
		m1, m2, id1, id2 := digits.Draw(t, "m1"), digits.Draw(t, "m2"), id.Draw(t, "id1"), id.Draw(t, "id2")
		k1, err1 := lock.NewKey(m1, id1)
		k2, err2 := lock.NewKey(m2, id2)
		if err := errors.Join(err1, err2); err != nil {
			t.Fatal(err)
		}
		same := strings.TrimLeft(m1, "0") == strings.TrimLeft(m2, "0") && id1 == id2
		if (k1 == k2) != same || (k1.Name() == k2.Name()) != same {
			t.Fatalf("%q and %q", k1.Name(), k2.Name())
		}
	})
}

func TestKeyDoesNotPrintItsID(t *testing.T) {
	k, err := lock.NewKey("3", "secret")
	if err != nil {
		t.Fatal(err)
	}
	request := lock.AcquireRequest{Key: k}
	for _, text := range []string{k.String(), fmt.Sprint(k), fmt.Sprintf("%+v %#v %s %q", k, k, k, k), fmt.Sprintf("%v %+v", request, request)} {
		if strings.Contains(text, "secret") {
			t.Errorf("a key printed its id: %s", text)
		}
	}
	if got := (lock.Key{}).String(); got != "(no lock)" {
		t.Errorf("the zero key prints %q", got)
	}
}

func TestParseKeyAllocatesNothing(t *testing.T) {
	name := "17/6f9619ff-8b86-d011-b42d-00c04fc964ff"
	if n := testing.AllocsPerRun(100, func() {
		if _, err := lock.ParseKey(name); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestHolderNames(t *testing.T) {
	for name, ok := range map[string]bool{
		"": false, "a": true, "a/b": true, "\xff": false, " ": true,
		strings.Repeat("🔒", 256): true, strings.Repeat("🔒", 257): false,
	} {
		if err := lock.CheckHolder(name); (err == nil) != ok {
			t.Errorf("CheckHolder(%.20q) = %v", name, err)
		}
	}
}

func TestLimitErrorIsUnavailable(t *testing.T) {
	err := fmt.Errorf("acquire: %w", &lock.LimitError{Limit: "max_waiters", Max: 7})
	if !errors.Is(err, lock.ErrUnavailable) || errors.Is(err, lock.ErrClosing) {
		t.Errorf("%v is the wrong kind of error", err)
	}
	if !strings.Contains(err.Error(), "max_waiters 7") {
		t.Errorf("%v does not name the limit", err)
	}
}

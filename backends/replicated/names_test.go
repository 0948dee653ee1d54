package replicated

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/lockgateway/lockgateway/lock"
)

// The names of locks, as keys of the store.

func TestShortNamesAreKeysAndLongOnesAreHashed(t *testing.T) {
	longest := strings.Repeat("9", MaxKeyLength-len("/a"))
	for _, row := range []struct {
		maxValue, id string
		hashed       bool
	}{
		{"1", "a", false},
		{"1", "#", false},
		{"1", strings.Repeat("🔒", lock.MaxIDLength), false},
		{longest, "a", false},
		{longest + "9", "a", true},
		{longest, "ab", true},
		{strings.Repeat("9", 100000), "a", true},
	} {
		key, err := lock.NewKey(row.maxValue, row.id)
		if err != nil {
			t.Fatal(err)
		}
		stored, name := storeKey(key)
		if row.hashed && (name != key.Name() || len(stored) != 65 || stored[0] != '#') || !row.hashed && (stored != key.Name() || name != "") {
			t.Errorf("a name of %d bytes is stored as %.80q with the name %.20q", len(key.Name()), stored, name)
		}
	}
}

func TestNoTwoLocksMeetInTheStore(t *testing.T) {
	digits := rapid.Custom(func(t *rapid.T) string {
		n := rapid.SampledFrom([]int{1, 2, 3, 1000, 1195, 1196, 1197, 1198, 1199, 1200, 1201, 5000}).Draw(t, "digits")
		return strings.Repeat(rapid.SampledFrom([]string{"1", "9"}).Draw(t, "digit"), n)
	})
	ids := rapid.OneOf(rapid.StringN(1, 20, -1), rapid.SampledFrom([]string{"a", "aa", "#", "9", strings.Repeat("é", 256)}))
	rapid.Check(t, func(t *rapid.T) {
		parse := func(name string) lock.Key {
			key, err := lock.ParseKey(name)
			if err != nil {
				t.Skip(err)
			}
			return key
		}
		one := parse(digits.Draw(t, "max") + "/" + ids.Draw(t, "id"))
		stored, _ := storeKey(one)
		var other lock.Key
		switch rapid.IntRange(0, 3).Draw(t, "other") {
		case 0:
			other = parse(digits.Draw(t, "max") + "/" + ids.Draw(t, "id"))
		case 1:
			other = parse(one.Name() + ids.Draw(t, "suffix"))
		case 2:
			other = parse("1" + one.Name())
		case 3: // one that looks like what the other is stored as
			other = parse("1/" + stored)
		}
		again, _ := storeKey(other)
		if (stored == again) != (one == other) {
			t.Errorf("%.80q and %.80q are stored as %.80q and %.80q", one.Name(), other.Name(), stored, again)
		}
		for _, key := range []string{stored, again} {
			if key == "" || len(key) > MaxKeyLength || !utf8.ValidString(key) {
				t.Errorf("%q is no key", key)
			}
		}
	})
}

// TestRecordOfALongNameIsNoOtherLocks: the name in the record must be the
// lock's, and there is none in that of a short one.
func TestRecordOfALongNameIsNoOtherLocks(t *testing.T) {
	names := []string{"", "9/a", "9/b"}
	for _, of := range names {
		store := &plainRegister{clock: 10}
		g := newPlainGateway(t, 1, true, 1, store)
		g.core.name = of
		g.submit(acquireRequest, "")
		g.work()
		for _, name := range names {
			other := newPlainGateway(t, 1, true, 2, store)
			other.core.name = name
			err := other.core.learn(store.entry(), true)
			if (err == nil) != (name == of) || err != nil && (!errors.Is(err, errForeign) || !errors.Is(err, lock.ErrUnavailable)) {
				t.Errorf("the record of %q read as that of %q: %v", of, name, err)
			}
		}
	}
}

package replicated_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockgateway/lockgateway/backends/replicated"
	"github.com/lockgateway/lockgateway/backends/replicated/hostile"
	"github.com/lockgateway/lockgateway/lock"
)

// listed returns what Locks yields: the names, with how many are held and waiting, in
// the order of the names, and the errors about single records.
func listed(t *testing.T, b *replicated.Backend) (names []string, unreadable []error) {
	t.Helper()
	for s, err := range b.Locks(t.Context(), false) {
		var record *lock.RecordError
		switch {
		case errors.As(err, &record):
			unreadable = append(unreadable, err)
		case err != nil:
			t.Fatal(err)
		default:
			names = append(names, fmt.Sprint(s.Key.Name(), " ", s.Held, " ", s.Waiting))
		}
	}
	slices.Sort(names)
	return names, unreadable
}

func mustKey(t *testing.T, name string) lock.Key {
	t.Helper()
	key, err := lock.ParseKey(name)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func mustAcquire(t *testing.T, b *replicated.Backend, r lock.AcquireRequest) {
	t.Helper()
	if res, err := b.Acquire(t.Context(), r); err != nil || !res.Acquired {
		t.Fatalf("acquire gave %+v, %v", res, err)
	}
}

// Nobody touches a record when a slot in it expires or a gateway with waiters dies. A
// list shows it as the next user would find it.
func TestListLeavesOutWhatIsThereNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := hostile.New(t, hostile.Config{})
		defer cluster.Close()
		dying, living := cluster.Open(), cluster.Open()
		a, b := replicated.New(dying, replicated.Options{}), replicated.New(living, replicated.Options{})
		defer func() { _ = b.Close() }()
		defer func() { _ = a.Close() }()
		expires, awaited := mustKey(t, "2/expires"), mustKey(t, "1/awaited")
		mustAcquire(t, b, lock.AcquireRequest{Key: expires, Holder: "short", TTL: time.Second})
		mustAcquire(t, b, lock.AcquireRequest{Key: expires, Holder: "long", TTL: time.Hour})
		mustAcquire(t, b, lock.AcquireRequest{Key: awaited})
		go func() { _, _ = a.Acquire(t.Context(), lock.AcquireRequest{Key: awaited, Wait: lock.Forever}) }()
		time.Sleep(500 * time.Millisecond)
		if names, _ := listed(t, b); !slices.Equal(names, []string{"1/awaited 1 1", "2/expires 2 0"}) {
			t.Errorf("the list is %q", names)
		}
		cluster.Cut(dying)
		time.Sleep(time.Minute)
		if names, _ := listed(t, b); !slices.Equal(names, []string{"1/awaited 1 0", "2/expires 1 0"}) {
			t.Errorf("later the list is %q", names)
		}
		d, err := b.Inspect(t.Context(), expires)
		if err != nil || d.Held != 1 || len(d.Holders) != 1 || d.Holders[0].Name != "long" || d.Holders[0].ExpiresIn < 58*time.Minute {
			t.Errorf("the lock is %+v, %v", d, err)
		}
		if d, err := b.Inspect(t.Context(), awaited); err != nil || d.Held != 1 || d.Waiting != 0 || d.Queue != nil {
			t.Errorf("the lock is %+v, %v", d, err)
		}
		cluster.Heal(dying)
	})
}

// The name of a lock whose key is a hash is in its record; what cannot be read is told
// and left as it is.
func TestListNamesLongLocksAndTellsOfUnreadableRecords(t *testing.T) {
	cluster := hostile.New(t, hostile.Config{})
	defer cluster.Close()
	b := replicated.New(cluster.Open(), replicated.Options{})
	defer func() { _ = b.Close() }()
	long := strings.Repeat("9", 1500) + "/long"
	mustAcquire(t, b, lock.AcquireRequest{Key: mustKey(t, long)})
	mustAcquire(t, b, lock.AcquireRequest{Key: mustKey(t, "1/short")})
	cluster.Put("1/foreign", []byte("not a record"))
	cluster.Put("no lock", cluster.Record("1/short").Value)
	cluster.Put("#hash", cluster.Record("1/short").Value)
	names, unreadable := listed(t, b)
	if !slices.Equal(names, []string{"1/short 1 0", long + " 1 0"}) {
		t.Errorf("the list is %.80q", names)
	}
	if len(unreadable) != 3 {
		t.Errorf("the list has these errors: %v", unreadable)
	}
	if _, err := b.Inspect(t.Context(), mustKey(t, "1/foreign")); !errors.Is(err, lock.ErrUnavailable) {
		t.Errorf("Inspect of such a record gave %v", err)
	}
}

func TestGatewaysTellWhoTheyAre(t *testing.T) {
	cluster := hostile.New(t, hostile.Config{})
	defer cluster.Close()
	a, b := replicated.New(cluster.Open(), replicated.Options{}), replicated.New(cluster.Open(), replicated.Options{})
	defer func() { _ = b.Close() }()
	mustAcquire(t, a, lock.AcquireRequest{Key: mustKey(t, "2/a")}) // both have a session then
	mustAcquire(t, b, lock.AcquireRequest{Key: mustKey(t, "2/a")})
	list, err := a.Gateways(t.Context())
	if err != nil || len(list) != 2 || list[0].Self == list[1].Self {
		t.Fatalf("the gateways are %+v, %v", list, err)
	}
	for _, g := range list {
		if g.Host == "" || time.Since(g.Since) > time.Minute {
			t.Errorf("a gateway is %+v", g)
		}
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Gateways(t.Context()); !errors.Is(err, lock.ErrClosing) {
		t.Errorf("Gateways of a closed one gave %v", err)
	}
	if list, err := b.Gateways(t.Context()); err != nil || len(list) != 1 || !list[0].Self {
		t.Errorf("the gateways are %+v, %v", list, err)
	}
}

// A list of a store that has gone silent ends with an error.
func TestListEndsWhenTheStoreIsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := hostile.New(t, hostile.Config{})
		defer cluster.Close()
		store := cluster.Open()
		b := replicated.New(store, replicated.Options{})
		defer func() { _ = b.Close() }()
		mustAcquire(t, b, lock.AcquireRequest{Key: mustKey(t, "1/a")})
		cluster.Cut(store)
		var last error
		for _, err := range b.Locks(t.Context(), false) {
			last = err
		}
		if !errors.Is(last, lock.ErrUnavailable) {
			t.Errorf("the list ended with %v", last)
		}
		if _, err := b.Inspect(t.Context(), mustKey(t, "1/a")); !errors.Is(err, lock.ErrUnavailable) {
			t.Errorf("Inspect gave %v", err)
		}
		cluster.Heal(store)
	})
}

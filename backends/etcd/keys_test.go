package etcd

import (
	"bytes"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestKeyLayout(t *testing.T) {
	k := newKeyspace("/p")
	for _, c := range []struct{ got, want string }{
		{string(k.lock("1/a b\x00/..")), "/p/locks/1/a b\x00/.."},
		{string(k.session(0x1f)), "/p/sessions/000000000000001f"},
		{string(k.expiringKey(0x7f12)), "/p/expiring/0000000000007f12"},
	} {
		if c.got != c.want {
			t.Errorf("the key is %q; want %q", c.got, c.want)
		}
	}
}

func TestSessionKeysTellTheirSession(t *testing.T) {
	k := newKeyspace("/p")
	for _, lease := range []int64{1, 0x1f, 1<<62 + 5, -7} {
		if id, err := k.sessionID(k.session(lease)); err != nil || int64(id) != lease {
			t.Errorf("the key of session %x is taken for that of %x, error %v", lease, id, err)
		}
	}
	if id, err := k.sessionID([]byte("/p/sessions/somebody")); err == nil {
		t.Errorf("a strange key is taken for that of session %x", id)
	}
}

func TestStoresShareNoKey(t *testing.T) {
	part := rapid.SampledFrom([]string{"", "/", "a", "b", "/a", "/locks", "/locks/", "locks", "/sessions/", "/expiring", "/lockgateway", "0000000000000001"})
	name := rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(part, 0, 5).Draw(t, "parts"), "")
	})
	prefix := name.Filter(func(p string) bool { return !strings.HasSuffix(p, "/") && checkPrefix(p) == nil })
	key := rapid.Custom(func(t *rapid.T) [3]string {
		p := prefix.Draw(t, "prefix")
		k, kind := newKeyspace(p), rapid.IntRange(0, 2).Draw(t, "kind")
		switch kind {
		case 0:
			lock := name.Draw(t, "lock")
			return [3]string{p, "lock " + lock, string(k.lock(lock))}
		case 1:
			return [3]string{p, "session", string(k.session(1))}
		default:
			return [3]string{p, "expiring", string(k.expiringKey(1))}
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b := key.Draw(t, "a"), key.Draw(t, "b")
		if a[2] == b[2] && a != b {
			t.Errorf("%q is the key of both %q and %q", a[2], a[:2], b[:2])
		}
		if !bytes.HasPrefix([]byte(a[2]), []byte(a[0]+"/")) {
			t.Errorf("%q is not below %q", a[2], a[0])
		}
	})
}

func TestPrefixesThatLieWithinOthersAreRefused(t *testing.T) {
	for prefix, ok := range map[string]bool{
		"": true, "/lockgateway": true, "jobs": true, "/a/b": true, "/lockss": true, "/a locks": true,
		"/locks": false, "/a/locks/b": false, "/a/sessions": false, "expiring": false,
	} {
		if err := checkPrefix(prefix); (err == nil) != ok {
			t.Errorf("the prefix %q gave the error %v", prefix, err)
		}
	}
}

package nats

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/lockgateway/lockgateway/backends/replicated"
)

func TestKeyLayout(t *testing.T) {
	k, far := newKeyspace("", "jobs"), newKeyspace("hub", "jobs")
	for _, c := range []struct{ got, want string }{
		{k.stream, "KV_jobs"},
		{k.lock("a"), "$KV.jobs.locks.YQ"},
		{k.lock("1/\xff\xff?>*. "), "$KV.jobs.locks.MS___z8-Ki4g"},
		{k.newsOf(k.lock("a")), "lockgateway.jobs.YQ"},
		{k.session(0x1f), "$KV.jobs.sessions.000000000000001f"},
		{k.expiringKey(1 << 63), "$KV.jobs.expiring.8000000000000000"},
		{k.sweep(), "$KV.jobs.sweep"},
		{k.allLocks(), "$KV.jobs.locks.>"},
		{k.api("STREAM.MSG.GET"), "$JS.API.STREAM.MSG.GET.KV_jobs"},
		{far.api("STREAM.MSG.GET"), "$JS.hub.API.STREAM.MSG.GET.KV_jobs"},
		{far.gateway + far.lock("a"), "$JS.hub.API.$KV.jobs.locks.YQ"},
	} {
		if c.got != c.want {
			t.Errorf("the subject is %q; want %q", c.got, c.want)
		}
	}
}

func TestLongestKeyIsOneToken(t *testing.T) {
	k := newKeyspace("", "jobs")
	token := strings.TrimPrefix(k.lock(strings.Repeat("\xff", replicated.MaxKeyLength)), k.prefix+"locks.")
	if len(token) != 1600 || strings.ContainsAny(token, ". *>") {
		t.Errorf("the token has %d characters: %.50q", len(token), token)
	}
}

func TestLocksShareNoSubject(t *testing.T) {
	k := newKeyspace("", "jobs")
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.String().Draw(t, "a"), rapid.String().Draw(t, "b")
		if a != b && k.lock(a) == k.lock(b) {
			t.Errorf("%q is the subject of both %q and %q", k.lock(a), a, b)
		}
	})
}

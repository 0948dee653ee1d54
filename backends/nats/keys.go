package nats

import (
	"encoding/base64"
	"fmt"
)

// What a bucket has, each kind under a token of its own, so that no two meet. A
// lock's key follows in base64url, as one token: subjects take few characters and
// give some a meaning. The longest, 1,200 bytes, has 1,600 characters then.
const (
	lockToken     = "locks"
	sessionToken  = "sessions"
	expiringToken = "expiring"
	sweepToken    = "sweep"
	probeToken    = "probe"
)

// keyspace is where a store keeps its keys: a bucket, as `nats kv` knows it.
type keyspace struct {
	stream  string // that the bucket is
	prefix  string // what the subjects of its keys begin with
	gateway string // what the API calls to it and the publications of keys begin with, in another domain
	news    string // what the subjects begin with to which the stream publishes changes of locks again
}

func newKeyspace(domain, bucket string) keyspace {
	k := keyspace{
		stream: "KV_" + bucket,
		prefix: "$KV." + bucket + ".",
		news:   "lockgateway." + bucket + ".",
	}
	if domain != "" {
		k.gateway = "$JS." + domain + ".API."
	}
	return k
}

func (k keyspace) lock(key string) string {
	return k.prefix + lockToken + "." + base64.RawURLEncoding.EncodeToString([]byte(key))
}

func (k keyspace) session(id uint64) string {
	return fmt.Sprintf("%s%s.%016x", k.prefix, sessionToken, id)
}

func (k keyspace) expiringKey(id uint64) string {
	return fmt.Sprintf("%s%s.%016x", k.prefix, expiringToken, id)
}

// sweep is the key that says whose turn it is to sweep.
func (k keyspace) sweep() string { return k.prefix + sweepToken }

// probe is the key that is written to learn how far the stream is. Nobody reads it.
func (k keyspace) probe() string { return k.prefix + probeToken }

// allLocks matches the subjects of all locks.
func (k keyspace) allLocks() string { return k.prefix + lockToken + ".>" }

// newsOf is where changes of a lock are heard of.
func (k keyspace) newsOf(lock string) string {
	return k.news + lock[len(k.prefix)+len(lockToken)+1:]
}

// api is the subject of an API call.
func (k keyspace) api(call string) string {
	if k.gateway != "" {
		return k.gateway + call + "." + k.stream
	}
	return "$JS.API." + call + "." + k.stream
}

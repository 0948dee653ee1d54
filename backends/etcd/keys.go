package etcd

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/lockgateway/lockgateway/backends/replicated"
)

// What a store has below its prefix. A lock's key follows as it is: etcd takes
// any bytes, so no two locks meet.
const (
	lockFolder     = "locks"
	sessionFolder  = "sessions"
	expiringFolder = "expiring"
)

// keyspace is where a store keeps its keys: below a prefix.
type keyspace struct{ locks, sessions, expiring string }

func newKeyspace(prefix string) keyspace {
	return keyspace{
		locks:    prefix + "/" + lockFolder + "/",
		sessions: prefix + "/" + sessionFolder + "/",
		expiring: prefix + "/" + expiringFolder + "/",
	}
}

// checkPrefix refuses a prefix that lies within what a store with another prefix
// may have; then no two prefixes share a key, whatever the locks are called.
func checkPrefix(prefix string) error {
	for _, part := range strings.Split(prefix, "/") {
		if slices.Contains([]string{lockFolder, sessionFolder, expiringFolder}, part) {
			return fmt.Errorf("%q has a part %q, as the keys below a prefix have; use another word", prefix, part)
		}
	}
	return nil
}

func (k keyspace) lock(key string) []byte     { return []byte(k.locks + key) }
func (k keyspace) session(lease int64) []byte { return append([]byte(k.sessions), leaseName(lease)...) }
func (k keyspace) expiringKey(lease int64) []byte {
	return append([]byte(k.expiring), leaseName(lease)...)
}

// sessionID returns whose key it is that session made.
func (k keyspace) sessionID(key []byte) (replicated.SessionID, error) {
	id, err := strconv.ParseUint(strings.TrimPrefix(string(key), k.sessions), 16, 64)
	return replicated.SessionID(id), err
}

// leaseName is a lease's ID as etcdctl writes it, of constant length.
func leaseName(lease int64) string { return fmt.Sprintf("%016x", uint64(lease)) }

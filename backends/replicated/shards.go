package replicated

import (
	"crypto/sha256"
	"encoding/hex"
	"hash/maphash"
	"sync"
	"time"

	"github.com/lockgateway/lockgateway/lock"
)

// The locks that a gateway knows: those in use, and some that were a while ago.

const (
	shardCount = 64 // a power of two

	// keptPerShard bounds the cache of idle locks' records.
	keptPerShard = 256

	// tidyEvery is how often idle locks' records are looked at; those that were
	// not used since the last time are dropped.
	tidyEvery = time.Minute
)

// shard is a part of the locks that are active, or were a while ago.
type shard struct {
	mu    sync.Mutex
	locks map[string]*committer
}

// use returns the committer of a lock for one operation, after which unuse is
// to be called.
func (b *Backend) use(key lock.Key) *committer {
	name := key.Name()
	sh := &b.shards[maphash.String(b.seed, name)%shardCount]
	sh.mu.Lock()
	c := sh.locks[name]
	if c == nil {
		if len(sh.locks) >= keptPerShard {
			sh.dropIdle(false)
		}
		c = b.newCommitter(sh, key)
		sh.locks[name] = c
	}
	c.users++
	c.parked = false
	sh.mu.Unlock()
	return c
}

func (c *committer) unuse() {
	c.shard.mu.Lock()
	c.users--
	c.shard.mu.Unlock()
}

func (b *Backend) newCommitter(sh *shard, key lock.Key) *committer {
	stored, name := storeKey(key)
	c := &committer{b: b, shard: sh, key: stored, core: newCore(key.Max(), name, b.store.Linearizable())}
	c.core.key = stored
	c.nudge = make(chan struct{}, 1)
	c.epoch = b.store.Epoch()
	if c.session = b.gateways.current(); c.session != nil {
		c.core.session = c.session.ID()
	}
	return c
}

// hashedKey is what keys begin with that are hashes of names.
const hashedKey = "#"

// storeKey returns the key of a lock in the store, and the name that the record
// must have if the key does not tell it. Names begin with a digit, so hashes
// meet none.
func storeKey(key lock.Key) (stored, name string) {
	name = key.Name()
	if len(name) <= MaxKeyLength {
		return name, ""
	}
	sum := sha256.Sum256([]byte(name))
	return hashedKey + hex.EncodeToString(sum[:]), name
}

// eachCommitter calls f with the committers of all locks that are active.
func (b *Backend) eachCommitter(f func(*committer)) {
	for i := range b.shards {
		sh := &b.shards[i]
		sh.mu.Lock()
		list := make([]*committer, 0, len(sh.locks))
		for _, c := range sh.locks {
			list = append(list, c)
		}
		sh.mu.Unlock()
		for _, c := range list {
			f(c)
		}
	}
}

// tidy drops the records of locks that were idle for a while. It is the
// backend's goroutine, until Close.
func (b *Backend) tidy() {
	ticker := time.NewTicker(tidyEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-b.ctx.Done():
			return
		}
		for i := range b.shards {
			b.shards[i].mu.Lock()
			b.shards[i].dropIdle(true)
			b.shards[i].mu.Unlock()
		}
	}
}

// dropIdle drops committers that nothing uses: all that were idle the last time
// already if aged is set, else any, some of them. sh.mu is held.
func (sh *shard) dropIdle(aged bool) {
	dropped := 0
	for name, c := range sh.locks {
		if c.users > 0 || !c.mu.TryLock() {
			continue
		}
		idle := c.core.idle() && !c.running && c.unfollow == nil && len(c.late) == 0
		c.mu.Unlock()
		switch {
		case !idle:
		case aged && !c.parked:
			c.parked = true
		default:
			delete(sh.locks, name)
			if dropped++; !aged && dropped >= keptPerShard/8 {
				return
			}
		}
	}
}

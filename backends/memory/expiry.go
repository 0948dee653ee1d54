package memory

import (
	"math"
	"time"
)

// setExpiry makes h end ttl from now, whatever it had before. The timer is
// owned by h and stopped when h is removed; a callback that comes too late for
// that finds that h is not there any more, or has been renewed.
func (sh *shard) setExpiry(s *semaphore, h *holder, ttl time.Duration) {
	now := sh.backend.now()
	if ttl > math.MaxInt64-now {
		ttl = math.MaxInt64 - now
	}
	h.expires = now + ttl
	if h.expiry != nil {
		h.expiry.Reset(ttl)
		return
	}
	h.expiry = time.AfterFunc(ttl, func() { sh.expire(s, h) })
}

func (sh *shard) expire(s *semaphore, h *holder) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if s.holder(h.name) == h && h.expires <= sh.backend.now() {
		sh.releaseNamed(s, h)
	}
}

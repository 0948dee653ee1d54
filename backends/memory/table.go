package memory

import "hash/maphash"

// table finds the locks of a shard by their names. It is a hash table with
// chains that run through the locks. A map would hash each name again, after
// the hash that chose the shard, and would not give memory back.
type table struct {
	seed    maphash.Seed
	buckets []*semaphore // a power of two of them
	len     int
}

const leastBuckets = 8

func newTable(seed maphash.Seed) table {
	return table{seed: seed, buckets: make([]*semaphore, leastBuckets)}
}

func (t *table) bucket(hash uint64) **semaphore {
	return &t.buckets[hash/shardCount&uint64(len(t.buckets)-1)]
}

func (t *table) find(hash uint64, name string) *semaphore {
	s := *t.bucket(hash)
	for s != nil && s.name != name {
		s = s.chained
	}
	return s
}

func (t *table) add(hash uint64, s *semaphore) {
	if t.len == len(t.buckets) {
		t.resize(2 * t.len)
	}
	t.len++
	first := t.bucket(hash)
	s.chained, *first = *first, s
}

// remove takes a lock out that is there. A table with much room is made
// smaller after as many removals as pay for it.
func (t *table) remove(s *semaphore) {
	at := t.bucket(maphash.String(t.seed, s.name))
	for *at != s {
		at = &(*at).chained
	}
	*at, s.chained = s.chained, nil
	t.len--
	if len(t.buckets) > leastBuckets && t.len < len(t.buckets)/8 {
		t.resize(len(t.buckets) / 4)
	}
}

func (t *table) resize(buckets int) {
	old := t.buckets
	t.buckets = make([]*semaphore, max(buckets, leastBuckets))
	for _, s := range old {
		for s != nil {
			next := s.chained
			first := t.bucket(maphash.String(t.seed, s.name))
			s.chained, *first = *first, s
			s = next
		}
	}
}

func (t *table) all(yield func(*semaphore) bool) {
	for _, s := range t.buckets {
		for ; s != nil; s = s.chained {
			if !yield(s) {
				return
			}
		}
	}
}

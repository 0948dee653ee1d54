package memory_test

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/lockgateway/lockgateway/backends/memory"
	"github.com/lockgateway/lockgateway/lock"
)

// countingMap is the least that could count slots by name: what an uncontended
// pair is measured against. It owns its names, as anything must that outlives
// the request that brought them.
type countingMap struct {
	mu     sync.Mutex
	counts map[string]*slots
}

type slots struct{ held, max int64 }

func newCountingMap(keys ...lock.Key) *countingMap {
	m := &countingMap{counts: make(map[string]*slots)}
	for _, k := range keys {
		m.add(k)
	}
	return m
}

func (m *countingMap) add(k lock.Key) { m.counts[strings.Clone(k.Name())] = &slots{max: k.Max()} }

func (m *countingMap) acquire(name string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.counts[name]
	if s == nil || s.held >= s.max {
		return false
	}
	s.held++
	return true
}

func (m *countingMap) release(name string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.counts[name]
	if s == nil || s.held == 0 {
		return false
	}
	s.held--
	return true
}

// pair is one acquire and release that must both succeed.
type pair func() error

var errNoSlot = errors.New("a slot that must be free was not had")

func gatewayPair(b *memory.Backend, r lock.AcquireRequest) pair {
	ctx := context.Background()
	return func() error {
		res, err := b.Acquire(ctx, r)
		if err != nil || !res.Acquired {
			return errors.Join(errNoSlot, err)
		}
		released, err := b.Release(ctx, r.Key, "")
		if err != nil || !released {
			return errors.Join(errNoSlot, err)
		}
		return nil
	}
}

func referencePair(m *countingMap, k lock.Key) pair {
	name := k.Name()
	return func() error {
		if !m.acquire(name) || !m.release(name) {
			return errNoSlot
		}
		return nil
	}
}

// uuidKey returns a key whose id has the form of a UUID.
func uuidKey(tb testing.TB, maxValue string, n int) lock.Key {
	tb.Helper()
	var raw [16]byte
	binary.BigEndian.PutUint64(raw[:8], uint64(n)*0x9e3779b97f4a7c15) // scattered, as random ids are
	binary.BigEndian.PutUint64(raw[8:], uint64(n))
	h := hex.EncodeToString(raw[:])
	k, err := lock.NewKey(maxValue, h[:8]+"-"+h[8:12]+"-"+h[12:16]+"-"+h[16:20]+"-"+h[20:])
	if err != nil {
		tb.Fatal(err)
	}
	return k
}

func openBackend(tb testing.TB, opts memory.Options) *memory.Backend {
	tb.Helper()
	b := memory.New(opts)
	tb.Cleanup(func() {
		if err := b.Close(); err != nil {
			tb.Error(err)
		}
	})
	return b
}

// uncontended returns the same pair of the gateway and of the reference, each
// of which has so many more locks.
func uncontended(b *testing.B, others int) (gateway, reference pair) {
	b.Helper()
	k := uuidKey(b, "1", others)
	backend, m := openBackend(b, memory.Options{}), newCountingMap(k)
	useLocks(b, backend, others)
	for n := range others {
		m.add(uuidKey(b, "1", n))
	}
	return gatewayPair(backend, lock.AcquireRequest{Key: k}), referencePair(m, k)
}

func BenchmarkUncontendedPair(b *testing.B) {
	gateway, reference := uncontended(b, 0)
	b.Run("gateway", func(b *testing.B) { repeat(b, gateway) })
	b.Run("reference", func(b *testing.B) { repeat(b, reference) })
}

func repeat(b *testing.B, run pair) {
	b.Helper()
	b.ReportAllocs()
	for b.Loop() {
		if err := run(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkUncontendedRatio measures both sides of the uncontended pair in
// turns, so that what else the machine does falls on both. A map with a single
// name in it does not hash, which flatters the reference; so there is a case
// with more names.
func BenchmarkUncontendedRatio(b *testing.B) {
	for _, others := range []int{0, 1000} {
		b.Run(fmt.Sprintf("others=%d", others), func(b *testing.B) {
			gateway, reference := uncontended(b, others)
			compare(b, gateway, reference)
		})
	}
}

// compare reports the median of the ratio of two pairs' times, and between
// what the middle 80 of 100 rounds were.
func compare(b *testing.B, gateway, reference pair) {
	b.Helper()
	const rounds, pairs = 401, 5_000 // short rounds, since what disturbs them takes milliseconds
	measure := func(run pair) float64 {
		begun := time.Now()
		for range pairs {
			if err := run(); err != nil {
				b.Fatal(err)
			}
		}
		return float64(time.Since(begun)) / pairs
	}
	for b.Loop() {
		var ratios, gateways, references []float64
		for round := range rounds {
			var g, r float64
			if round%2 == 0 {
				g, r = measure(gateway), measure(reference)
			} else {
				r, g = measure(reference), measure(gateway)
			}
			ratios, gateways, references = append(ratios, g/r), append(gateways, g), append(references, r)
		}
		for _, figures := range [][]float64{ratios, gateways, references} {
			slices.Sort(figures)
		}
		b.ReportMetric(ratios[rounds/2], "ratio")
		b.ReportMetric(ratios[rounds/10], "ratio-p10")
		b.ReportMetric(ratios[rounds-1-rounds/10], "ratio-p90")
		b.ReportMetric(gateways[rounds/2], "ns-gateway")
		b.ReportMetric(references[rounds/2], "ns-reference")
	}
}

// contend lets clients take and free slots b.N times altogether.
func contend(b *testing.B, clients int, run pair) {
	b.Helper()
	b.ReportAllocs()
	var left atomic.Int64
	left.Store(int64(b.N))
	var done sync.WaitGroup
	b.ResetTimer()
	for range clients {
		done.Go(func() {
			for left.Add(-1) >= 0 {
				if err := run(); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	done.Wait()
}

func benchmarkContended(b *testing.B, maxValue string, clients int) {
	b.Run("gateway", func(b *testing.B) {
		r := lock.AcquireRequest{Key: uuidKey(b, maxValue, 1), Wait: lock.Forever}
		contend(b, clients, gatewayPair(openBackend(b, memory.Options{}), r))
	})
	b.Run("reference", func(b *testing.B) {
		sem := semaphore.NewWeighted(uuidKey(b, maxValue, 1).Max())
		contend(b, clients, func() error {
			if err := sem.Acquire(context.Background(), 1); err != nil {
				return err
			}
			sem.Release(1)
			return nil
		})
	})
}

func BenchmarkContendedMutex(b *testing.B)     { benchmarkContended(b, "1", 64) }
func BenchmarkContendedSemaphore(b *testing.B) { benchmarkContended(b, "100", 256) }

// BenchmarkHandover hands one slot through a long queue. The time of one
// handover must not depend on how many are queued.
func BenchmarkHandover(b *testing.B) {
	for _, queued := range []int{1_000, 100_000} {
		b.Run(fmt.Sprintf("gateway/queued=%d", queued), func(b *testing.B) {
			backend := openBackend(b, memory.Options{})
			k := uuidKey(b, "1", 1)
			r := lock.AcquireRequest{Key: k, Wait: lock.Forever}
			handOver(b, queued, func() error {
				_, err := backend.Acquire(b.Context(), r)
				return err
			}, func() error {
				_, err := backend.Release(b.Context(), k, "")
				return err
			}, func(n int) {
				for {
					if v, err := backend.Value(b.Context(), k, true); err != nil || v.Waiting == int64(n) {
						return
					}
					runtime.Gosched()
				}
			})
		})
		b.Run(fmt.Sprintf("reference/queued=%d", queued), func(b *testing.B) {
			sem := semaphore.NewWeighted(1)
			// It tells nobody how long its queue is. Started goroutines that
			// had time to run are taken to be queued.
			var started atomic.Int64
			handOver(b, queued, func() error {
				started.Add(1)
				return sem.Acquire(context.Background(), 1)
			}, func() error {
				sem.Release(1)
				return nil
			}, func(n int) {
				for started.Load() <= int64(n) {
					runtime.Gosched()
				}
				started.Store(1)
			})
		})
	}
}

// handOver takes a slot, queues waiters behind it, and measures how long it
// takes until all of them had it, each releasing to the next.
func handOver(b *testing.B, queued int, acquire, release func() error, await func(int)) {
	b.Helper()
	var handing time.Duration
	for b.Loop() {
		b.StopTimer()
		if err := acquire(); err != nil {
			b.Fatal(err)
		}
		var done sync.WaitGroup
		for range queued {
			done.Go(func() {
				if err := errors.Join(acquire(), release()); err != nil {
					b.Error(err)
				}
			})
		}
		await(queued)
		runtime.GC()
		b.StartTimer()
		begun := time.Now()
		if err := release(); err != nil {
			b.Fatal(err)
		}
		done.Wait()
		handing += time.Since(begun)
	}
	b.ReportMetric(float64(handing)/float64(b.N)/float64(queued), "ns/handover")
}

// BenchmarkParallelDistinctKeys has each goroutine use locks of its own.
func BenchmarkParallelDistinctKeys(b *testing.B) {
	keys := make([]lock.Key, 1024)
	for i := range keys {
		keys[i] = uuidKey(b, "1", i)
	}
	var goroutines atomic.Int64
	own := func() []lock.Key {
		const each = 64
		n := int(goroutines.Add(1)-1) * each % len(keys)
		return keys[n : n+each]
	}
	parallel := func(b *testing.B, of func(lock.Key) pair) {
		b.Helper()
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			var pairs []pair
			for _, k := range own() {
				pairs = append(pairs, of(k))
			}
			for i := 0; pb.Next(); i++ {
				if err := pairs[i%len(pairs)](); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	b.Run("gateway", func(b *testing.B) {
		backend := openBackend(b, memory.Options{})
		parallel(b, func(k lock.Key) pair { return gatewayPair(backend, lock.AcquireRequest{Key: k}) })
	})
	b.Run("reference", func(b *testing.B) {
		m := newCountingMap(keys...)
		parallel(b, func(k lock.Key) pair { return referencePair(m, k) })
	})
}

// BenchmarkIdleLock reports the heap that an idle lock takes. The text of its
// id is the backend's own copy and is counted.
func BenchmarkIdleLock(b *testing.B) {
	const locks = 1_000_000
	perLock := func(b *testing.B, fill func() any) {
		b.Helper()
		var most float64
		for b.Loop() {
			before := heapInUse()
			filled := fill()
			most = max(most, float64(heapInUse()-before)/locks)
			runtime.KeepAlive(filled)
		}
		b.ReportMetric(most, "B/lock")
	}
	b.Run("gateway", func(b *testing.B) {
		perLock(b, func() any {
			backend := openBackend(b, memory.Options{})
			useLocks(b, backend, locks)
			return backend
		})
	})
	b.Run("reference", func(b *testing.B) {
		perLock(b, func() any {
			m := newCountingMap()
			for n := range locks {
				m.add(uuidKey(b, "1", n))
			}
			return m
		})
	})
}

// useLocks takes and frees so many locks that were never used before.
func useLocks(tb testing.TB, backend *memory.Backend, locks int) {
	tb.Helper()
	for n := range locks {
		if err := gatewayPair(backend, lock.AcquireRequest{Key: uuidKey(tb, "1", n)})(); err != nil {
			tb.Fatal(err)
		}
	}
}

// heapInUse returns the bytes of live objects.
func heapInUse() int64 {
	runtime.GC()
	runtime.GC() // the first one may leave what finalizers and pools held
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

package main

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// sample is what one round measured.
type sample struct {
	rate float64 // requests per second
	p50  float64 // latency in microseconds
	cpu  float64 // the server's CPU time per request in microseconds
}

// load is a number of clients that work at the same time.
type load struct {
	workers   []*worker
	latencies [][]time.Duration // of the running round, by worker; kept for their room
}

func newLoad(clients int, static, locks site) (*load, error) {
	l := &load{latencies: make([][]time.Duration, clients)}
	for range clients {
		w, err := newWorker(static, locks)
		if err != nil {
			l.close()
			return nil, err
		}
		l.workers = append(l.workers, w)
	}
	return l, nil
}

func (l *load) close() {
	for _, w := range l.workers {
		w.close()
	}
}

// round lets all workers do one workload for a while. The time that counts is
// that until the last of them is done. Pairs are completed.
func (l *load) round(s *server, kind workload, duration time.Duration) (sample, error) {
	var (
		stop   atomic.Bool
		wg     sync.WaitGroup
		errs   = make([]error, len(l.workers))
		timer  = time.AfterFunc(duration, func() { stop.Store(true) })
		cpu    = s.cpuTime()
		begins = time.Now()
	)
	defer timer.Stop()
	for i, w := range l.workers {
		wg.Go(func() { l.latencies[i], errs[i] = w.work(kind, &stop, l.latencies[i][:0]) })
	}
	wg.Wait()
	elapsed, cpu := time.Since(begins), s.cpuTime()-cpu
	if err := errors.Join(errs...); err != nil {
		return sample{}, err
	}
	all := slices.Concat(l.latencies...)
	if len(all) == 0 {
		return sample{}, errors.New("a round has no request")
	}
	slices.Sort(all)
	return sample{
		rate: float64(len(all)) / elapsed.Seconds(),
		p50:  micros(all[len(all)/2]),
		cpu:  micros(cpu) / float64(len(all)),
	}, nil
}

// work is one worker's part of a round. It appends how long each request took.
func (w *worker) work(kind workload, stop *atomic.Bool, latencies []time.Duration) ([]time.Duration, error) {
	last := time.Now()
	for i := 0; i%2 == 1 || !stop.Load(); i++ {
		more, err := w.next(kind, i)
		if !more || err != nil {
			return latencies, err
		}
		now := time.Now()
		latencies = append(latencies, now.Sub(last))
		last = now
	}
	return latencies, nil
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

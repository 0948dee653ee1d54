package main

import (
	"crypto/rand"
	"fmt"
)

// workload is what clients do in a round.
type workload uint8

const (
	control     workload = iota // the same as respond: how far from 1 noise alone gets
	respond                     // requests that Caddy's respond answers
	pairs                       // an acquire and its release, in turn
	acquireOnly                 // acquires of a semaphore that is never full
	releaseOnly                 // releases of what acquireOnly took
	workloads
)

func (w workload) String() string {
	return [...]string{"respond again", "respond", "acquire+release", "acquire alone", "release alone"}[w]
}

// Every request has a path as long as the other's: both servers have as much to
// read.
const (
	mutexMax     = "1"
	semaphoreMax = "9000000000" // so many that no round uses them up
)

// worker is one client of a load: a connection to each site and locks of its
// own.
type worker struct {
	static, locks *client

	ask                            []byte // what respond is asked
	acquireMutex, releaseMutex     []byte
	acquireSemaphore, releaseSlots []byte
	held                           int // slots of the semaphore
}

func newWorker(static, locks site) (*worker, error) {
	w := new(worker)
	var err error
	if w.static, err = dial(static.address); err != nil {
		return nil, err
	}
	if w.locks, err = dial(locks.address); err != nil {
		w.static.close()
		return nil, err
	}
	id := newUUID()
	path := func(maxValue, action string) string { return "/v1/" + maxValue + "/" + id + "/" + action }
	w.ask = requestFor(static.address, path(mutexMax, "acquire"))
	w.acquireMutex = requestFor(locks.address, path(mutexMax, "acquire"))
	w.releaseMutex = requestFor(locks.address, path(mutexMax, "release"))
	w.acquireSemaphore = requestFor(locks.address, path(semaphoreMax, "acquire"))
	w.releaseSlots = requestFor(locks.address, path(semaphoreMax, "release"))
	return w, nil
}

func (w *worker) close() {
	w.static.close()
	w.locks.close()
}

// next does the i-th request of a workload. It reports false when there is
// nothing left to do.
func (w *worker) next(kind workload, i int) (bool, error) {
	switch kind {
	case control, respond:
		return true, w.static.expect(w.ask, acquiredBody)
	case pairs:
		if i%2 == 0 {
			return true, w.locks.expect(w.acquireMutex, acquiredBody)
		}
		return true, w.locks.expect(w.releaseMutex, `{"released":true}`)
	case acquireOnly:
		w.held++
		return true, w.locks.expect(w.acquireSemaphore, `{"acquired":true,`)
	default:
		if w.held == 0 {
			return false, nil
		}
		w.held--
		return true, w.locks.expect(w.releaseSlots, `{"released":true}`)
	}
}

// newUUID returns a random UUID, as clients use for lock ids.
func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

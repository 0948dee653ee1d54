// Package lock says what a distributed lock is: its identity, the operations
// on it, their results and their errors. It knows neither HTTP nor where the
// state lives; it imports the standard library only.
//
// # The lock
//
// A lock is a counting semaphore. Its identity, the [Key], is the pair of its
// maximum and its id. At no time does it have more holders than its maximum.
// Slots are anonymous, or named by a holder; the two kinds share the maximum
// and the queue, and nothing else: an anonymous release never frees a named
// slot, and the other way round.
//
// Requests that cannot be served at once and are willing to wait queue in
// arrival order, and a newcomer never overtakes them. All waiting requests of
// one holder share one place in the queue, which ends with the last of them.
//
// # Writing a backend
//
// A backend implements [Backend] and passes the suite of package
// locktest, which states each promise as a test:
//
//	func TestConformance(t *testing.T) {
//		locktest.Run(t, func(t *testing.T) lock.Backend { return mybackend.New() })
//	}
//
// One that operators can look into implements [Inspector], too, for which there is
// locktest.RunInspector.
//
// The operations on one key are linearizable: each takes effect at one moment
// between its call and its return. A waiting acquire takes effect when it is
// granted.
//
// Every acquire that returns Acquired is one answer that somebody is about to
// be told. The caller, and nobody else, knows whether it arrived. If it did
// not, the caller says so with GiveBack, once per answer. That is not a
// release: it must undo exactly that answer, whatever happened meanwhile. The
// slot may have been released by a stranger, reset, or answered to the same
// holder's retry, and then it is not the caller's to free any more.
package lock

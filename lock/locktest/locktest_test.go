package locktest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lockgateway/lockgateway/lock"
)

func TestNaiveBackendConforms(t *testing.T) {
	Run(t, func(*testing.T) lock.Backend { return newNaive(sound) })
	RunInspector(t, func(*testing.T) Inspected { return newNaive(sound) })
}

// The suite must hold for backends a network away.
func TestSlowBackendConforms(t *testing.T) {
	Run(t, func(*testing.T) lock.Backend { return slow{newNaive(sound)} })
}

// slow answers after a millisecond or two, half of which passes before the
// operation takes effect.
type slow struct{ lock.Backend }

func (slow) delay() {
	time.Sleep(500*time.Microsecond + rand.N(500*time.Microsecond))
}

func (b slow) Acquire(ctx context.Context, r lock.AcquireRequest) (lock.AcquireResult, error) {
	b.delay()
	defer b.delay()
	return b.Backend.Acquire(ctx, r)
}

func (b slow) GiveBack(ctx context.Context, r lock.AcquireRequest, res lock.AcquireResult) error {
	b.delay()
	defer b.delay()
	return b.Backend.GiveBack(ctx, r, res)
}

func (b slow) Release(ctx context.Context, k lock.Key, holder string) (bool, error) {
	b.delay()
	defer b.delay()
	return b.Backend.Release(ctx, k, holder)
}

func (b slow) Value(ctx context.Context, k lock.Key, detail bool) (lock.Value, error) {
	b.delay()
	defer b.delay()
	return b.Backend.Value(ctx, k, detail)
}

func (b slow) Reset(ctx context.Context, k lock.Key) error {
	b.delay()
	defer b.delay()
	return b.Backend.Reset(ctx, k)
}

// Each wrong backend must be caught, by the promise that it breaks.
func TestBrokenBackendsAreCaught(t *testing.T) {
	all := concat(promises, inspectPromises)
	for _, c := range []struct {
		fault  fault
		breaks []string
	}{
		{leaksSlotOnCancel, []string{"B3CancelAtTheGrant"}},
		{losesSlotOfTheGone, []string{"GivenUpPlacesAreSkipped", "TimeOutAnswersNotAcquired"}},
		{lastInFirstOut, []string{"ReleaseHandsSlotToOldestWaiter", "SemaphoreHandsSlotsToTheFirstInTheQueue", "Linearizable"}},
		{overGrants, []string{"AcquireCountsToTheMaximum", "B14DoubleReleaseNeverExceedsMax", "MutualExclusion", "Linearizable"}},
		{forgetsWaitersOnReset, []string{"ResetEndsEveryWait"}},
		{firstDeathFrees, []string{"FirstAnswerDiesLate", "SharedGrantIsHeldByTheLastAnswer"}},
		{repeatDeathFrees, []string{"RepeatDies"}},
		{queuesHolderTwice, []string{"HolderQueuesOnce"}},
		{newcomerOvertakes, []string{"NewcomerNeverOvertakes", "B26ReleaserDoesNotBarge"}},
		{repeatsToken, []string{"TokensStrictlyIncrease", "Linearizable"}},
		{resetsToken, []string{"TokensStrictlyIncrease", "Linearizable"}},
		{ignoresEra, []string{"AnonymousGiveBackOfAReleasedSlot", "GiveBackAfterReset"}},
		{anonymousFreesNamed, []string{"AnonymousReleaseSparesNamed", "Linearizable"}},
		{releasesAnother, []string{"NamedReleaseFreesThatHolder", "B4RepeatedNamedReleaseHarmsNobody", "Linearizable"}},
		{keepsQueued, []string{"ReleaseWithdrawsQueuedRequests"}},
		{repeatTakesSlot, []string{"HolderHasOneSlot", "Linearizable"}},
		{expiresEarly, []string{"SlotFreesItselfNeverEarly"}},
		{countsTTLFromRequest, []string{"B30ClockStartsAtTheGrant"}},
		{neverRenews, []string{"RenewalExtends", "RenewedSlotOutlivesItsFirstTTL"}},
		{staleExpiry, []string{"OldTTLDoesNotEndANewSlot"}},
		{folds, []string{"B8UnrelatedLocksNeverMeet"}},
		{truncatesMaximum, []string{"HugeMaximum"}},
		{placeEndsWithFirst, []string{"SharedPlaceEndsWithTheLast"}},
		{countsBelowZero, []string{"B14DoubleReleaseNeverExceedsMax"}},
		{zeroAfterReset, []string{"ResetFreesAll", "Linearizable"}},
		{drainGrants, []string{"DrainEndsWaitingOnly"}},
		{ignoresWaitersLimit, []string{"WaitersLimit"}},
		{forgetsToTime, []string{"TimeOutAnswersNotAcquired"}},
		{listsIdle, []string{"LocksListsWhatIsHeldOrAwaited"}},
		{leavesOutAwaited, []string{"LocksListsWhatIsHeldOrAwaited"}},
		{listsOn, []string{"LocksEndsWithItsContext"}},
		{sortsQueue, []string{"InspectTellsHoldersAndQueue"}},
		{countsLast, []string{"HeadsAreDatedAnew"}},
		{datesNoHead, []string{"HeadsAreDatedAnew"}},
		{countsGone, []string{"SummaryCountsTheAwaited"}},
		{agesLocks, []string{"HoldsAreOfSlots"}},
		{knowsNobody, []string{"GatewaysKnowThemselves"}},
	} {
		for _, name := range c.breaks {
			t.Run(fmt.Sprintf("%s/%s", c.fault, name), func(t *testing.T) {
				t.Parallel()
				i := slices.IndexFunc(all, func(p promise) bool { return p.name == name })
				if i < 0 {
					t.Fatalf("there is no promise %s", name)
				}
				// Promises about races are broken by chance.
				attempts := 1
				if isAbout(racePromises, name) || isAbout(historyPromises, name) {
					attempts = 25
				}
				failure := ""
				for range attempts {
					if failure == "" {
						failure = failureOf(t, all[i], func() lock.Backend { return newNaive(c.fault) })
					}
				}
				if failure == "" {
					t.Fatalf("a backend that %s passes %s", c.fault, name)
				}
				if !strings.Contains(failure, all[i].text) {
					t.Errorf("the failure does not say which promise is broken: %s", failure)
				}
				t.Log(failure)
			})
		}
	}
}

func isAbout(list []promise, name string) bool {
	return slices.ContainsFunc(list, func(p promise) bool { return p.name == name })
}

// failureOf tests a promise and returns what it failed with.
func failureOf(t *testing.T, p promise, open func() lock.Backend) string {
	t.Helper()
	r := &recorder{}
	done := make(chan struct{})
	go func() { // ends with the test of the promise, or where that fails
		defer close(done)
		p.check(r, open, 2*time.Second)
	}()
	<-done
	for _, f := range slices.Backward(r.cleanups) {
		f()
	}
	return r.failure
}

// recorder is a reporter that keeps the failure.
type recorder struct {
	mu       sync.Mutex
	failure  string
	cleanups []func()
}

func (*recorder) Helper()             {}
func (*recorder) Logf(string, ...any) {}

func (r *recorder) Cleanup(f func()) { r.cleanups = append(r.cleanups, f) }

func (r *recorder) Fatalf(format string, args ...any) {
	r.mu.Lock()
	if r.failure == "" {
		r.failure = fmt.Sprintf(format, args...)
	}
	r.mu.Unlock()
	runtime.Goexit()
}

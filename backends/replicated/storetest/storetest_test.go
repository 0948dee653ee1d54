package storetest

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lockgateway/lockgateway/backends/replicated"
)

func TestMain(m *testing.M) {
	flag.Parse()
	for name, value := range map[string]string{
		"rapid.nofailfile": "true", // properties that are meant to fail leave no files
		"test.parallel":    "16",   // most tests wait most of the time
	} {
		if err := flag.Set(name, value); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

func TestSoundStoreConforms(t *testing.T) {
	Run(t, func(*testing.T) func() replicated.Store { return newFakeData(sound).open }, Fences, AnnouncesSessions)
}

// Each wrong store must be caught, by the promise that it breaks.
func TestBrokenStoresAreCaught(t *testing.T) {
	all := promises(Fences, AnnouncesSessions)
	seen := make(map[string]bool)
	for _, c := range []struct {
		fault  fault
		breaks []string
	}{
		{createsOver, []string{"CreateSparesTheRecord", "OneOfManyCreatesIsApplied"}},
		{ignoresExpect, []string{"RefusedSwapReturnsTheRecord", "OneOfManySwapsIsApplied"}},
		{refusesSilently, []string{"CreateSparesTheRecord", "RefusedSwapReturnsTheRecord"}},
		{inventsRecords, []string{"AbsentRecord"}},
		{writesWhenRefusing, []string{"RefusedSwapChangesNothing"}},
		{movesWhenRefusing, []string{"RefusedSwapChangesNothing"}},
		{forgetsIdleAtOnce, []string{"IdleRecordsStay"}},
		{countsPerKey, []string{"RevisionsRise"}},
		{echoesValue, []string{"CreateMakesTheRecord"}},
		{truncatesValues, []string{"ValuesAreBytes"}},
		{wantsText, []string{"ValuesAreBytes"}},
		{driftsEpoch, []string{"EpochStays"}},
		{readsOld, []string{"CreateMakesTheRecord", "SwapReplacesTheRecord"}},
		{truncatesKeys, []string{"LongestKeys", "KeysNeverMeet"}},
		{foldsKeys, []string{"OddKeys", "KeysNeverMeet"}},
		{cleansKeys, []string{"OddKeys"}},
		{trimsKeys, []string{"OddKeys", "KeysNeverMeet"}},
		{checksThenSwaps, []string{"OneOfManySwapsIsApplied", "OneOfManyCreatesIsApplied", "CounterLosesNothing"}},
		{livesAlone, []string{"GatewaysShareRecords", "GatewaysShareExpiring"}},
		{takesRecordsAlong, []string{"RecordsOutliveTheirGateway"}},
		{neverMissed, []string{"FollowBeginsWithMissed"}},
		{tellsNothing, []string{"FollowTellsOfChanges"}},
		{tellsItself, []string{"FollowTellsOfChanges"}},
		{tellsOld, []string{"FollowTellsOfChanges"}},
		{followsPrefix, []string{"FollowTellsOfItsRecordOnly"}},
		{overlaps, []string{"FollowCallsDoNotOverlap"}},
		{followsOn, []string{"FollowEndsWithItsContext"}},
		{talksAfterClose, []string{"CloseEndsNews"}},
		{repeatsSessionID, []string{"SessionIDsDiffer"}},
		{losesSessions, []string{"SessionLives"}},
		{takesAllForEnded, []string{"SessionLives"}},
		{endsAll, []string{"EndEndsTheSession"}},
		{keepsDoneOpen, []string{"EndEndsTheSession"}},
		{keepsEnded, []string{"EndEndsTheSession", "SessionRunsOut"}},
		{immortalSessions, []string{"SessionRunsOut"}},
		{fencesFuture, []string{"FenceSparesTheLiving"}},
		{failsFence, []string{"FenceSparesTheLiving"}},
		{createsUnderEnded, []string{"EndedSessionCreatesNothing"}},
		{refusesVaguely, []string{"EndedSessionCreatesNothing"}},
		{fencesEnded, []string{"EndedSessionIsNotFenced"}},
		{listsPage, []string{"RecordsListsAll"}},
		{listsNames, []string{"RecordsListsAll"}},
		{listsOldRecords, []string{"RecordsListsAll"}},
		{listsOn, []string{"RecordsStops"}},
		{skipsChanging, []string{"RecordsListsWhatChanges"}},
		{listsEnded, []string{"SessionsListsTheLiving"}},
		{listsOwn, []string{"SessionsListsTheLiving"}},
		{forgetsDescription, []string{"SessionsListsTheLiving"}},
		{announcesNothing, []string{"FollowSessionsTellsOfEnds"}},
		{announcesAll, []string{"FollowSessionsTellsOfEnds"}},
		{announcesOn, []string{"FollowSessionsEndsWithItsContext"}},
		{roundsDown, []string{"ExpiringIsRoundedUp"}},
		{repeatsExpiringID, []string{"ExpiringIsRoundedUp"}},
		{expiresEarly, []string{"ExpiringIsNeverEarly", "RestartExtends"}},
		{overstatesRemaining, []string{"ExpiringIsNeverEarly"}},
		{neverExpires, []string{"ExpiringIsNeverEarly"}},
		{restartsNothing, []string{"RestartExtends"}},
		{revives, []string{"ExpiredForGood"}},
		{expiredVaguely, []string{"ExpiredForGood"}},
		{sortsRemaining, []string{"RemainingKeepsOrder"}},
		{putsOnce, []string{"RefusedSwapPutsNoExpiring"}},
		{discardsNothing, []string{"DiscardRemoves", "GatewaysShareExpiring"}},
		{discardsAll, []string{"DiscardRemoves"}},
		{ignoresContext, []string{"CallsEndWithTheirContext"}},
		{swapsAfterAll, []string{"NotAppliedMeansNever"}},
		{leaksGoroutine, []string{noGoroutines.name}},
		{neverCloses, []string{"CloseEndsNews"}},
	} {
		for _, name := range c.breaks {
			seen[name] = true
			t.Run(fmt.Sprintf("%s/%s", c.fault, name), func(t *testing.T) {
				p := noGoroutines
				if name != p.name {
					t.Parallel() // the search for goroutines bears no others
					i := slices.IndexFunc(all, func(p promise) bool { return p.name == name })
					if i < 0 {
						t.Fatalf("there is no promise %s", name)
					}
					p = all[i]
				}
				failure := failureOf(t, p, c.fault)
				if failure == "" {
					t.Fatalf("a store that %s passes %s", c.fault, name)
				}
				if !strings.Contains(failure, p.text) {
					t.Errorf("the failure does not say which promise is broken: %s", failure)
				}
				t.Log(failure)
			})
		}
	}
	for _, p := range append(all, noGoroutines) {
		if !seen[p.name] {
			t.Errorf("no store is seen to break the promise %s", p.name)
		}
	}
}

// failureOf tests a promise on stores with a fault and returns what it failed
// with.
func failureOf(t *testing.T, p promise, f fault) string {
	t.Helper()
	d := newFakeData(f)
	r := &recorder{}
	done := make(chan struct{})
	go func() { // ends with the test of the promise, or where that fails
		defer close(done)
		p.check(r, d.open, time.Second)
	}()
	<-done
	close(d.stop)
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

package storetest

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/lockgateway/lockgateway/backends/replicated"
)

// fakeData is what the fakes of all gateways share: a plain store in memory
// that keeps every promise, but for the fault.
type fakeData struct {
	fault fault

	mu       sync.Mutex // guards all below
	revision uint64
	lastID   uint64
	records  map[string]replicated.Entry
	old      map[string]replicated.Entry // the records before
	sessions map[replicated.SessionID]*fakeSession
	expiring map[uint64]time.Time
	spoilt   map[uint64]bool // for the fault of keys that are lost
	streams  map[*fakeStream]bool
	stop     chan struct{} // for the fault of goroutines left behind
}

func newFakeData(f fault) *fakeData {
	return &fakeData{
		fault: f, records: make(map[string]replicated.Entry), old: make(map[string]replicated.Entry),
		sessions: make(map[replicated.SessionID]*fakeSession), expiring: make(map[uint64]time.Time),
		spoilt: make(map[uint64]bool), streams: make(map[*fakeStream]bool), stop: make(chan struct{}),
	}
}

// fake is the store of one gateway.
type fake struct {
	*fakeData
	closed  chan struct{}
	running sync.WaitGroup
	opened  []*fakeSession // guarded by mu
}

func (d *fakeData) open() replicated.Store {
	if d.fault == livesAlone {
		d = newFakeData(d.fault)
	}
	return &fake{fakeData: d, closed: make(chan struct{})}
}

// name is what the store makes of a key.
func (d *fakeData) name(key string) string {
	switch d.fault {
	case truncatesKeys:
		return key[:min(len(key), 1000)]
	case foldsKeys:
		return strings.ToLower(key)
	case cleansKeys:
		return path.Clean(key)
	case trimsKeys:
		return strings.TrimSpace(key)
	default:
		return key
	}
}

func (b *fake) context(ctx context.Context) error {
	if ctx.Err() != nil && b.fault == ignoresContext {
		<-b.stop
	}
	return ctx.Err()
}

func (b *fake) Swap(ctx context.Context, s replicated.Swap) (replicated.SwapResult, error) {
	if err := b.context(ctx); err != nil && b.fault != swapsAfterAll {
		return replicated.SwapResult{}, fmt.Errorf("%w: %w", replicated.ErrNotApplied, err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if session := s.Session.(*fakeSession); s.Expect == 0 {
		switch {
		case session.ended && b.fault == refusesVaguely:
			return replicated.SwapResult{}, replicated.ErrSessionEnded
		case session.ended && b.fault != createsUnderEnded:
			return replicated.SwapResult{}, fmt.Errorf("%w: %w", replicated.ErrNotApplied, replicated.ErrSessionEnded)
		case session.fenced:
			return replicated.SwapResult{}, replicated.ErrNotApplied
		}
	}
	k := b.name(s.Key)
	now := b.records[k]
	fits := now.Revision == s.Expect || b.fault == createsOver && s.Expect == 0 || b.fault == ignoresExpect && s.Expect != 0
	if b.fault == checksThenSwaps {
		b.mu.Unlock()
		time.Sleep(time.Millisecond)
		b.mu.Lock()
	}
	if !fits {
		for _, x := range s.Expiring {
			b.spoilt[x.ID] = true
		}
		return replicated.SwapResult{Entry: b.refused(k, s, now)}, nil
	}
	e := replicated.Entry{Value: bytes.Clone(s.Value), Revision: b.next(now.Revision)}
	switch b.fault {
	case truncatesValues:
		e.Value = e.Value[:min(len(e.Value), 32<<10)]
	case wantsText:
		e.Value = bytes.ToValidUTF8(e.Value, []byte("?"))
	default:
	}
	b.old[k], b.records[k] = now, e
	b.announce(b, k)
	if b.fault == forgetsIdleAtOnce && s.Idle {
		delete(b.records, k)
	}
	res := replicated.SwapResult{Applied: true, Entry: replicated.Entry{Revision: e.Revision}}
	if b.fault == echoesValue {
		res.Entry = e
	}
	if err := ctx.Err(); err != nil {
		return replicated.SwapResult{}, fmt.Errorf("%w: %w", replicated.ErrNotApplied, err)
	}
	return res, nil
}

func (d *fakeData) next(last uint64) uint64 {
	if d.fault == countsPerKey {
		return last + 1
	}
	d.revision++
	return d.revision
}

// refused is the record that a refused swap gives. mu is held.
func (d *fakeData) refused(k string, s replicated.Swap, now replicated.Entry) replicated.Entry {
	switch {
	case d.fault == refusesSilently || d.fault == checksThenSwaps:
		return replicated.Entry{}
	case d.fault == inventsRecords && now.Revision == 0:
		return replicated.Entry{Value: s.Value, Revision: s.Expect}
	case d.fault == writesWhenRefusing && now.Revision != 0:
		d.records[k] = replicated.Entry{Value: s.Value, Revision: now.Revision}
	case d.fault == movesWhenRefusing && now.Revision != 0:
		d.records[k] = replicated.Entry{Value: now.Value, Revision: d.next(now.Revision)}
	}
	return now
}

func (b *fake) Get(ctx context.Context, key string) (replicated.Entry, error) {
	if err := b.context(ctx); err != nil {
		return replicated.Entry{}, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.fault == readsOld {
		return b.old[b.name(key)], nil
	}
	return b.records[b.name(key)], nil
}

// Records lists a few records at a time, in the order of their keys.
func (b *fake) Records(ctx context.Context, yield func(string, replicated.Entry) bool) error {
	b.mu.Lock()
	begun := b.revision
	b.mu.Unlock()
	for after, total := "", 0; ; {
		if err := b.context(ctx); err != nil {
			return err
		}
		b.mu.Lock()
		keys := slices.Sorted(maps.Keys(b.records))
		b.mu.Unlock()
		i := sort.SearchStrings(keys, after+"\x00")
		keys = keys[i:min(len(keys), i+10)]
		for _, k := range keys {
			b.mu.Lock()
			e := b.records[k]
			if b.fault == listsOldRecords {
				e = b.old[k]
			}
			b.mu.Unlock()
			after = k
			if b.fault == listsNames {
				k = fmt.Sprintf("%q", k)
			}
			if b.fault == skipsChanging && e.Revision > begun {
				continue
			}
			if e.Revision != 0 && !yield(k, e) && b.fault != listsOn {
				return nil
			}
			if total++; b.fault == listsPage && total == 100 {
				return nil
			}
		}
		if len(keys) < 10 {
			return nil
		}
	}
}

func (*fake) Linearizable() bool { return true }

func (b *fake) Epoch() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.fault == driftsEpoch {
		return b.revision
	}
	return 1
}

func (b *fake) Close() error {
	b.mu.Lock()
	for _, s := range b.opened {
		if b.fault != immortalSessions {
			time.AfterFunc(fakeSessionTTL, s.runOut)
		}
	}
	if b.fault == takesRecordsAlong {
		clear(b.records)
	}
	b.mu.Unlock()
	if b.fault == leaksGoroutine || b.fault == neverCloses {
		go func() { <-b.stop }()
	}
	if b.fault == neverCloses {
		<-b.stop
	}
	if b.fault != talksAfterClose {
		close(b.closed)
		b.running.Wait()
	}
	return nil
}

package replicated_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/lockgateway/lockgateway/backends/replicated"
	"github.com/lockgateway/lockgateway/backends/replicated/hostile"
	"github.com/lockgateway/lockgateway/lock"
)

var (
	stormSeed = flag.Uint64("storm.seed", 0, "the seed of the first storm; 0 is a random one")
	storms    = flag.Int("storm.count", 6, "how many storms of each kind there are")
)

// TestStorm lets clients of three gateways use locks while everything goes
// wrong that may, and checks that what they were told is the history of a
// semaphore, that nobody ever held too much, and that nothing is left behind.
func TestStorm(t *testing.T) {
	first := *stormSeed
	if first == 0 {
		first = rand.Uint64()
	}
	for name, kind := range map[string]hostile.Kind{"Strict": hostile.Strict, "Loose": hostile.Loose} {
		for n := range *storms {
			seed := first + uint64(n)
			t.Run(fmt.Sprintf("%s/seed=%d", name, seed), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { newStorm(t, kind, seed).run() })
			})
		}
	}
}

const (
	stormGateways = 3
	stormClients  = 5
	stormSteps    = 40
)

type storm struct {
	*testing.T
	cluster  *hostile.Cluster
	gateways []*replicated.Backend
	seed     uint64
	begun    time.Time

	mu         sync.Mutex // guards all below
	operations []porcupine.Operation
	holding    map[lock.Key]int64 // by what clients believe
}

func newStorm(t *testing.T, kind hostile.Kind, seed uint64) *storm {
	s := &storm{T: t, seed: seed, begun: time.Now(), holding: make(map[lock.Key]int64)}
	s.cluster = hostile.New(t, hostile.Config{Kind: kind, Seed: seed, Faults: hostile.Storm()})
	for range stormGateways {
		s.gateways = append(s.gateways, replicated.New(s.cluster.Open(), replicated.Options{RequestTimeout: 2 * time.Second}))
	}
	return s
}

func (s *storm) run() {
	defer s.cluster.Close()
	named, anonymous := stormKey(s.T, "2/named"), stormKey(s.T, "2/anonymous")
	leaked := make([]int64, stormClients)
	var clients sync.WaitGroup
	for c := range stormClients {
		clients.Go(func() { s.namedClient(named, c, rand.New(rand.NewPCG(s.seed, uint64(c)))) })
		clients.Go(func() { leaked[c] = s.anonymousClient(anonymous, rand.New(rand.NewPCG(^s.seed, uint64(c)))) })
	}
	clients.Wait()
	s.cluster.SetFaults(hostile.Faults{})

	if verdict := porcupine.CheckOperationsTimeout(stormModel(2), s.operations, time.Minute); verdict != porcupine.Ok {
		for _, op := range s.operations {
			s.Logf("%12d %12d client %d: %+v -> %+v", op.Call, op.Return, op.ClientId, op.Input, op.Output)
		}
		s.Errorf("the history of named holders is not that of a semaphore (%s)", verdict)
	}
	s.nothingLeft(named, 0)
	most := int64(0)
	for _, n := range leaked {
		most += n
	}
	s.nothingLeft(anonymous, most)
	for _, g := range s.gateways {
		if err := g.Close(); err != nil {
			s.Error(err)
		}
	}
}

func stormKey(t *testing.T, name string) lock.Key {
	key, err := lock.ParseKey(name)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func (s *storm) gateway(random *rand.Rand) *replicated.Backend {
	return s.gateways[random.IntN(len(s.gateways))]
}

// believe counts a slot that a client holds, as far as it knows.
func (s *storm) believe(key lock.Key, n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.holding[key] += n; s.holding[key] > key.Max() {
		s.Errorf("%d clients hold %s", s.holding[key], key.Name())
	}
}

// anonymousClient takes and releases slots. It returns how many may be held for
// ever, since it could not know whether they were released.
func (s *storm) anonymousClient(key lock.Key, random *rand.Rand) (leaked int64) {
	for range stormSteps {
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(random.IntN(1000))*time.Millisecond)
		req := lock.AcquireRequest{Key: key, Wait: time.Duration(random.IntN(500)) * time.Millisecond}
		gateway := s.gateway(random)
		res, err := gateway.Acquire(ctx, req)
		cancel()
		if err != nil || !res.Acquired {
			continue // what it may have taken is the gateway's to give back
		}
		s.believe(key, 1)
		time.Sleep(time.Duration(random.IntN(20)) * time.Millisecond)
		s.believe(key, -1)
		if random.IntN(4) == 0 {
			if gateway.GiveBack(context.Background(), req, res) == nil {
				continue
			}
			leaked++ // until the store answers the gateway
			continue
		}
		for {
			_, err := s.gateway(random).Release(context.Background(), key, "")
			if errors.Is(err, lock.ErrUnavailable) {
				continue
			}
			if err != nil {
				leaked++
			}
			break
		}
	}
	return leaked
}

// namedClient takes and releases a slot under its own name, and tries again
// where it cannot know.
func (s *storm) namedClient(key lock.Key, client int, random *rand.Rand) {
	name := fmt.Sprint("client ", client)
	holds := false
	for step := 0; step < stormSteps || holds; step++ {
		switch {
		case random.IntN(8) == 0:
			s.record(client, func() (stormInput, stormOutput) {
				v, err := s.gateway(random).Value(context.Background(), key, false)
				return stormInput{what: "value"}, stormOutput{value: v.Held, err: err}
			})
		case holds:
			s.believe(key, -1)
			holds = false
			for {
				out := s.record(client, func() (stormInput, stormOutput) {
					ok, err := s.gateway(random).Release(context.Background(), key, name)
					return stormInput{what: "release"}, stormOutput{ok: ok, err: err}
				})
				if out.err == nil {
					break
				}
			}
		default:
			out := s.record(client, func() (stormInput, stormOutput) {
				req := lock.AcquireRequest{Key: key, Holder: name}
				if random.IntN(3) > 0 {
					req.Wait = time.Duration(random.IntN(500)) * time.Millisecond
				}
				res, err := s.gateway(random).Acquire(context.Background(), req)
				return stormInput{what: "acquire"}, stormOutput{ok: res.Acquired, token: res.Token, err: err}
			})
			if holds = out.err == nil && out.ok; holds {
				s.believe(key, 1)
				time.Sleep(time.Duration(random.IntN(20)) * time.Millisecond)
			}
		}
	}
	// What a last unknown acquire took is given back, or released here.
	for {
		if _, err := s.gateway(random).Release(context.Background(), key, name); err == nil {
			return
		}
	}
}

// nothingLeft waits until a lock is free, but for slots that may be held for
// ever, and can be taken as often as it should.
func (s *storm) nothingLeft(key lock.Key, leaked int64) {
	var v lock.Value
	for range 300 {
		var err error
		if v, err = s.gateways[0].Value(context.Background(), key, true); err != nil {
			s.Fatal(err)
		}
		if v.Held == 0 && v.Waiting == 0 {
			break
		}
		time.Sleep(time.Second)
	}
	if v.Held > leaked || v.Waiting > 0 {
		s.Errorf("%s: %+v is left; at most %d slots may be", key.Name(), v, leaked)
	}
	if err := s.gateways[1].Reset(context.Background(), key); err != nil {
		s.Fatal(err)
	}
	for n := range key.Max() + 1 {
		res, err := s.gateways[n%stormGateways].Acquire(context.Background(), lock.AcquireRequest{Key: key})
		if err != nil || res.Acquired != (n < key.Max()) {
			s.Fatalf("%s: acquire %d after a reset gave %+v, error %v", key.Name(), n+1, res, err)
		}
	}
}

type stormInput struct {
	what   string
	client int
}

type stormOutput struct {
	ok    bool
	value int64
	token uint64
	err   error
}

// record adds what a call did to the history. What may still happen after the
// answer has no end.
func (s *storm) record(client int, call func() (stormInput, stormOutput)) stormOutput {
	begun := time.Since(s.begun)
	in, out := call()
	ended := time.Since(s.begun)
	in.client = client
	s.mu.Lock()
	defer s.mu.Unlock()
	add := func(what string, until time.Duration) {
		in.what = what
		s.operations = append(s.operations, porcupine.Operation{
			ClientId: len(s.operations), Input: in, Output: out, Call: int64(begun), Return: int64(until),
		})
	}
	switch {
	case out.err == nil && (in.what != "acquire" || out.ok):
		add(in.what, ended)
	case out.err == nil: // there was no slot, or somebody was to have it first
	case errors.Is(out.err, lock.ErrOutcomeUnknown) && in.what == "acquire":
		add("may acquire", math.MaxInt64)
		add("may give back", math.MaxInt64)
	case errors.Is(out.err, lock.ErrOutcomeUnknown) && in.what == "release":
		add("may release", math.MaxInt64)
	case !errors.Is(out.err, lock.ErrUnavailable):
		s.Errorf("%s failed: %v", in.what, out.err)
	}
	return out
}

// stormState is what holders hold.
type stormState struct {
	token [stormClients]uint64 // 0: nothing; 1: a slot whose token nobody was told yet
	told  [stormClients]bool
	last  uint64
}

// stormModel is a semaphore of named holders. Whether a place in the queue was
// fair is not its business.
func stormModel(maxValue int) porcupine.Model {
	step := func(from, in, o any) []any {
		s, i, out := from.(stormState), in.(stormInput), o.(stormOutput)
		c := i.client
		held := 0
		for _, token := range s.token {
			if token != 0 {
				held++
			}
		}
		freed := s
		freed.token[c], freed.told[c] = 0, false
		switch i.what {
		case "value":
			if out.value == int64(held) {
				return []any{s}
			}
		case "release":
			if out.ok == (s.token[c] != 0) {
				return []any{freed}
			}
		case "may release":
			return []any{s, freed}
		case "acquire":
			switch {
			case s.token[c] == 0 && (held == maxValue || out.token <= s.last):
				return nil
			case s.token[c] > 1 && s.token[c] != out.token, s.token[c] == 1 && out.token <= s.last:
				return nil
			}
			s.token[c], s.told[c], s.last = out.token, true, max(s.last, out.token)
			return []any{s}
		case "may acquire":
			taken := s
			if s.token[c] == 0 && held < maxValue {
				taken.token[c] = 1
				return []any{s, taken}
			}
			return []any{s}
		case "may give back":
			if s.token[c] != 0 && !s.told[c] {
				return []any{s, freed}
			}
			return []any{s}
		}
		return nil
	}
	m := porcupine.NondeterministicModel{Init: func() []any { return []any{stormState{}} }, Step: step}
	return m.ToModel()
}

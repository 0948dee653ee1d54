package locktest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/lockgateway/lockgateway/lock"
)

var historyPromises = []promise{
	{"Linearizable", "acquire, release, value and reset on one lock behave as if executed one at a time between request and response", func(s *subject) {
		seed := rand.Uint64() //nolint:gosec // Not a secret.
		s.Logf("seed %d", seed)
		for round := range 20 {
			maxValue := int64(1 + round%3)
			h := &history{key: s.key(fmt.Sprint(maxValue)), begun: time.Now()}
			s.concurrently(historyClients, func(s *subject, client int) {
				random := rand.New(rand.NewPCG(seed, uint64(round*historyClients+client))) //nolint:gosec // Not a secret.
				for range 16 {
					h.step(s, client, random)
				}
			})
			verdict := porcupine.CheckOperationsTimeout(semaphoreModel(maxValue), h.operations, s.patience)
			if verdict != porcupine.Ok {
				s.Logf("history:%s", h)
				s.broken("the history of round %d, seed %d, is not that of a semaphore with a queue (%s)", round, seed, verdict)
			}
		}
	}},
}

const historyClients = 4

// history is what concurrent clients did to one lock and what they were told.
//
// A waiting acquire is two operations of the model, which share its interval:
// it enters the queue, and it gets its outcome.
type history struct {
	key   lock.Key
	begun time.Time

	mu         sync.Mutex
	operations []porcupine.Operation
}

func (h *history) String() string {
	var b strings.Builder
	for _, op := range h.operations {
		fmt.Fprintf(&b, "\n%10d %10d client %d: %+v -> %+v", op.Call, op.Return, op.ClientId, op.Input, op.Output)
	}
	return b.String()
}

// step lets a client do one random thing.
func (h *history) step(s *subject, client int, random *rand.Rand) {
	name := fmt.Sprintf("client %d", client)
	switch n := random.IntN(20); {
	case n < 9:
		r := anonymous(h.key)
		if random.IntN(2) == 0 {
			r.Holder = name
		}
		if random.IntN(3) > 0 {
			r.Wait = upTo(random, 3*time.Millisecond)
		}
		ctx, cancel := context.WithCancel(s.ctx)
		if r.Wait > 0 && random.IntN(4) == 0 {
			ctx, cancel = context.WithTimeout(ctx, upTo(random, 2*time.Millisecond))
		}
		h.acquire(ctx, s, client, r)
		cancel()
	case n < 17:
		in := input{action: doRelease, client: client, holder: -1}
		holder := ""
		if random.IntN(2) == 0 {
			in.holder = random.IntN(historyClients)
			holder = fmt.Sprintf("client %d", in.holder)
		}
		h.record(client, func() ([]input, output) {
			ok, err := s.Release(s.ctx, h.key, holder)
			if err != nil {
				s.broken("release failed: %v", err)
			}
			return []input{in}, output{ok: ok}
		})
	case n < 19:
		h.record(client, func() ([]input, output) {
			v := s.detail(h.key)
			return []input{{action: doValue, client: client}}, output{ok: !v.Fresh, value: v.Held, waiting: v.Waiting}
		})
	default:
		h.record(client, func() ([]input, output) {
			s.reset(h.key)
			return []input{{action: doReset, client: client}}, output{}
		})
	}
}

func (h *history) acquire(ctx context.Context, s *subject, client int, r lock.AcquireRequest) {
	isNamed := r.Holder != ""
	h.record(client, func() ([]input, output) {
		res, err := s.Acquire(ctx, r)
		out := output{ok: res.Acquired, value: res.Value, token: res.Token}
		ways := func(actions ...action) (in []input) {
			for _, a := range actions {
				in = append(in, input{action: a, client: client, named: isNamed})
			}
			return in
		}
		switch {
		case err != nil && (ctx.Err() == nil || !errors.Is(err, ctx.Err())):
			s.broken("acquire failed: %v", err)
			return nil, out
		case err != nil:
			return ways(mayEnter, mayBeGranted, doLeave), output{}
		case r.Wait <= 0:
			return ways(doTry), out
		case res.Acquired:
			return ways(doEnter, doGrant), out
		default:
			return ways(doEnter, doGiveUp), out
		}
	})
}

// record adds what a call did, as one or more operations of the model that
// happened within it.
func (h *history) record(client int, call func() ([]input, output)) {
	begun := time.Since(h.begun)
	inputs, out := call()
	ended := time.Since(h.begun)
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, in := range inputs {
		h.operations = append(h.operations, porcupine.Operation{
			ClientId: client, Input: in, Call: int64(begun), Output: out, Return: int64(ended),
		})
	}
}

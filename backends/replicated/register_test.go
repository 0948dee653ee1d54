package replicated

import "pgregory.net/rapid"

// plainRegister is a store of one record that does what it is told at once.
type plainRegister struct {
	value    []byte
	revision uint64
	clock    uint64 // the last revision given out
}

func (s *plainRegister) entry() Entry { return Entry{Value: s.value, Revision: s.revision} }

func (s *plainRegister) swap(f *flight) SwapResult {
	if f.expect != s.revision {
		return SwapResult{Entry: s.entry()}
	}
	s.clock++
	s.value, s.revision = f.value, s.clock
	return SwapResult{Applied: true, Entry: Entry{Revision: s.revision}}
}

// plainGateway carries out what a core wants.
type plainGateway struct {
	t        rapid.TB
	core     *core
	store    *plainRegister
	requests *uint64 // of all gateways
	number   uint64
}

func newPlainGateway(t rapid.TB, limit int64, linear bool, s SessionID, store *plainRegister) *plainGateway {
	g := &plainGateway{t: t, core: newCore(limit, "", linear), store: store, requests: new(uint64)}
	g.core.session = s
	return g
}

func plainNobodyEnded(SessionID) bool { return false }

func (g *plainGateway) request(k kind, holder string) *request {
	*g.requests++
	r := &request{kind: k, holder: holder, id: *g.requests}
	if holder != "" {
		r.hash = hashName(holder)
	}
	return r
}

// submit makes a request and hands it over.
func (g *plainGateway) submit(k kind, holder string) *request {
	r := g.request(k, holder)
	g.core.add(r)
	return r
}

// plan carries out reads, until there is a swap in flight (sendSwap), requests
// were answered without one (again), or there is nothing to do.
func (g *plainGateway) plan() stepKind {
	for range 1000 {
		g.number++
		w := world{
			number: g.number, random: uint64(g.core.session)<<32 | g.number<<16, now: 1, ended: plainNobodyEnded,
			life: func(uint64) life { return alive }, tooOld: func(*request) bool { return false },
		}
		switch s := g.core.plan(w); s.kind {
		case readRecord:
			if _, err := g.core.readDone(g.store.entry(), s.requests); err != nil {
				g.t.Fatal(err)
			}
		case nothing, again, sendSwap:
			return s.kind
		default:
			g.t.Fatalf("the core wants %+v", s)
		}
	}
	g.t.Fatal("there is no end of reads")
	return nothing
}

// land brings the swap in flight to its end.
func (g *plainGateway) land() (applied bool) {
	res := g.store.swap(g.core.flight)
	if !g.core.swapDone(res, nil, false) {
		g.t.Fatal("a swap was answered and is not settled")
	}
	return res.Applied
}

// work does everything that there is to do.
func (g *plainGateway) work() {
	for range 1000 {
		switch g.plan() {
		case nothing:
			return
		case sendSwap:
			g.land()
		default:
		}
	}
	g.t.Fatal("there is no end of work")
}

// follow shows the gateway the record, as news.
func (g *plainGateway) follow() {
	if err := g.core.learn(g.store.entry(), false); err != nil {
		g.t.Fatal(err)
	}
}

// record returns what the store has.
func (s *plainRegister) record(t rapid.TB) *record {
	t.Helper()
	if s.revision == 0 {
		return &record{fresh: true}
	}
	r, err := decode(s.value, s.revision)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

package gatewaytest_test

import (
	"net/http"
	"testing"

	"github.com/lockgateway/lockgateway/integration/gatewaytest"
	"github.com/lockgateway/lockgateway/integration/relay"
)

func TestMain(m *testing.M) { gatewaytest.Main(m) }

func TestClientReadsEveryAnswer(t *testing.T) {
	t.Parallel()
	g := gatewaytest.Start(t, "gateway", "backend memory")
	if a := g.State(t, "2/a"); a.Value != nil {
		t.Errorf("a lock never used: %v", a)
	}
	first := g.Take(t, "2/a", "")
	named := g.Take(t, "2/a", gatewaytest.Named("h", "ttlMs=600000"))
	if first.Held() != 1 || first.Token != 0 || named.Held() != 2 || named.Token == 0 || named.ExpiresInMs <= 0 {
		t.Errorf("the grants are %v and %v", first, named)
	}
	g.ExpectTaken(t, "2/a", "")
	w := g.Queue(t, "2/a", "", 1)
	w.ExpectWaiting(t)
	if a := g.State(t, "2/a"); a.Held() != 2 || a.Waiting != 1 || len(a.Holders) != 1 || a.Holders[0].Token != named.Token {
		t.Errorf("the state is %v", a)
	}
	g.ExpectRelease(t, "2/a", "", true)
	w.ExpectGrant(t)
	denied := g.Queue(t, "2/a", "", 1)
	g.ExpectReset(t, "2/a")
	denied.ExpectDenied(t)
	g.ExpectRelease(t, "2/a", "", false)
	if a := g.Get(t.Context(), "0/a", "value", ""); a.Status != http.StatusBadRequest || a.Detail == "" || a.OK() || a.Unknown() || a.Refused() {
		t.Errorf("a bad request: %v", a)
	}
}

func TestHangUpClosesTheConnection(t *testing.T) {
	t.Parallel()
	g := gatewaytest.Start(t, "gateway", "backend memory")
	g.Take(t, "1/a", "")
	w := g.Queue(t, "1/a", "", 1)
	if a := w.HangUp(); a.Err == nil {
		t.Errorf("the request was answered: %v", a)
	}
	g.AwaitState(t, "1/a", 1, 0)
}

func TestClientNeverRepeatsARequest(t *testing.T) {
	t.Parallel()
	g := gatewaytest.Start(t, "gateway", "backend memory")
	r := relay.New(t, g.Address())
	c := gatewaytest.NewClient(r.Address())
	c.Take(t, "9/a", "")
	r.LoseAnswers(1)
	if a := c.Acquire(t.Context(), "9/a", ""); !a.Unknown() || a.OK() {
		t.Errorf("the answer was lost, and yet: %v", a)
	}
	g.ExpectState(t, "9/a", 2, 0)
}

func TestGatewayLifeCycle(t *testing.T) {
	t.Parallel()
	g := gatewaytest.Start(t, "gateway", "backend memory")
	g.Take(t, "1/a", "")
	g.Pause(t)
	w := g.Begin(t, "1/a", gatewaytest.ForLong())
	g.Resume(t)
	g.AwaitState(t, "1/a", 1, 1)
	g.Stop(t)
	w.ExpectRefused(t)
	g.Restart(t)
	g.Take(t, "1/a", "")
	g.Kill(t)
	if a := g.Value(t.Context(), "1/a"); !a.Unknown() {
		t.Errorf("a dead gateway: %v", a)
	}
	g.Restart(t)
	g.Take(t, "1/a", "")
}

package observer

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/lockgateway/lockgateway/integration/gatewaytest"
	"github.com/lockgateway/lockgateway/integration/relay"
)

func TestMain(m *testing.M) { gatewaytest.Main(m) }

func TestObserverIsContentWithAGoodGateway(t *testing.T) {
	t.Parallel()
	g := gatewaytest.Start(t, "gateway", "backend memory")
	for _, o := range []*Observer{
		Named("mutex", 1, g.Client),
		Named("semaphore", 3, g.Client),
		Anonymous("mutex-anonymous", 1, g.Client),
		Anonymous("semaphore-anonymous", 3, g.Client),
	} {
		o.Start(t, 6)
		o.AwaitGrants(t, 100)
		o.Stop(t)
	}
}

func TestObserverBearsLostAnswers(t *testing.T) {
	t.Parallel()
	g := gatewaytest.Start(t, "gateway", "backend memory")
	r := relay.New(t, g.Address())
	c := gatewaytest.NewClient(r.Address())
	o := Named("named", 2, c)
	p := Anonymous("anonymous", 100, c)
	o.Start(t, 4)
	p.Start(t, 4)
	for range 10 {
		r.LoseAnswers(3)
		o.AwaitGrants(t, 10)
		p.AwaitGrants(t, 10)
	}
	r.LoseAnswers(0)
	o.Stop(t)
	p.Stop(t)
	if len(o.loose) == 0 && p.unknown == 0 {
		t.Error("no answer was lost")
	}
}

// A gateway that breaks a promise does not get past the observer.
func TestObserverSeesBrokenPromises(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		broken func(n int64) (answer string) // n is another each time
		want   string
	}{
		{"too many holders", func(n int64) string {
			return fmt.Sprintf(`{"acquired":true,"released":true,"value":1,"token":%d}`, n)
		}, "clients hold 1 slots"},
		{"token of another", func(int64) string {
			return `{"acquired":true,"released":true,"value":1,"token":7}`
		}, "both got token 7"},
		{"token that falls", func(n int64) string {
			return fmt.Sprintf(`{"acquired":true,"released":true,"value":1,"token":%d}`, 1<<40-n)
		}, "got token"},
		{"slot lost", func(n int64) string {
			return fmt.Sprintf(`{"acquired":true,"released":false,"value":1,"token":%d}`, n)
		}, "had lost its slot"},
		{"value beyond the slots", func(n int64) string {
			return fmt.Sprintf(`{"acquired":true,"released":true,"value":2,"token":%d}`, n)
		}, "there are 2 holders"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var n atomic.Int64
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				_, _ = fmt.Fprint(w, test.broken(n.Add(1)))
			}))
			defer server.Close()
			o := Named("broken", 1, gatewaytest.NewClient(server.Listener.Addr().String()))
			o.Start(t, 2)
			o.AwaitGrants(t, 20)
			close(o.stop)
			o.workers.Wait()
			if all := strings.Join(o.violations, "\n"); !strings.Contains(all, test.want) {
				t.Errorf("no violation has %q:\n%s", test.want, all)
			}
		})
	}
}

// A waiter is not a holder, whatever the order of answers.
func TestObserverCountsHoldersExactly(t *testing.T) {
	t.Parallel()
	var (
		mu   sync.Mutex
		held bool
		next int
	)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case strings.HasSuffix(r.URL.Path, "/acquire") && !held:
			held = true
			next++
			_, _ = fmt.Fprintf(w, `{"acquired":true,"value":1,"token":%d}`, next)
		case strings.HasSuffix(r.URL.Path, "/acquire"):
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = fmt.Fprint(w, `{"status":503}`)
		default:
			_, _ = fmt.Fprintf(w, `{"released":%t}`, held)
			held = false
		}
	}))
	defer server.Close()
	o := Named("exact", 1, gatewaytest.NewClient(server.Listener.Addr().String()))
	o.Start(t, 4)
	o.AwaitGrants(t, 200)
	close(o.stop)
	o.workers.Wait()
	if len(o.violations) > 0 {
		t.Errorf("violations: %v", o.violations)
	}
}

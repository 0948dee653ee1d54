package integration_test
import ("testing";"time"
"github.com/lockgateway/lockgateway/integration/natstest"
"github.com/lockgateway/lockgateway/integration/relay"
"github.com/lockgateway/lockgateway/lock"
)
func TestZZ(t *testing.T) {
	cluster := natstest.Start(t, natstest.Options{})
	line := relay.New(t, cluster.Members()[0].Address())
	a := natsGateway(t, "nats://"+line.Address())
	key := natsKey(t, "a")
	take(t, a, key)
	line.Stall()
	b := time.Now()
	_, err := a.Release(t.Context(), key, "")
	t.Log("release", err, time.Since(b))
	cluster.JetStream(t).DeleteStream(t.Context(), natsStream)
	line.Heal()
	for range 6 {
		b = time.Now()
		res, err := a.Acquire(t.Context(), lock.AcquireRequest{Key: key, Wait: time.Second})
		t.Log(res, err, time.Since(b))
	}
	b = time.Now()
	res, err := a.Acquire(t.Context(), lock.AcquireRequest{Key: natsKey(t, "b"), Wait: time.Second})
	t.Log("other lock", res, err, time.Since(b))
}

package integration_test

import (
	"strings"
	"testing"

	"github.com/lockgateway/lockgateway/integration/etcdtest"
	"github.com/lockgateway/lockgateway/integration/gatewaytest"
)

// What is under the prefix and is no record of ours is left alone, and said to
// whoever asks for that lock. Other locks go on.
func TestForeignRecord(t *testing.T) {
	t.Parallel()
	etcd := etcdtest.Start(t, etcdtest.Options{})
	gateways := startGateways(t, 2, patient, etcdCluster{etcd})
	const key, value = prefix + "/locks/1/foreign", "not a record"
	if _, err := etcd.Client().Put(t.Context(), key, value); err != nil {
		t.Fatal(err)
	}
	for _, g := range gateways {
		for _, a := range []gatewaytest.Answer{
			g.Acquire(t.Context(), "1/foreign", ""),
			g.Acquire(t.Context(), "1/foreign", gatewaytest.ForLong()),
			g.Release(t.Context(), "1/foreign", ""),
			g.Value(t.Context(), "1/foreign"),
			g.Reset(t.Context(), "1/foreign"),
		} {
			if !a.Refused() || !strings.Contains(a.Detail, "1/foreign") {
				t.Errorf("the answer is %v; want 503 that names the record", a)
			}
		}
	}
	got, err := etcd.Client().Get(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Kvs) != 1 || string(got.Kvs[0].Value) != value {
		t.Errorf("the foreign record is %v now", got.Kvs)
	}
	gateways[0].Take(t, "1/mine", "")
	for _, g := range gateways {
		if n := strings.Count(g.Output(t), "cannot be read"); n != 1 {
			t.Errorf("the log says it %d times; want once", n)
		}
	}
	if _, err := etcd.Client().Delete(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	gateways[1].Take(t, "1/foreign", "")
}

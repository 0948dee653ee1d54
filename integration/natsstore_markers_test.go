package integration_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"github.com/lockgateway/lockgateway/integration/natstest"
	"github.com/lockgateway/lockgateway/integration/process"
)

// With a TTL for delete markers, what the servers put in place of a key that has
// expired can destroy a write that was made and acknowledged in between. That is why
// such a bucket is refused. In ours nothing is lost, though keys expire there, too.
func TestNATSDeleteMarkersDestroyWritesAndOursDoNot(t *testing.T) {
	t.Parallel()
	cluster := natstest.StartCluster(t, 3, natstest.Options{})
	js := cluster.JetStream(t)
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()

	const marked = "marked"
	if _, err := js.CreateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: marked, Replicas: 3, LimitMarkerTTL: time.Minute}); err != nil {
		t.Fatal(err)
	}
	lost, taken := 0, 0
	for begun := time.Now(); lost == 0 && time.Since(begun) < time.Minute; {
		l, n := writeOverExpiry(ctx, t, js, marked, rand.Text())
		lost, taken = lost+l, taken+n
	}
	if lost > 0 {
		t.Logf("with delete markers %d of %d acknowledged writes were lost", lost, taken)
	} else {
		t.Logf("with delete markers none of %d acknowledged writes was lost within a minute; it is a matter of luck", taken)
	}

	openNATSSession(t, natsOptions(cluster.URLs()...)) // makes the bucket
	lost, enough := 0, max(3000, min(taken, 10_000))
	taken = 0
	for begun := time.Now(); taken < enough && time.Since(begun) < time.Minute; {
		l, n := writeOverExpiry(ctx, t, js, natsBucket, rand.Text())
		lost, taken = lost+l, taken+n
	}
	t.Logf("in a bucket of ours %d of %d acknowledged writes were lost", lost, taken)
	if lost > 0 || taken == 0 {
		t.Errorf("%d of %d acknowledged writes were lost", lost, taken)
	}
}

// writeOverExpiry makes keys that live for a second, writes each for good at about
// the time when it expires, and returns how many of the writes that were acknowledged
// are not there afterwards.
func writeOverExpiry(ctx context.Context, t *testing.T, js jetstream.JetStream, bucket, batch string) (lost, taken int) {
	t.Helper()
	const keys = 400
	subject := func(i int) string { return fmt.Sprintf("$KV.%s.locks.%s-%d", bucket, batch, i) }
	var sequences, written [keys]uint64
	begun := time.Now()
	all(t, keys, func(i int) error {
		ack, err := js.PublishMsg(ctx, &nats.Msg{Subject: subject(i), Header: nats.Header{nats.MsgTTLHdr: {"1"}}})
		if err == nil {
			sequences[i] = ack.Sequence
		}
		return err
	})
	time.Sleep(time.Until(begun.Add(time.Second + time.Duration(mathrand.IntN(300))*time.Millisecond)))
	all(t, keys, func(i int) error {
		m := &nats.Msg{Subject: subject(i), Data: []byte("written"), Header: nats.Header{}}
		m.Header.Set(nats.ExpectedLastSubjSeqHdr, fmt.Sprint(sequences[i]))
		ack, err := js.PublishMsg(ctx, m)
		var refusal *jetstream.APIError
		switch {
		case err == nil:
			written[i] = ack.Sequence
		case errors.As(err, &refusal): // it has expired
			return nil
		}
		return err
	})
	time.Sleep(500 * time.Millisecond) // until all markers are there
	for i := range keys {
		if written[i] == 0 {
			continue
		}
		taken++
		if !leaderHas(t, js.Conn(), bucket, written[i]) {
			lost++
		}
	}
	return lost, taken
}

// leaderHas reports whether a bucket has a message. Its leader is asked; others may
// not have heard of it yet.
func leaderHas(t *testing.T, conn *nats.Conn, bucket string, sequence uint64) bool {
	t.Helper()
	answer, err := conn.Request("$JS.API.STREAM.MSG.GET.KV_"+bucket, fmt.Appendf(nil, `{"seq":%d}`, sequence), process.Soon)
	if err != nil {
		t.Fatal(err)
	}
	var reply struct {
		Error   *jetstream.APIError
		Message *struct{}
	}
	if err := json.Unmarshal(answer.Data, &reply); err != nil {
		t.Fatal(err)
	}
	if reply.Error != nil && reply.Error.ErrorCode != jetstream.JSErrCodeMessageNotFound {
		t.Fatal(reply.Error)
	}
	return reply.Message != nil
}

// all calls f for each of n, many at a time.
func all(t *testing.T, n int, f func(i int) error) {
	t.Helper()
	var group errgroup.Group
	group.SetLimit(64)
	for i := range n {
		group.Go(func() error { return f(i) })
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
}

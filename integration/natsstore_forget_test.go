package integration_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/lockgateway/lockgateway/backends/replicated"
	"github.com/lockgateway/lockgateway/integration/natstest"
	"github.com/lockgateway/lockgateway/integration/process"
)

// Idle records are forgotten, by whichever gateway there is, and nothing stays
// behind: neither of them nor of keys that expired or were removed.
func TestNATSStoreLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	for _, servers := range []int{1, 3} {
		t.Run(fmt.Sprint(servers), func(t *testing.T) {
			t.Parallel()
			cluster := natstest.StartCluster(t, servers, natstest.Options{})
			o := natsOptions(cluster.URLs()...)
			o.ForgetAfter = time.Hour
			first := openNATSSession(t, o)
			const many = 100 // several times what is removed at once
			for i := range many {
				first.apply(replicated.Swap{Key: fmt.Sprint("idle ", i), Value: []byte("a"), Idle: true})
			}
			held := first.create("held")
			var ids []uint64
			for range 20 {
				x, err := first.NewExpiring(first.ctx, time.Hour)
				first.must(err)
				ids = append(ids, x.ID)
			}
			process.Await(t, "the keys are gone that nobody needs", func() bool {
				first.Discard(ids...) // what failed is not tried again by itself
				left, err := first.Remaining(first.ctx, ids)
				return err == nil && slices.Max(left) == 0
			})
			short, err := first.NewExpiring(first.ctx, time.Second)
			first.must(err)
			process.Await(t, "a key has expired", func() bool {
				left, err := first.Remaining(first.ctx, []uint64{short.ID})
				return err == nil && left[0] == 0
			})
			first.must(first.session.End(first.ctx))
			first.must(first.Close())

			// Another one, which has less patience.
			o.ForgetAfter = time.Second
			s := openNATSSession(t, o)
			stream, err := cluster.JetStream(t).Stream(s.ctx, natsStream)
			s.must(err)
			// The record that is held, the session, and now and then whose turn it is.
			process.Await(t, "nothing is left", func() bool {
				info, err := stream.Info(s.ctx)
				return err == nil && info.State.Msgs <= 3
			})
			if got := s.get("held"); got.Revision != held.Revision {
				t.Errorf("the record that is held has revision %d; want %d", got.Revision, held.Revision)
			}
			if got := s.get("idle 7"); got.Revision != 0 {
				t.Errorf("an idle record is there: %+v", got)
			}
			s.create("idle 7")
		})
	}
}

// Where a user may not read pages, idle records are read one at a time.
func TestNATSStoreForgetsWithoutPages(t *testing.T) {
	t.Parallel()
	cluster := natstest.Start(t, natstest.Options{Operator: true, Bucket: natsBucket})
	o := natsOptions(cluster.URLs()...)
	o.Credentials, o.ForgetAfter = cluster.Credentials, time.Second
	s := openNATSSession(t, o)
	s.create("used")
	for i := range 20 {
		s.apply(replicated.Swap{Key: fmt.Sprint("idle ", i), Value: []byte("a"), Idle: true})
	}
	process.Await(t, "the records are forgotten", func() bool {
		for i := range 20 {
			if s.get(fmt.Sprint("idle ", i)).Revision != 0 {
				return false
			}
		}
		return true
	})
	if s.get("used").Revision == 0 {
		t.Error("a record that is used was forgotten")
	}
}

// A record can be created over what stands for the one that was forgotten, and one
// that is used again is not forgotten.
func TestNATSStoreCreatesOverWhatWasForgotten(t *testing.T) {
	t.Parallel()
	o := natsOptions(natstest.Start(t, natstest.Options{}).URLs()...)
	o.ForgetAfter = time.Second
	s := openNATSSession(t, o)
	e := s.apply(replicated.Swap{Key: "a", Value: []byte("a"), Idle: true})
	used := s.apply(replicated.Swap{Key: "b", Value: []byte("a"), Idle: true})
	used = s.apply(replicated.Swap{Key: "b", Expect: used.Revision, Value: []byte("used")})
	process.Await(t, "the record is forgotten", func() bool { return s.get("a").Revision == 0 })
	// What stands for it is still there.
	if res, err := s.swapWithin(process.Soon, replicated.Swap{Key: "a", Expect: e.Revision, Value: []byte("b")}); err != nil || res.Applied || res.Entry.Revision != 0 {
		t.Errorf("a swap of a record that was forgotten gave %+v, error %v", res, err)
	}
	if again := s.create("a"); again.Revision <= e.Revision {
		t.Errorf("the record that was created anew has revision %d, after %d", again.Revision, e.Revision)
	}
	if got := s.get("b"); got.Revision != used.Revision {
		t.Errorf("a record that is used has revision %d; want %d", got.Revision, used.Revision)
	}
}

package caddymodule

import (
	"bytes"
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/lockgateway/lockgateway/lock"
)

// halfShown is an inspector that leaves out a part of very long lists.
type halfShown struct{ lock.Inspector }

func (halfShown) Inspect(_ context.Context, key lock.Key) (lock.Detail, error) {
	return lock.Detail{
		State: lock.State{Key: key, Held: 10, Waiting: 9}, Anonymous: 3, Holders: make([]lock.HolderDetail, 2),
		Queue: []lock.QueueEntry{{Count: 4}, {Count: 1, Named: true}},
	}, nil
}

func TestDetailTellsHowMuchIsLeftOut(t *testing.T) {
	r := &http.Request{Form: url.Values{"lock": {"10/a"}}}
	answer, err := adminLock(r, &openBackend{ID: "memory", inspector: halfShown{}})
	if err != nil {
		t.Fatal(err)
	}
	a := answer.(detailJSON)
	if a.MoreHolders != 5 || a.MorePlaces != 4 {
		t.Errorf("%d holders and %d places are said to be left out; want 5 and 4", a.MoreHolders, a.MorePlaces)
	}
	var out bytes.Buffer
	if err := printDetail(&out, a); err != nil || !strings.Contains(out.String(), "(5 more)") || !strings.Contains(out.String(), "(4 more)") {
		t.Errorf("the detail is printed as %v\n%s", err, out.String())
	}
}

package etcd

import (
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

func answer(cluster uint64, revision int64) *pb.ResponseHeader {
	return &pb.ResponseHeader{ClusterId: cluster, Revision: revision}
}

func TestEpochStaysWhileRevisionsRise(t *testing.T) {
	var h history
	for _, revision := range []int64{5, 5, 7, 1000} {
		if !h.check(h.begin(), answer(1, revision)) {
			t.Errorf("revision %d was taken for another history", revision)
		}
	}
	if h.now() != 0 {
		t.Error("the epoch has changed")
	}
}

func TestEpochChangesWithTheCluster(t *testing.T) {
	var h history
	h.check(h.begin(), answer(1, 5))
	if h.check(h.begin(), answer(2, 50)) || h.now() != 1 {
		t.Error("another cluster was not noticed")
	}
	if !h.check(h.begin(), answer(2, 50)) {
		t.Error("the other cluster was not accepted")
	}
}

func TestEpochChangesWhenTheRevisionFalls(t *testing.T) {
	var h history
	h.check(h.begin(), answer(1, 50))
	if h.check(h.begin(), answer(1, 49)) || h.now() != 1 {
		t.Error("an earlier state was not noticed")
	}
	if !h.check(h.begin(), answer(1, 49)) || h.now() != 1 {
		t.Error("the earlier state was not accepted")
	}
}

func TestAnswersOfOverlappingCallsComeInAnyOrder(t *testing.T) {
	var h history
	h.check(h.begin(), answer(1, 10))
	early, late := h.begin(), h.begin()
	if !h.check(late, answer(1, 12)) || !h.check(early, answer(1, 11)) || h.now() != 0 {
		t.Error("an answer that was overtaken was taken for another history")
	}
	if h.check(h.begin(), answer(1, 11)) {
		t.Error("the highest revision was forgotten")
	}
}

func TestAnswersOfAnEarlierEpochProveNothing(t *testing.T) {
	var h history
	h.check(h.begin(), answer(1, 50))
	before := h.begin()
	h.check(h.begin(), answer(1, 10)) // restored
	if h.check(before, answer(1, 51)) {
		t.Error("the answer to a call from before the change was trusted")
	}
	if !h.check(h.begin(), answer(1, 11)) || h.now() != 1 {
		t.Error("the answer to a call from before the change has changed something")
	}
}

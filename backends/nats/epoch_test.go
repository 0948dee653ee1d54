package nats

import (
	"testing"
	"time"
)

var made = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func TestEpochStaysWhileSequencesRise(t *testing.T) {
	var h history
	h.saw(h.begin(), made, 4, false)
	for _, sequence := range []uint64{5, 6, 7, 1000} {
		if !h.wrote(h.begin(), sequence) {
			t.Errorf("sequence %d was taken for another history", sequence)
		}
	}
	if another, doubtful := h.saw(h.begin(), made, 1000, false); another || doubtful || h.now() != 0 {
		t.Error("the epoch has changed")
	}
}

func TestEpochChangesWithTheStream(t *testing.T) {
	var h history
	h.saw(h.begin(), made, 5, false)
	if another, _ := h.saw(h.begin(), made.Add(time.Hour), 3, false); !another || h.now() != 1 {
		t.Error("another stream was not noticed")
	}
	if another, doubtful := h.saw(h.begin(), made.Add(time.Hour), 50, false); another || doubtful || !h.wrote(h.begin(), 51) {
		t.Error("the other stream was not accepted")
	}
}

func TestEpochChangesWhenTheEndIsLost(t *testing.T) {
	for name, look := range map[string]func(h *history) bool{
		"Wrote": func(h *history) bool { return !h.wrote(h.begin(), 50) },
		"SawBefore": func(h *history) bool {
			another, doubtful := h.saw(h.begin(), made, 49, true)
			return another && !doubtful
		},
	} {
		t.Run(name, func(t *testing.T) {
			var h history
			h.saw(h.begin(), made, 50, true)
			if !look(&h) || h.now() != 1 {
				t.Error("an earlier state was not noticed")
			}
			if !h.wrote(h.begin(), 51) || h.now() != 1 {
				t.Error("the earlier state was not accepted")
			}
		})
	}
}

// Of several servers one may be deposed and not know.
func TestEarlierSequenceOfSeveralServersIsInDoubt(t *testing.T) {
	var h history
	h.saw(h.begin(), made, 50, false)
	if another, doubtful := h.saw(h.begin(), made, 49, false); another || !doubtful || h.now() != 0 {
		t.Errorf("it was taken for another history: %v, or not to be in doubt: %v", another, doubtful)
	}
	if h.wrote(h.begin(), 50) || h.now() != 1 {
		t.Error("what was in doubt was not decided by a message")
	}
}

func TestAnswersOfOverlappingCallsComeInAnyOrder(t *testing.T) {
	var h history
	h.wrote(h.begin(), 10)
	early, late := h.begin(), h.begin()
	if !h.wrote(late, 12) || !h.wrote(early, 11) || h.now() != 0 {
		t.Error("an answer that was overtaken was taken for another history")
	}
	if h.wrote(h.begin(), 12) {
		t.Error("the highest sequence was forgotten")
	}
}

func TestAnswersOfAnEarlierEpochProveNothing(t *testing.T) {
	var h history
	h.wrote(h.begin(), 50)
	before := h.begin()
	h.wrote(h.begin(), 10) // the end was lost
	if another, doubtful := h.saw(before, made, 3, false); another || doubtful || h.wrote(before, 51) {
		t.Error("the answer to a call from before the change was trusted")
	}
	if !h.wrote(h.begin(), 11) || h.now() != 1 {
		t.Error("the answer to a call from before the change has changed something")
	}
}

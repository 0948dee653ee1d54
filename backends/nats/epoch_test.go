package nats

import (
	"testing"
	"time"
)

var made = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func TestEpochStaysWhileSequencesRise(t *testing.T) {
	var h history
	h.saw(h.begin(), made, 4)
	for _, sequence := range []uint64{5, 6, 7, 1000} {
		if !h.wrote(h.begin(), sequence) {
			t.Errorf("sequence %d was taken for another history", sequence)
		}
	}
	if h.saw(h.begin(), made, 1000) || h.now() != 0 {
		t.Error("the epoch has changed")
	}
}

func TestEpochChangesWithTheStream(t *testing.T) {
	var h history
	h.saw(h.begin(), made, 5)
	if !h.saw(h.begin(), made.Add(time.Hour), 50) || h.now() != 1 {
		t.Error("another stream was not noticed")
	}
	if h.saw(h.begin(), made.Add(time.Hour), 50) || !h.wrote(h.begin(), 51) {
		t.Error("the other stream was not accepted")
	}
}

func TestEpochChangesWhenTheEndIsLost(t *testing.T) {
	for name, look := range map[string]func(h *history) bool{
		"Wrote":     func(h *history) bool { return !h.wrote(h.begin(), 50) },
		"SawBefore": func(h *history) bool { return h.saw(h.begin(), made, 49) },
	} {
		t.Run(name, func(t *testing.T) {
			var h history
			h.saw(h.begin(), made, 50)
			if !look(&h) || h.now() != 1 {
				t.Error("an earlier state was not noticed")
			}
			if !h.wrote(h.begin(), 51) || h.now() != 1 {
				t.Error("the earlier state was not accepted")
			}
		})
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
	if h.wrote(before, 51) || h.saw(before, made, 3) {
		t.Error("the answer to a call from before the change was trusted")
	}
	if !h.wrote(h.begin(), 11) || h.now() != 1 {
		t.Error("the answer to a call from before the change has changed something")
	}
}

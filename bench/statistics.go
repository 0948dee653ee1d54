package main

import (
	"fmt"
	"slices"
)

// spread is the median of some values and their quartiles.
type spread struct{ low, median, high float64 }

func spreadOf(values []float64) spread {
	sorted := slices.Sorted(slices.Values(values))
	return spread{quantile(sorted, 0.25), quantile(sorted, 0.5), quantile(sorted, 0.75)}
}

// quantile interpolates between the two values next to it.
func quantile(sorted []float64, q float64) float64 {
	at := q * float64(len(sorted)-1)
	i := int(at)
	if i+1 == len(sorted) {
		return sorted[i]
	}
	return sorted[i] + (at-float64(i))*(sorted[i+1]-sorted[i])
}

func (s spread) String() string {
	return fmt.Sprintf("%.3f (%.3f to %.3f)", s.median, s.low, s.high)
}

func verdict(met bool) string {
	if met {
		return "met"
	}
	return "missed"
}

// goal is a bound of a ratio. The zero goal is none.
type goal struct {
	text string
	met  func(ratio float64) bool
}

func atLeast(bound float64) goal {
	return goal{fmt.Sprintf(">= %.3g", bound), func(r float64) bool { return r >= bound }}
}

func atMost(bound float64) goal {
	return goal{fmt.Sprintf("<= %.3g", bound), func(r float64) bool { return r <= bound }}
}

// judge says what the goal is and whether a ratio meets it.
func (g goal) judge(ratio float64) string {
	if g.met == nil {
		return ""
	}
	return g.text + " " + verdict(g.met(ratio))
}

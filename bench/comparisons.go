package main

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// cycle is what every cell measured in one pass through an experiment.
type cycle map[*cell]result

// quantity is a number of a cycle, with the name of the cell that has it.
type quantity struct {
	name string
	in   func(cycle) float64
}

func (c *cell) quantity(of func(result) float64) quantity {
	return quantity{c.name, func(all cycle) float64 { return of(all[c]) }}
}

func (c *cell) operations() quantity { return c.quantity(func(r result) float64 { return r.rate }) }
func (c *cell) pairs() quantity      { return c.quantity(func(r result) float64 { return r.rate / 2 }) }
func (c *cell) p50() quantity        { return c.quantity(func(r result) float64 { return r.p50 }) }
func (c *cell) clientCPU() quantity  { return c.quantity(func(r result) float64 { return r.clientCPU }) }
func (c *cell) serverCPU() quantity  { return c.quantity(func(r result) float64 { return r.serverCPU }) }

// half is for each operation what q is for each pair.
func (q quantity) half() quantity {
	return quantity{q.name, func(all cycle) float64 { return q.in(all) / 2 }}
}

// What the gateways ask of the store, for each pair.
func (c *cell) swaps() quantity { return c.quantity(func(r result) float64 { return 2 * r.swaps }) }
func (c *cell) refusals() quantity {
	return c.quantity(func(r result) float64 { return 2 * r.refusals })
}
func (c *cell) reads() quantity { return c.quantity(func(r result) float64 { return 2 * r.reads }) }

func constant(name string, value float64) quantity {
	return quantity{name, func(cycle) float64 { return value }}
}

// nothing is what a number is compared with that speaks for itself.
var nothing = constant("", 1)

// row compares two quantities of the same cycle.
type row struct {
	measure        string
	value, against quantity
	goal           goal // of the ratio
}

// run measures an experiment's cells in turn, forwards and backwards.
func (e *experiment) run(ctx context.Context, g *ground, rounds int, duration time.Duration) ([]cycle, error) {
	// Records are created, watches opened and buffers made in a first cycle.
	if _, err := e.cycle(ctx, g, false, duration); err != nil {
		return nil, err
	}
	var cycles []cycle
	for i := range rounds {
		c, err := e.cycle(ctx, g, i%2 == 1, duration)
		if err != nil {
			return nil, err
		}
		cycles = append(cycles, c)
	}
	return cycles, nil
}

func (e *experiment) cycle(ctx context.Context, g *ground, backwards bool, duration time.Duration) (cycle, error) {
	all := make(cycle)
	for i := range e.cells {
		if backwards {
			i = len(e.cells) - 1 - i
		}
		got, err := e.cells[i].round(ctx, g.store, duration)
		if err != nil {
			return nil, err
		}
		all[e.cells[i]] = got
	}
	return all, g.store.tidy(ctx)
}

// report writes the table of an experiment.
func (e *experiment) report(to io.Writer, title string, cycles []cycle) error {
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "%s\tmeasure\tmeasured\tagainst\t\tratio\tgoal\t\n", title)
	for _, r := range e.rows {
		var values, others, ratios []float64
		for _, c := range cycles {
			value, other := r.value.in(c), r.against.in(c)
			values, others, ratios = append(values, value), append(others, other), append(ratios, value/other)
		}
		ratio, against := spreadOf(ratios), ""
		if r.against.name != "" {
			against = number(spreadOf(others).median)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%v\t%s\t\n", r.value.name, r.measure, number(spreadOf(values).median),
			r.against.name, against, ratio, r.goal.judge(ratio.median))
	}
	return table.Flush()
}

// number has as many digits as mean something.
func number(x float64) string {
	if x < 10 {
		return fmt.Sprintf("%.3f", x)
	}
	return fmt.Sprintf("%.0f", x)
}

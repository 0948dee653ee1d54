package monitoring_test

import (
	"errors"
	"io"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/util/annotations"

	"github.com/lockgateway/lockgateway/integration/gatewaytest"
)

var promQL = parser.NewParser(parser.Options{})

// history is what Prometheus knows after some scrapes, a minute apart by its clock.
type history struct {
	engine *promql.Engine
	now    time.Time
	all    []series
}

// series is one with all its samples.
type series struct {
	labels  labels.Labels
	samples *chunkenc.XORChunk
}

func newHistory(t *testing.T) *history {
	t.Helper()
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 1e6, Timeout: time.Minute, Parser: promQL})
	t.Cleanup(func() { _ = engine.Close() })
	return &history{engine: engine, now: time.Unix(0, 0)}
}

// scrape scrapes all gateways, and adds what Prometheus itself adds.
func (h *history) scrape(t *testing.T, gateways ...*gatewaytest.Gateway) {
	t.Helper()
	h.now = h.now.Add(time.Minute)
	for _, g := range gateways {
		h.add(t, labels.FromStrings(model.MetricNameLabel, "up"), g, 1)
		p := textparse.NewPromParser(g.Metrics(t), labels.NewSymbolTable(), false)
		for {
			entry, err := p.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal("what a gateway tells Prometheus:", err)
			}
			if entry == textparse.EntrySeries {
				var l labels.Labels
				p.Labels(&l)
				_, _, value := p.Series()
				h.add(t, l, g, value)
			}
		}
	}
}

// add adds a sample of a gateway.
func (h *history) add(t *testing.T, l labels.Labels, from *gatewaytest.Gateway, value float64) {
	t.Helper()
	b := labels.NewBuilder(l)
	b.Set("job", "lock-gateway")
	b.Set("instance", from.Address())
	l = b.Labels()
	i := slices.IndexFunc(h.all, func(s series) bool { return labels.Equal(s.labels, l) })
	if i < 0 {
		i = len(h.all)
		h.all = append(h.all, series{labels: l, samples: chunkenc.NewXORChunk()})
	}
	to, err := h.all[i].samples.Appender()
	if err != nil {
		t.Fatal(err)
	}
	to.Append(0, h.now.UnixMilli(), value)
}

// query evaluates a query now.
func (h *history) query(t *testing.T, text string) promql.Vector {
	t.Helper()
	q, err := h.engine.NewInstantQuery(t.Context(), h, nil, text, h.now)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	defer q.Close()
	v, err := q.Exec(t.Context()).Vector()
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return slices.Clone(v)
}

// values returns the values of a label over all series.
func (h *history) values(label string) map[string]bool {
	found := make(map[string]bool)
	for _, s := range h.all {
		found[s.labels.Get(label)] = true
	}
	return found
}

// Querier implements storage.Queryable.
func (h *history) Querier(_, _ int64) (storage.Querier, error) {
	return &storage.MockQuerier{SelectMockFunction: h.find}, nil
}

func (h *history) find(_ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	found := &seriesSet{at: -1}
	for _, s := range h.all {
		if !slices.ContainsFunc(matchers, func(m *labels.Matcher) bool { return !m.Matches(s.labels.Get(m.Name)) }) {
			found.series = append(found.series, &storage.SeriesEntry{Lset: s.labels, SampleIteratorFn: s.samples.Iterator})
		}
	}
	return found
}

// seriesSet implements storage.SeriesSet.
type seriesSet struct {
	series []storage.Series
	at     int
}

func (s *seriesSet) Next() bool                        { s.at++; return s.at < len(s.series) }
func (s *seriesSet) At() storage.Series                { return s.series[s.at] }
func (s *seriesSet) Err() error                        { return nil }
func (s *seriesSet) Warnings() annotations.Annotations { return nil }

// check reports what of a query is not in the history: a metric, a value that a
// label is compared with, or a label that is grouped by. It reports also if the query
// tells nothing. Otherwise it returns what it tells.
func (h *history) check(t *testing.T, name, text string) promql.Vector {
	t.Helper()
	expr, err := promQL.ParseExpr(text)
	if err != nil {
		t.Errorf("%s: %s: %v", name, text, err)
		return nil
	}
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		switch n := node.(type) {
		case *parser.VectorSelector:
			if len(h.query(t, n.String())) == 0 {
				t.Errorf("%s: there is no %s", name, n)
			}
			for _, m := range n.LabelMatchers {
				for _, value := range m.SetMatches() { // the alternatives of a|b
					if !h.values(m.Name)[value] {
						t.Errorf("%s: %s: no metric has %s=%q", name, n, m.Name, value)
					}
				}
			}
		case *parser.AggregateExpr:
			expectLabels(t, name, h.query(t, n.Expr.String()), n.Grouping)
		}
		return nil
	})
	told := h.query(t, text)
	if !slices.ContainsFunc(told, func(s promql.Sample) bool { return !math.IsNaN(s.F) }) {
		t.Errorf("%s: %s tells nothing: %v", name, text, told)
	}
	return told
}

// expectLabels checks that all samples have the labels.
func expectLabels(t *testing.T, name string, told promql.Vector, wanted []string) {
	t.Helper()
	for _, label := range wanted {
		i := slices.IndexFunc(told, func(s promql.Sample) bool { return !s.Metric.Has(label) })
		if i >= 0 {
			t.Errorf("%s: %s has no label %s", name, told[i].Metric, label)
		}
	}
}

var _ storage.Queryable = (*history)(nil)

// Package monitoring_test asks what deploy/ asks Prometheus, of what real gateways
// tell it.
package monitoring_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/lockgateway/lockgateway/integration/etcdtest"
	"github.com/lockgateway/lockgateway/integration/gatewaytest"
	"github.com/lockgateway/lockgateway/integration/process"
	"github.com/lockgateway/lockgateway/internal/testaddr"
)

const root = "../../"

func TestMain(m *testing.M) { gatewaytest.Main(m) }

// use has a lock acquired, waited for, refused to one too many, and released.
func use(t *testing.T, g *gatewaytest.Gateway) {
	t.Helper()
	const lock = "1/in-use"
	g.Take(t, lock, "")
	waiter := g.Queue(t, lock, "", 1)
	g.Begin(t, lock, gatewaytest.ForLong()).ExpectRefused(t)
	g.ExpectRelease(t, lock, "", true)
	waiter.ExpectGrant(t)
	g.ExpectRelease(t, lock, "", true)
}

// lonelyNode starts a node of a cluster whose others do not come.
func lonelyNode(t *testing.T) *gatewaytest.Gateway {
	t.Helper()
	own, others := testaddr.Free(t), testaddr.Free(t)+" "+testaddr.Free(t)
	g := gatewaytest.Start(t, "node", "backend nats {\nembedded {\ncluster {\nnode lonely\nlisten "+own+"\nroutes "+own+" "+others+"\n}\n}\n}")
	process.Await(t, "the server runs", func() bool {
		return bytes.Contains(g.Metrics(t), []byte("lock_gateway_embedded_peers_connected"))
	})
	return g
}

func TestWhatPrometheusIsAsked(t *testing.T) {
	t.Parallel()
	etcd := etcdtest.Start(t, etcdtest.Options{})
	const limit = "max_waiters 1\n"
	memory := gatewaytest.Start(t, "memory", limit)
	stored := gatewaytest.Start(t, "etcd", limit+"backend etcd {\nendpoints "+etcd.Endpoints()[0]+"\n}")
	h := newHistory(t)
	rules := alerts(t)
	for range 2 {
		use(t, memory)
		use(t, stored)
		h.scrape(t, memory, stored)
	}
	// The limit was reached, as it should be.
	h.expectAlerts(t, rules, "LockGatewayLimited")

	etcd.Members()[0].Kill(t)
	process.Await(t, "the gateway notices that the store is gone", func() bool {
		return !stored.Get(t.Context(), "1/in-use", "value", "").OK() &&
			bytes.Contains(stored.Metrics(t), []byte(`lock_gateway_backend_ready{backend="etcd"} 0`))
	})
	h.scrape(t, memory, stored, lonelyNode(t))
	h.expectAlerts(t, rules, "LockGatewayLimited", "LockGatewayNotReady", "LockGatewayUnavailable")

	h.checkDashboard(t)
	for _, rule := range rules {
		h.checkAlert(t, rule)
	}
	h.checkTable(t)
}

// variables are those that Grafana replaces in queries.
var variables = strings.NewReplacer("$__rate_interval", "5m", "$instance", ".+", "$backend", ".+")

var (
	legendLabel = regexp.MustCompile(`\{\{(\w+)\}\}`)
	labelValues = regexp.MustCompile(`^label_values\((\w+), (\w+)\)$`)
)

func (h *history) checkDashboard(t *testing.T) {
	t.Helper()
	type source struct{ UID string }
	var dashboard struct {
		Templating struct {
			List []struct {
				Name, Type string
				Datasource source
				Definition string
			}
		}
		Panels []struct {
			ID          int
			Type, Title string
			Datasource  source
			Targets     []struct {
				Datasource         source
				Expr, LegendFormat string
			}
		}
	}
	text, err := os.ReadFile(root + "deploy/grafana/lock-gateway.json")
	if err == nil {
		err = json.Unmarshal(text, &dashboard)
	}
	if err != nil {
		t.Fatal(err)
	}
	theSource := source{"${datasource}"} // whichever the reader chooses
	for _, v := range dashboard.Templating.List {
		if v.Type == "datasource" {
			continue
		}
		m := labelValues.FindStringSubmatch(v.Definition)
		if m == nil || m[2] != v.Name || v.Datasource != theSource {
			t.Errorf("the variable %s is of %q, %v", v.Name, v.Definition, v.Datasource)
			continue
		}
		expectLabels(t, v.Name, h.check(t, v.Name, m[1]), m[2:])
	}
	ids := make(map[int]bool)
	for _, p := range dashboard.Panels {
		if ids[p.ID] {
			t.Errorf("%s: there are several panels %d", p.Title, p.ID)
		}
		ids[p.ID] = true
		if p.Type == "row" {
			continue
		}
		if len(p.Targets) == 0 || p.Datasource != theSource {
			t.Errorf("%s asks nothing, or the wrong source", p.Title)
		}
		for _, target := range p.Targets {
			if target.Datasource != theSource {
				t.Errorf("%s: the source is %v", p.Title, target.Datasource)
			}
			told := h.check(t, p.Title, variables.Replace(target.Expr))
			for _, label := range legendLabel.FindAllStringSubmatch(target.LegendFormat, -1) {
				expectLabels(t, p.Title, told, label[1:])
			}
		}
	}
}

// alerts returns the rules, which are valid ones.
func alerts(t *testing.T) []rulefmt.Rule {
	t.Helper()
	groups, errs := rulefmt.ParseFile(root+"deploy/prometheus/lock-gateway.rules.yml", false, model.LegacyValidation, promQL, slog.New(slog.DiscardHandler))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	return groups.Groups[0].Rules
}

var (
	alertLabel = regexp.MustCompile(`\$labels\.(\w+)`)
	heading    = regexp.MustCompile(`(?m)^### (LockGateway\w+)$`)
)

// checkAlert checks that a rule asks for what there is, although nothing is wrong, and
// that the documentation has it.
func (h *history) checkAlert(t *testing.T, rule rulefmt.Rule) {
	t.Helper()
	expr, err := promQL.ParseExpr(rule.Expr)
	if err != nil {
		t.Fatal(err)
	}
	var used []string
	for _, key := range []string{"summary", "description"} {
		if rule.Annotations[key] == "" {
			t.Errorf("%s has no %s", rule.Alert, key)
		}
		for _, m := range alertLabel.FindAllStringSubmatch(rule.Annotations[key], -1) {
			used = append(used, m[1])
		}
	}
	for _, text := range subjects(expr) {
		expectLabels(t, rule.Alert, h.check(t, rule.Alert, text), used)
	}
	if !slices.Contains([]string{"critical", "warning"}, rule.Labels["severity"]) {
		t.Errorf("%s: the severity is %q", rule.Alert, rule.Labels["severity"])
	}
	const page = "https://github.com/lockgateway/lockgateway/blob/main/docs/operations.md#"
	if got := rule.Annotations["runbook_url"]; got != page+strings.ToLower(rule.Alert) {
		t.Errorf("%s: the runbook is at %s", rule.Alert, got)
	}
	if !slices.ContainsFunc(heading.FindAllStringSubmatch(operations(t), -1), func(m []string) bool { return m[1] == rule.Alert }) {
		t.Errorf("docs/operations.md has no heading %s", rule.Alert)
	}
}

// subjects returns what an alert looks at: of a comparison, what is compared with a
// number.
func subjects(expr parser.Expr) []string {
	switch e := expr.(type) {
	case *parser.BinaryExpr:
		switch {
		case e.Op == parser.LAND:
			return append(subjects(e.LHS), subjects(e.RHS)...)
		case e.Op.IsComparisonOperator():
			return []string{e.LHS.String()}
		}
	case *parser.Call:
		if e.Func.Name == "absent" {
			return []string{e.Args[0].String()}
		}
	}
	return []string{expr.String()}
}

// expectAlerts checks which alerts there are to be, without regard to for how long.
func (h *history) expectAlerts(t *testing.T, rules []rulefmt.Rule, want ...string) {
	t.Helper()
	var got []string
	for _, rule := range rules {
		if len(h.query(t, rule.Expr)) > 0 {
			got = append(got, rule.Alert)
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("the alerts are %v; want %v", got, want)
	}
}

var (
	tableMetric = regexp.MustCompile("(?m)^\\| `(lock_gateway_\\w+)` \\|")
	partOfOne   = regexp.MustCompile(`_(bucket|sum|count)$`)
)

// checkTable checks that the documentation lists the metrics that there are.
func (h *history) checkTable(t *testing.T) {
	t.Helper()
	listed := make(map[string]bool)
	for _, m := range tableMetric.FindAllStringSubmatch(operations(t), -1) {
		listed[m[1]] = true
	}
	there := make(map[string]bool)
	for name := range h.values(model.MetricNameLabel) {
		if strings.HasPrefix(name, "lock_gateway_") {
			there[partOfOne.ReplaceAllString(name, "")] = true
		}
	}
	if !maps.Equal(listed, there) {
		t.Errorf("docs/operations.md lists\n%v\nand there are\n%v", slices.Sorted(maps.Keys(listed)), slices.Sorted(maps.Keys(there)))
	}
}

func operations(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(root + "docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

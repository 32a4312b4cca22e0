//go:build unix

package server_test

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/iflowc/iflowc/runtime/engine"
	"github.com/iflowc/iflowc/runtime/engine/scheduler"
	"github.com/iflowc/iflowc/runtime/http/access"
	"github.com/iflowc/iflowc/runtime/http/server"
)

// TestMonitoring checks that the metrics and labels of the dashboard and the alerts in
// deploy/monitoring are in a scrape, and that their expressions are well formed.
func TestMonitoring(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *server.Config, _ *scheduler.Options, _ *engine.Options) {
		c.Access = controlled(t, access.Options{Registry: c.Registry, Load: func() ([]access.Key, error) {
			return access.Parse("keys", []byte("- {name: web, key: [old, new]}\n"))
		}})
	})
	for _, key := range []string{"old", "new", "wrong"} {
		s.ask(t, "POST", "/v1/completions", `{"prompt":"a","max_tokens":3}`, "X-Api-Key", key)
	}
	var text strings.Builder
	if _, err := s.cfg.Registry.WriteTo(&text); err != nil {
		t.Fatal(err)
	}
	scrape := map[string][]string{"up": {"job"}, "ALERTS": {"job", "alertstate"}} // labels by metric; these two are Prometheus' own
	for _, m := range regexp.MustCompile(`(?m)^(\w+)(?:\{(\w+)=.*)? \S+$`).FindAllStringSubmatch(text.String(), -1) {
		scrape[m[1]] = []string{"instance", "job", m[2]}
	}
	expressions := append(dashboardExpressions(t), alertExpressions(t)...)
	if len(expressions) < 30 {
		t.Errorf("only %d expressions", len(expressions))
	}
	for _, e := range expressions {
		if !wellFormed(e) {
			t.Errorf("not well formed: %s", e)
		}
		metrics, labels := selectors(e)
		if len(metrics) == 0 {
			t.Errorf("no metric: %s", e)
		}
		var known []string
		for _, m := range metrics {
			if scrape[m] == nil {
				t.Errorf("the scrape has no metric %s: %s", m, e)
			}
			known = append(known, scrape[m]...)
		}
		for _, l := range labels {
			if !slices.Contains(known, l) {
				t.Errorf("no metric has a label %s: %s", l, e)
			}
		}
	}
}

// dashboardExpressions returns the expressions of the panels and annotations.
func dashboardExpressions(t *testing.T) (list []string) {
	t.Helper()
	var board struct {
		Annotations struct{ List []struct{ Expr string } }
		Panels      []struct {
			Title, Type string
			GridPos     struct{ W int }
			Targets     []struct{ Expr string }
		}
	}
	read(t, "dashboard.json", json.Unmarshal, &board)
	for _, p := range board.Panels {
		if p.Title == "" || p.GridPos.W == 0 || p.Type != "alertlist" && len(p.Targets) == 0 {
			t.Errorf("an incomplete panel: %+v", p)
		}
		for _, target := range p.Targets {
			list = append(list, target.Expr)
		}
	}
	for _, a := range board.Annotations.List {
		list = append(list, a.Expr)
	}
	return list
}

// alertExpressions returns the expressions of the alerts.
func alertExpressions(t *testing.T) (list []string) {
	t.Helper()
	var file struct {
		Groups []struct {
			Rules []struct {
				Alert, Expr string
				Labels      struct{ Severity string }
				Annotations struct{ Summary, Description string }
			}
		}
	}
	read(t, "alerts.yml", yaml.Unmarshal, &file)
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			if r.Alert == "" || r.Labels.Severity == "" || r.Annotations.Summary == "" || r.Annotations.Description == "" {
				t.Errorf("an incomplete alert: %+v", r)
			}
			list = append(list, r.Expr)
		}
	}
	return list
}

func read(t *testing.T, name string, parse func([]byte, any) error, to any) {
	t.Helper()
	text, err := os.ReadFile("../../../deploy/monitoring/" + name)
	if err == nil {
		err = parse(text, to)
	}
	if err != nil {
		t.Fatal(name, err)
	}
}

// tokens splits an expression: texts, ranges, names, numbers and signs.
var tokens = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|\[\$?\w+\]|[A-Za-z_]\w*|\d+(?:\.\d+)?|[=!]~|[=!<>]=|[-+*/<>=(){},]|\s+`)

// wellFormed reports whether an expression consists of tokens with matching brackets.
func wellFormed(e string) bool {
	if strings.Join(tokens.FindAllString(e, -1), "") != e {
		return false
	}
	var open []string
	for _, token := range tokens.FindAllString(e, -1) {
		switch token {
		case "(", "{":
			open = append(open, token)
		case ")", "}":
			if n := len(open); n == 0 || open[n-1]+token != "()" && open[n-1]+token != "{}" {
				return false
			}
			open = open[:len(open)-1]
		}
	}
	return len(open) == 0
}

// selectors returns the metrics of an expression, and the labels that it names.
func selectors(e string) (metrics, labels []string) {
	words := []string{"sum", "by", "and", "rate", "changes", "max_over_time", "histogram_quantile"}
	inLabels, by := false, false
	for _, token := range tokens.FindAllString(e, -1) {
		name := regexp.MustCompile(`^[A-Za-z_]`).MatchString(token)
		switch {
		case token == "by":
			by = true
		case token == "{" || by && token == "(":
			inLabels = true
		case token == "}" || by && token == ")":
			inLabels, by = false, false
		case name && inLabels:
			labels = append(labels, token)
		case name && !slices.Contains(words, token):
			metrics = append(metrics, token)
		}
	}
	return metrics, labels
}

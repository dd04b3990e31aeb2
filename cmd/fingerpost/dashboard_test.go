package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"fingerpost/cmd/testrig"
)

const dashboardFile = "dist/dashboard.json"

// A panel is the part of one that the test reads. Rows are panels, too.
type panel struct {
	ID                       int
	Type, Title, Description string
	GridPos                  struct{ X, Y, W, H int }
	Datasource               struct{ Type, UID string }
	Targets                  []struct {
		RefID, Expr, LegendFormat string
		Datasource                struct{ UID string }
	}
}

// TestDashboard: the dashboard is imported as it is: it asks for the Prometheus, no two panels lie over each other, and
// each says what it shows. Prometheus takes each query.
func TestDashboard(t *testing.T) {
	t.Parallel()
	var d struct {
		Inputs     any `json:"__inputs"`
		Templating struct {
			List []struct{ Name, Type string }
		}
		Panels []panel
	}
	must(t, json.Unmarshal([]byte(readText(t, dashboardFile)), &d))
	if d.Inputs != nil || len(d.Templating.List) == 0 || d.Templating.List[0].Type != "datasource" {
		t.Errorf("the data source is no variable: %+v", d.Templating)
	}
	const source = "${datasource}"
	var rows []string
	taken, ids := map[[2]int]string{}, map[int]bool{}
	rules := "groups:\n- name: dashboard\n  rules:\n"
	chosen := strings.NewReplacer("$__rate_interval", "5m", "$job", ".*", "$instance", ".*")
	for i, p := range d.Panels {
		if ids[p.ID] {
			t.Errorf("%s: the id %d is taken", p.Title, p.ID)
		}
		ids[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" || x >= 24 {
					t.Fatalf("%q lies over %q, or beyond the edge", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
		if p.Type == "row" {
			rows = append(rows, p.Title)
			continue
		}
		if !strings.HasSuffix(p.Description, ".") || p.Datasource.UID != source || len(p.Targets) == 0 {
			t.Errorf("%q has no description, another source, or no query", p.Title)
		}
		for _, target := range p.Targets {
			if target.Datasource.UID != source || target.LegendFormat == "" {
				t.Errorf("%q: query %s has another source, or no name", p.Title, target.RefID)
			}
			if !strings.Contains(target.Expr, `{job=~"$job", instance=~"$instance"`) {
				t.Errorf("%q: query %s asks about nodes that were not chosen", p.Title, target.RefID)
			}
			rules += "  - record: panel_" + strconv.Itoa(i) + target.RefID + "\n    expr: " + strconv.Quote(chosen.Replace(target.Expr)) + "\n"
		}
	}
	if want := []string{"Resolve", "Files", "Writes", "Mail", "Git", "Edges", "Domains", "Webhooks", "Process"}; !slices.Equal(rows, want) {
		t.Errorf("rows %v, want %v", rows, want)
	}
	file := filepath.Join(t.TempDir(), "queries.yaml")
	must(t, os.WriteFile(file, []byte(rules), 0o644))
	promtool := testrig.Need(t, "promtool")[0]
	if out, err := exec.CommandContext(t.Context(), promtool, "check", "rules", file).CombinedOutput(); err != nil {
		t.Errorf("promtool: %v\n%s", err, out)
	}
}

package chart_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"fingerpost/api/console/chart"
	"fingerpost/api/ops/history"
)

var begun = time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)

// recorded is a history after some steps, with one generation in each.
func recorded(steps int, s history.Sample) *history.View {
	r := history.New()
	r.Record(begun, history.Sample{})
	for i := range steps {
		now := begun.Add(time.Duration(i+1) * history.Step)
		r.Note(history.Generation{Number: uint64(i + 1), Time: now, Only: "domain.create <b>.example",
			Changed: map[string][]uint64{"domain": {1}}, Doors: []string{"api"}, By: []string{"Ada"}})
		s.Resolves += 100
		r.Record(now, s)
	}
	return r.View()
}

func ids(charts []*chart.HourChart) string {
	var all []string
	for i := range charts {
		all = append(all, charts[i].ID)
	}
	return strings.Join(all, " ")
}

// A node has the charts of what it does: an edge sends no mail, and has an authority.
func TestNodesHaveTheirCharts(t *testing.T) {
	f := func(v *history.View, edge bool, want string) {
		t.Helper()
		if got := ids(chart.HourOf(v, edge).All); got != want {
			t.Errorf("the charts are %s, want %s", got, want)
		}
	}
	age := time.Second
	f(recorded(3, history.Sample{Mail: new(history.Mail)}), false, "resolves took cache writes mail followers")
	f(recorded(3, history.Sample{AuthorityAge: &age}), true, "resolves took cache writes followers authority")
	f(history.New().View(), false, "resolves took cache writes mail followers")
	if got := ids(chart.HourOf(recorded(3, history.Sample{Mail: new(history.Mail)}), false).Small()); got != "resolves took cache mail" {
		t.Errorf("the small charts are %s", got)
	}
}

func TestChartsSayWhatTheyShow(t *testing.T) {
	plain := strings.NewReplacer("\u00a0", " ", "\u202f", " ")
	s := history.Sample{Mail: &history.Mail{Sent: 3}, Subscribers: 2}
	said := map[string]string{}
	for _, c := range chart.HourOf(recorded(6, s), false).All {
		said[c.ID] = plain.Replace(c.Sentence())
	}
	for id, want := range map[string]string{
		"resolves":  "10 resolves a second in the last 60 seconds, 10 now.",
		"took":      "No resolves in the last 60 seconds.",
		"writes":    "6 changes went live in the last 60 seconds, 1 in the last 10 seconds.",
		"mail":      "3 mails were sent in the last 60 seconds, 0 in the last 10 seconds; 0 failed in the last 60 seconds.",
		"followers": "2 open streams of the change feed in the last 60 seconds, 2 now.",
	} {
		if said[id] != want {
			t.Errorf("%s: %s\nwant %s", id, said[id], want)
		}
	}
}

// What went live is told in words, the newest first, and marked on the charts.
func TestChanges(t *testing.T) {
	c := chart.HourOf(recorded(50, history.Sample{}), false)
	if len(c.Marks) != 20 || c.Earlier != 30 {
		t.Fatalf("%d marks and %d earlier ones", len(c.Marks), c.Earlier)
	}
	m := c.Marks[0]
	if got := fmt.Sprintf("%s: %s, by %s, %s", m.What, m.Changed, m.By, m.How); got != "generation 50: domain <b>.example created, by Ada, over the API" {
		t.Error(got)
	}
	svg := string(chart.HourOf(recorded(20, history.Sample{}), false).All[0].SVG())
	if !strings.Contains(svg, "10:03:20 UTC, generation 20: domain &lt;b&gt;.example created, by Ada, over the API") {
		t.Error(svg)
	}
	svg = string(c.All[0].SVG())
	if strings.Contains(svg, "<title>") || strings.Count(svg, "l-4 6h8z") != 50 {
		t.Errorf("of 50 marks %d are drawn", strings.Count(svg, "l-4 6h8z"))
	}
}

package console

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"fingerpost/api/client"
	"fingerpost/api/console/chart"
	"fingerpost/api/ops/history"
)

// newHour returns a console with a history of some steps, and what takes the next one.
func newHour(t *testing.T, steps int) (c *Console, s *session, step func()) {
	t.Helper()
	r := history.New()
	c, err := New(Options{API: http.DefaultTransport, Keys: struct{ Keys }{}, Node: Node{History: r}})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	sample := history.Sample{Mail: new(history.Mail)}
	step = func() {
		sample.Resolves += 10
		now = now.Add(history.Step)
		r.Record(now, sample)
	}
	for range steps + 1 {
		step()
	}
	return c, &session{key: Key{Everything: true}}, step
}

// A live page is sent what has changed: parts when they differ, charts when a step has passed, tables once a minute.
func TestNews(t *testing.T) {
	c, s, step := newHour(t, 3)
	shown := shown{parts: map[string]string{}}
	news := func() string {
		v := &liveView{Whole: true, Hour: c.lastHour(s)}
		var names []string
		for line := range strings.Lines(string(c.news(&shown, v))) {
			if name, is := strings.CutPrefix(strings.TrimSpace(line), "event: "); is {
				names = append(names, name)
			}
		}
		return strings.Join(names, " ")
	}
	const charts = "chart-resolves chart-took chart-cache chart-writes chart-mail chart-followers marks"
	if got, want := news(), "figures state edges "+charts; got != want {
		t.Errorf("at first %s, want %s", got, want)
	}
	if got := news(); got != "" {
		t.Errorf("without a change %s", got)
	}
	step()
	if got := news(); got != charts {
		t.Errorf("after a step %s, want %s", got, charts)
	}
	step()
	step()
	if got := news(); !strings.Contains(got, "table-resolves") || !strings.HasSuffix(got, "lanetables") {
		t.Errorf("after a minute %s", got)
	}
}

// The charts are made once for all who look, and not for a key that covers less than every project.
func TestChartsAreMadeOnce(t *testing.T) {
	c, s, step := newHour(t, 3)
	first := c.lastHour(s)
	once, again := c.chartEvents(first), c.chartEvents(first)
	if c.lastHour(s) != first || &once[0] != &again[0] {
		t.Error("two who look get charts of their own")
	}
	step()
	next := c.lastHour(s)
	if next == first || !bytes.Equal(c.chartEvents(next), c.chartEvents(next)) || bytes.Equal(c.chartEvents(first), c.chartEvents(next)) {
		t.Error("a step later the charts are the same")
	}
	if few := c.nowCharts(s); len(few) != 4 || few[0].ID != "resolves" {
		t.Errorf("charts for Now: %d", len(few))
	}
	if part := (&session{key: Key{}}); c.lastHour(part) != nil || c.nowCharts(part) != nil {
		t.Error("a key that covers less gets the charts of all projects")
	}
}

func TestEdgesInWords(t *testing.T) {
	f := func(e client.Edge, good bool, want string) {
		t.Helper()
		e.Name = "fra"
		rows := edgeRows([]client.Edge{e}, nil)
		if got := strings.ReplaceAll(rows[0].Is, "\u00a0", " "); got != want || rows[0].Good != good {
			t.Errorf("%q, good %v; want %q", got, rows[0].Good, want)
		}
	}
	f(client.Edge{Problem: "it has not been heard since this authority started"}, false, "Problem: it has not been heard since this authority started")
	f(client.Edge{Version: "1", Ready: true, Current: true, BeatAgeMS: 900}, true, "It has everything.")
	f(client.Edge{Version: "1", Ready: true, LagMS: 1234}, true, "It is 1.2 s behind.")
	f(client.Edge{Version: "1", BeatAgeMS: 180_000, LagMS: 5}, false, "It was last heard 3 min ago.")
	f(client.Edge{Version: "1", BeatAgeMS: 900}, false, "It has no whole tree yet.")
	f(client.Edge{Version: "1", Ready: true, Current: true, Problem: "refuses 1 file"}, false, "It has everything. Problem: refuses 1 file")
}

// An edge that is not declared any more keeps its lane for the hour.
func TestLanesOfEdges(t *testing.T) {
	r := history.New()
	now := time.Now()
	for i := range 3 {
		r.Record(now.Add(time.Duration(i)*history.Step), history.Sample{Edges: []history.Edge{{Name: "ams", Ready: true}, {Name: "fra"}}})
	}
	rows := edgeRows([]client.Edge{{Name: "fra", Version: "1"}, {Name: "new"}}, chart.HourOf(r.View(), false))
	var got []string
	for _, row := range rows {
		got = append(got, fmt.Sprint(row.Name, " ", row.Lane != nil, " ", row.Is))
	}
	if want := "fra true It has no whole tree yet.|new false |ams true It is not declared any more."; strings.Join(got, "|") != want {
		t.Errorf("%s\nwant %s", strings.Join(got, "|"), want)
	}
}

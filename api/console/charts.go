package console

import (
	"bytes"
	"strings"
	"sync"
	"time"

	"fingerpost/api/client"
	"fingerpost/api/console/chart"
)

// hours keeps the charts of the last hour, which are made once for all who look.
type hours struct {
	mu    sync.Mutex // guards the fields below
	made  *chart.Hour
	event []byte // what live pages get of made; nil: not made yet
}

// lastHour returns the charts of the last hour for a session, nil where it may not see them: they are about all
// projects.
func (c *Console) lastHour(s *session) *chart.Hour {
	if c.o.History == nil || !s.Key().Everything {
		return nil
	}
	steps, noted := c.o.History.Progress()
	h := &c.hours
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.made == nil || h.made.Steps != steps || h.made.Noted != noted {
		h.made, h.event = chart.HourOf(c.o.History.View(), c.o.Edge), nil
	}
	return h.made
}

// nowCharts are the charts of the part "nowcharts": few and small. Nil: the session may not see them.
func (c *Console) nowCharts(s *session) []*chart.HourChart {
	if h := c.lastHour(s); h != nil {
		return h.Small()
	}
	return nil
}

// tablesEvery is how many steps pass between two updates of the tables behind the charts: they are long, and folded.
const tablesEvery = 6

// chartEvents returns the events that replace the charts of a live page.
func (c *Console) chartEvents(made *chart.Hour) []byte {
	c.hours.mu.Lock()
	defer c.hours.mu.Unlock()
	if made == c.hours.made && c.hours.event != nil {
		return c.hours.event
	}
	var out bytes.Buffer
	tables := made.Steps%tablesEvery == 0
	for _, ch := range made.All {
		c.writePart(&out, "chart-"+ch.ID, "live", "chart", ch)
		if tables {
			c.writePart(&out, "table-"+ch.ID, "live", "charttable", ch)
		}
	}
	c.writePart(&out, "marks", "live", "marks", made)
	if tables {
		c.writePart(&out, "lanetables", "live", "lanetables", made)
	}
	if made == c.hours.made {
		c.hours.event = out.Bytes()
	}
	return out.Bytes()
}

// An edgeRow is an edge with its lane.
type edgeRow struct {
	client.Edge
	Good bool
	Is   string      // in words
	Lane *chart.Lane // nil: it was not seen in the last hour
}

// edgeRows are the edges that are declared, and those that were seen in the last hour.
func edgeRows(edges []client.Edge, h *chart.Hour) (rows []edgeRow) {
	lanes := map[string]*chart.Lane{}
	if h != nil {
		for _, l := range h.Lanes {
			lanes[l.Name] = l
		}
	}
	for _, e := range edges {
		rows = append(rows, edgeRow{Edge: e, Good: e.Ready && e.Problem == "", Is: edgeWords(&e), Lane: lanes[e.Name]})
		delete(lanes, e.Name)
	}
	if h != nil {
		for _, l := range h.Lanes {
			if lanes[l.Name] != nil {
				rows = append(rows, edgeRow{Edge: client.Edge{Name: l.Name}, Is: "It is not declared any more.", Lane: l})
			}
		}
	}
	return rows
}

// silentAfter is when package cluster takes an edge for away.
const silentAfter = 10 * time.Second

// edgeWords says how an edge is.
func edgeWords(e *client.Edge) string {
	silent := time.Duration(e.BeatAgeMS * float64(time.Millisecond))
	words := "It is " + chart.Seconds.Text(e.LagMS/1000) + " behind."
	switch {
	case e.Version == "": // the problem says that it was not heard yet
		words = ""
	case !e.Ready && silent >= silentAfter:
		words = "It was last heard " + chart.Seconds.Text(silent.Seconds()) + " ago."
	case !e.Ready:
		words = "It has no whole tree yet."
	case e.Current:
		words = "It has everything."
	}
	if e.Problem != "" {
		words = strings.TrimSpace(words + " Problem: " + e.Problem)
	}
	return words
}

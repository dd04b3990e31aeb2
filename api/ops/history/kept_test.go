package history_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"fingerpost/api/ops/history"
)

func TestEdgesComeAndGo(t *testing.T) {
	c := newClock()
	c.pass(history.Step)
	c.sample.Edges = []history.Edge{{Name: "west", Lag: 1500 * time.Millisecond}, {Name: "east", Ready: true}}
	c.pass(history.Step)
	c.sample.Edges = c.sample.Edges[1:]
	c.pass(history.Step)
	v := c.View()
	if len(v.Edges) != 2 || v.Edges[0].Name != "east" || v.Edges[1].Name != "west" {
		t.Fatalf("lanes: %+v", v.Edges)
	}
	if got, want := fmt.Sprint(v.Edges[0].Lag, v.Edges[0].Ready, v.Edges[1].Lag, v.Edges[1].Ready),
		"[NaN 0 0] [false true true] [NaN 1.5 NaN] [false false false]"; got != want {
		t.Errorf("lanes are %s, want %s", got, want)
	}
	for range history.Points {
		c.pass(history.Step)
	}
	if v := c.View(); len(v.Edges) != 1 || v.Edges[0].Name != "east" {
		t.Errorf("an hour after an edge has gone: %d lanes", len(v.Edges))
	}
}

// More edges than there are lanes: those that are here keep theirs, those that have gone make room.
func TestEdgesAreBounded(t *testing.T) {
	c := newClock()
	edges := func(from, n int) (all []history.Edge) {
		for i := range n {
			all = append(all, history.Edge{Name: fmt.Sprintf("edge-%04d-%s", from+i, strings.Repeat("x", 300)), Ready: true})
		}
		return all
	}
	c.sample.Edges = edges(0, 500)
	c.pass(history.Step)
	c.pass(history.Step)
	first := c.View()
	if len(first.Edges) != 64 || !first.Edges[0].Ready[0] || len(first.Edges[0].Name) > 120 {
		t.Fatalf("%d lanes, the first %+v", len(first.Edges), first.Edges[0])
	}
	c.sample.Edges = edges(1000, 10)
	c.pass(history.Step)
	c.pass(history.Step)
	c.pass(history.Step)
	v := c.View()
	if last := v.Edges[63].Name; len(v.Edges) != 64 || !strings.HasPrefix(last, "edge-1009") {
		t.Errorf("%d lanes, the last %s", len(v.Edges), last)
	}
}

func TestMarksSayWhatChanged(t *testing.T) {
	f := func(want string, all ...history.Generation) {
		t.Helper()
		c := newClock()
		for i, g := range all {
			g.Number, g.Time = uint64(i+7), c.now
			c.Note(g)
		}
		v := c.View()
		if len(v.Marks) != 1 {
			t.Fatalf("%d marks", len(v.Marks))
		}
		m := v.Marks[0]
		if got := fmt.Sprintf("%d/%d %s; %s %v %v", m.Generations, m.Generation, m.Changed, m.Door, m.By, m.MorePeople); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	next := uint64(0)
	count := func(pairs ...any) map[string][]uint64 {
		m := map[string][]uint64{}
		for i := 0; i < len(pairs); i += 2 {
			for range pairs[i+1].(int) {
				next++
				m[pairs[i].(string)] = append(m[pairs[i].(string)], next)
			}
		}
		return m
	}
	f("1/7 domain shop.acme.example created; api [Ada] false",
		history.Generation{Only: "domain.create shop.acme.example", Changed: count("domain", 1), Doors: []string{"api"}, By: []string{"Ada"}})
	f("1/7 service settings of project acme changed; file [] false",
		history.Generation{Only: "service-settings.update acme", Changed: count("service-settings", 1), Doors: []string{"file"}})
	f("1/7 block of defaults changed; file [] false",
		history.Generation{Only: "defaults.update ", Changed: count("defaults", 1), Doors: []string{"file"}})
	f("2/8 2 projects, 1 domain; api, git [Ada Bob] false",
		history.Generation{Only: "project.create a", Changed: count("project", 1), Doors: []string{"api"}, By: []string{"Ada"}},
		history.Generation{Changed: count("project", 1, "domain", 1), Doors: []string{"git"}, By: []string{"Bob", "Ada", ""}})
	f("5/11 5 API keys; api [a b c] true",
		history.Generation{Changed: count("key", 1), Doors: []string{"api"}, By: []string{"a"}}, history.Generation{Changed: count("key", 1), By: []string{"b"}},
		history.Generation{Changed: count("key", 1), By: []string{"c"}}, history.Generation{Changed: count("key", 1), By: []string{"d"}},
		history.Generation{Changed: count("key", 1), By: []string{"a"}})
	acme := history.Generation{Only: "project.update acme", Changed: count("project", 1), Doors: []string{"api"}}
	f("3/9 project acme changed; api [] false", acme, acme, acme)
	f("3/9 1 project, 1 domain; api, git [] false", acme, acme, history.Generation{Changed: count("domain", 1), Doors: []string{"git", "api"}})
	f("1/7 all files were loaded; file [] false", history.Generation{Loaded: true, Doors: []string{"file"}})
	f("2/8 all files were loaded; 1 domain; file [] false", history.Generation{Loaded: true, Doors: []string{"file"}},
		history.Generation{Only: "domain.delete x", Changed: count("domain", 1)})
	f("1/7 many projects and domains; cluster [] false", history.Generation{Many: true, Doors: []string{"cluster"}})
	f("1/7 no values, only the text of files; file [] false", history.Generation{Doors: []string{"file"}})
	f("1/7 proposal.apply; api [] false", history.Generation{Only: "proposal.apply x", Doors: []string{"api"}})
}

// Writes are counted, and the first load is none.
func TestWritesAreCounted(t *testing.T) {
	c := newClock()
	c.Note(history.Generation{Number: 1, Loaded: true})
	c.Note(history.Generation{Number: 2})
	c.Note(history.Generation{Number: 3})
	c.pass(history.Step)
	c.pass(history.Step)
	expect(t, c.View(), history.Writes, 2, 0)
}

// A flood of generations is one mark a step, and the marks of before stay.
func TestFloodOfGenerations(t *testing.T) {
	c := newClock()
	c.Note(history.Generation{Number: 1, Only: "project.create quiet", Changed: map[string][]uint64{"project": {1}}})
	c.pass(history.Step)
	for i := range 200_000 {
		c.Note(history.Generation{Number: uint64(i + 2), Changed: map[string][]uint64{"domain": {uint64(i)}}, By: []string{fmt.Sprint(i)}})
	}
	c.pass(history.Step)
	v := c.View()
	if len(v.Marks) != 2 || v.Marks[0].Changed != "project quiet created" || v.Marks[1].Changed != "200000 domains" {
		t.Errorf("marks: %+v", v.Marks)
	}
	expect(t, v, history.Writes, 1, 200_000)
}

// The whole history takes at most 1 MiB, with all lanes, all marks and the longest names.
func TestMemory(t *testing.T) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	c := newClock()
	long := strings.Repeat("ü", 1000)
	for i := range 100 {
		c.sample.Edges = append(c.sample.Edges, history.Edge{Name: fmt.Sprintf("%03d %s", i, long), Lag: time.Hour})
	}
	for step := range history.Points {
		for i := range 10 {
			c.Note(history.Generation{Number: uint64(step*10 + i), Time: c.now, Only: "project.update " + long, Doors: []string{fmt.Sprint(i, long)},
				By: []string{fmt.Sprint(i, long), long}, Changed: map[string][]uint64{"project": {1}}})
		}
		c.pass(history.Step)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	kept := int64(after.HeapAlloc) - int64(before.HeapAlloc)
	t.Logf("a full history takes %d KiB", kept>>10)
	if kept > 1<<20 {
		t.Errorf("a full history takes %d bytes, more than 1 MiB", kept)
	}
	runtime.KeepAlive(c)
}

// The JSON of a view has null where there is no value, and is read by any parser.
func TestJSON(t *testing.T) {
	type document struct {
		Step   int
		End    *time.Time
		Names  []string
		Values [][]*float64
		Edges  []struct {
			Name       string
			LagSeconds []*float64
			Ready      []bool
		}
		Marks []struct {
			Time       time.Time
			Generation uint64
			Changed    string
		}
	}
	read := func(c *clock) (d document) {
		t.Helper()
		b := c.View().AppendJSON(nil)
		if err := json.Unmarshal(b, &d); err != nil {
			t.Fatalf("%v:\n%s", err, b)
		}
		return d
	}
	c := newClock()
	if d := read(c); d.Step != 10 || d.End != nil || len(d.Names) != len(d.Values) || len(d.Values[0]) != 0 || d.Edges == nil || d.Marks == nil {
		t.Errorf("empty: %+v", d)
	}
	c.calls(1234, time.Microsecond)
	c.sample.Edges = []history.Edge{{Name: "a \"b\"\n", Lag: time.Second, Ready: true}}
	c.Note(history.Generation{Number: 4, Time: c.now, Only: "domain.create </script>", By: []string{"Ada"}})
	c.pass(history.Step)
	c.pass(2 * history.Step)
	d := read(c)
	if d.Values[0][0] == nil || *d.Values[0][0] != 123.4 || d.Values[0][1] != nil || *d.Values[0][2] != 0 {
		t.Errorf("resolves: %v", d.Values[0])
	}
	if e := d.Edges[0]; e.Name != "a \"b\"\n" || *e.LagSeconds[0] != 1 || e.LagSeconds[1] != nil || !e.Ready[2] {
		t.Errorf("edge: %+v", e)
	}
	if m := d.Marks[0]; m.Generation != 4 || !m.Time.Equal(c.now.Add(-3*history.Step)) || m.Changed != "domain </script> created" {
		t.Errorf("mark: %+v", m)
	}
	if text := string(c.View().AppendJSON(nil)); strings.Contains(text, "Ada") || len(c.View().Marks[0].By) != 1 {
		t.Errorf("the JSON, which needs no key, names who made a change: %s", text)
	}
}

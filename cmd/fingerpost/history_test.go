package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"fingerpost/cmd/testrig"
)

// A nodeHistory is the history in /status.
type nodeHistory struct {
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
		Generation    uint64
		Generations   int
		Changed, Door string
	}
}

// of returns the values of a figure.
func (h *nodeHistory) of(name string) []*float64 {
	if i := slices.Index(h.Names, name); i >= 0 {
		return h.Values[i]
	}
	return nil
}

// history reads the history of the server from /status, as people see it.
func (r *rig) history() (h nodeHistory, document string) {
	r.t.Helper()
	res, err := r.client.Get(r.ops + "/status")
	if err != nil {
		r.t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	var status struct{ History nodeHistory }
	if err := json.Unmarshal(b, &status); err != nil {
		r.t.Fatalf("%v:\n%s", err, b)
	}
	return status.History, string(b)
}

// untilHistory waits until the history is as it has to be.
func (r *rig) untilHistory(what string, is func(*nodeHistory) bool) *nodeHistory {
	r.t.Helper()
	var h nodeHistory
	if err := poll(testrig.Patience, func() error {
		if h, _ = r.history(); !is(&h) {
			return errors.New("it is not so that " + what)
		}
		return nil
	}); err != nil {
		_, document := r.history()
		r.t.Fatalf("%v:\n%s", err, document)
	}
	return &h
}

// some reports whether a figure has a value above a number.
func (h *nodeHistory) some(name string, above float64) bool {
	return slices.ContainsFunc(h.of(name), func(v *float64) bool { return v != nil && *v > above })
}

// What a node does shows in its history; a restart begins an empty one.
func TestHistory(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	r := newRig(t, nil)
	h, document := r.history()
	if h.Step != 10 || h.End != nil || len(h.of("resolves_per_second")) != 0 {
		t.Errorf("it begins with %+v", h)
	}
	if len(h.Marks) != 1 || h.Marks[0].Changed != "all files were loaded" {
		t.Errorf("the marks begin with %+v", h.Marks)
	}
	if lines := strings.Count(document, "\n"); lines > 200 {
		t.Errorf("people read this document, and it has %d lines", lines)
	}
	for range 50 {
		r.get(resolvePath + "shop.acme.example")
	}
	generation := r.generation()
	r.put("more.hcl", "project \"more\" {\n  name = \"More\"\n  domain \"more.example\" {}\n}\n")
	r.waitGeneration(generation + 1)
	got := r.untilHistory("the load shows", func(h *nodeHistory) bool { return h.some("resolves_per_second", 0) && h.some("writes", 0) })
	if !got.some("resolve_p50_seconds", 0) || !got.some("resolve_p99_seconds", 0) || !got.some("cache_hit_ratio", 0.5) {
		t.Errorf("the load does not show in %v", got.Values)
	}
	mark := got.Marks[len(got.Marks)-1]
	if mark.Door != "file" || !strings.HasSuffix(mark.Changed, "1 project, 1 domain") {
		t.Errorf("the last mark is %+v", mark)
	}
	idle := r.untilHistory("a step without calls follows", func(h *nodeHistory) bool {
		values := h.of("resolves_per_second")
		return len(values) > 0 && values[len(values)-1] != nil && *values[len(values)-1] == 0
	})
	last := len(idle.of("resolve_p50_seconds")) - 1
	if idle.of("resolve_p50_seconds")[last] != nil || idle.of("cache_hit_ratio")[last] != nil {
		t.Error("a step without calls has a latency or a hit ratio")
	}
	// /status asks for no key, and so names nobody.
	if got := r.ask(http.MethodPost, "/api/platform/projects", r.keys["write"], `{"name":"Asked"}`, "Content-Type: application/json",
		"X-Actor: Ada <ada@svc.example>"); got.status != http.StatusCreated {
		t.Errorf("a write is answered %d %s", got.status, got.body)
	}
	r.untilHistory("the write shows", func(h *nodeHistory) bool { return h.Marks[len(h.Marks)-1].Door == "api" })
	_, document = r.history()
	if trail := r.get("/api/platform/audit?limit=1").body; strings.Contains(document, "Ada") || !strings.Contains(trail, "Ada") {
		t.Errorf("the trail says %s, and /status:\n%s", trail, document)
	}
	r.halt()
	r.start()
	if h, _ := r.history(); h.End != nil || len(h.of("writes")) != 0 || len(h.Marks) != 0 {
		t.Errorf("after a restart it is not empty: %+v", h)
	}
}

// An edge has a lane at its authority while it is there, and a history of its own. A flood of writes is one mark a step.
func TestHistoryOfEdges(t *testing.T) {
	testrig.Thorough(t) // it waits for several steps of the history; TestHistory waits for two
	t.Parallel()
	c := newCluster(t, "fra")
	fra := c.edge("fra", "")
	fra.resolves("shop.acme.example")
	ready := func(h *nodeHistory) bool {
		return len(h.Edges) == 1 && h.Edges[0].Name == "fra" && slices.Contains(h.Edges[0].Ready, true)
	}
	c.untilHistory("the edge is ready", ready)
	const writes = 40
	for i := range writes {
		c.put("flood.hcl", fmt.Sprintf("project \"flood\" {\n  name = \"Flood %d\"\n  domain \"flood-%d.example\" {}\n}\n", i, i))
		c.resolves(fmt.Sprintf("flood-%d.example", i))
	}
	h := c.untilHistory("the writes show", func(h *nodeHistory) bool { return h.some("writes", 0) })
	generations := 0
	for _, m := range h.Marks {
		generations += m.Generations
	}
	if len(h.Marks) > len(h.of("writes"))+1 || generations < writes {
		t.Errorf("%d marks of %d generations in %d steps", len(h.Marks), generations, len(h.of("writes")))
	}
	own := fra.untilHistory("its own history has the writes", func(h *nodeHistory) bool {
		return h.some("writes", 0) && h.some("authority_age_seconds", 0)
	})
	if mark := own.Marks[len(own.Marks)-1]; mark.Door != "cluster" {
		t.Errorf("the last mark of the edge is %+v", mark)
	}
	if own.some("mails_sent", -1) {
		t.Error("an edge counts mails, and sends none")
	}
	fra.halt()
	c.untilHistory("the edge is not ready any more", func(h *nodeHistory) bool {
		return ready(h) && !h.Edges[0].Ready[len(h.Edges[0].Ready)-1]
	})
	fra.start()
	c.untilHistory("the edge is back", func(h *nodeHistory) bool { return ready(h) && h.Edges[0].Ready[len(h.Edges[0].Ready)-1] })
}

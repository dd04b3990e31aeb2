package main

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"fingerpost/cmd/testrig"
)

// A logLine is what these tests read of a line of the log.
type logLine struct {
	Level, Msg, Commit         string
	Generation, Files, Changed int
	Paths                      []string
	Seconds                    *float64
}

// configLines returns the lines of the log about the config, and everything that is worse than information.
func (r *rig) configLines() (config, warnings []logLine) {
	r.t.Helper()
	for line := range strings.Lines(r.logged()) {
		var l logLine
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			r.t.Fatalf("%s: %v", line, err)
		}
		if strings.HasPrefix(l.Msg, "config ") {
			if config = append(config, l); l.Seconds == nil || *l.Seconds < 0 {
				r.t.Errorf("without the seconds: %s", line)
			}
		}
		if l.Level != "INFO" {
			warnings = append(warnings, l)
		}
	}
	return config, warnings
}

func said(lines []logLine) (said []string) {
	for _, l := range lines {
		said = append(said, l.Msg)
	}
	return said
}

// A start says once what was loaded, each reload that changes something has one line, and a normal start warns of
// nothing: neither the authority's nor that of an edge, the first time or again.
func TestReloadLines(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	c := newCluster(t, "fra1")
	e := c.edge("fra1", t.TempDir())
	e.resolves("shop.acme.example")
	first := c.generation()
	c.put("brand-new.hcl", "project \"brand-new\" {\n  name = \"New\"\n  domain \"new.example\" {}\n}\n")
	e.resolves("new.example")
	noon := time.Now().Add(-time.Hour)
	if err := os.Chtimes(c.path("brand-new.hcl"), noon, noon); err != nil { // changes nothing
		t.Fatal(err)
	}
	if out, code := c.run("reload", "--ops-url", c.ops); code != 0 {
		t.Fatalf("reload: exit %d: %s", code, out)
	}
	for who, r := range map[string]*rig{"authority": c.rig, "edge": e} {
		config, warnings := r.configLines()
		if len(config) != 2 || config[0].Msg != "config loaded" || config[0].Generation != int(first) || config[0].Files != len(rigFiles)+len(rigKeys)+1 ||
			config[1].Msg != "config reloaded" || config[1].Generation != int(first)+1 || config[1].Changed != 1 || !slices.Equal(config[1].Paths, []string{"brand-new.hcl"}) {
			t.Errorf("%s: %+v", who, config)
		}
		if len(warnings) > 0 {
			t.Errorf("%s warns: %+v", who, warnings)
		}
	}
	e.halt()
	e.start()
	e.resolves("new.example")
	if config, warnings := e.configLines(); !slices.Equal(said(config), []string{"config loaded"}) || len(warnings) > 0 {
		t.Errorf("after a restart of the edge: %q, %q", said(config), said(warnings))
	}
	c.halt()
	c.begin()
	e.resolves("new.example")
	if config, warnings := c.configLines(); !slices.Equal(said(config), []string{"config loaded"}) || len(warnings) > 0 {
		t.Errorf("after a restart of the authority: %q, %q", said(config), said(warnings))
	}
}

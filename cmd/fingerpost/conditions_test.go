package main

import (
	"encoding/json"
	"strings"
	"testing"

	"fingerpost/api/conditions"
	"fingerpost/cmd/fingerpost/doctor"
	"fingerpost/cmd/testrig"
	"fingerpost/configsrc/cluster"
)

// conditions are those that /status has, by id and subject.
func (r *rig) conditions() map[string]conditions.Condition {
	r.t.Helper()
	body, err := fetch(r.ops + "/status")
	must(r.t, err)
	var status struct{ Conditions []conditions.Condition }
	must(r.t, json.Unmarshal(body, &status))
	all := map[string]conditions.Condition{}
	for _, c := range status.Conditions {
		all[strings.TrimSpace(c.ID+" "+c.Subject)] = c
	}
	return all
}

// TestConditionsOfCluster: the authority tells of an edge that it does not hear, /status and doctor alike, until it hears
// it; and the edge of an authority that is gone.
func TestConditionsOfCluster(t *testing.T) {
	t.Parallel()
	c := idleCluster(t, "fra1")
	c.begin()
	const missing = "The edge fra1 is missing: it was not heard since this server started."
	if is := c.conditions()["edge-missing edge fra1"]; is.Sentence != missing || is.Severity != conditions.Warning {
		t.Errorf("%+v", c.conditions())
	}
	rs, _ := doctorSays(t, c.doctor("--ops-listen", strings.TrimPrefix(c.ops, "http://")))
	wantLine(t, rs, "edges", doctor.Failure, "the edge fra1 is missing", "its log")
	fra := c.idleEdge("fra1", "")
	fra.flags = append(fra.flags, "--stale-after", "1s")
	fra.start()
	fra.untilStatus("the edge follows", func(s cluster.Status) bool { return s.Connected && s.Whole })
	testrig.Eventually(t, "the edge is heard", func() bool { _, is := c.conditions()["edge-missing edge fra1"]; return !is })
	if all := fra.conditions(); all["cluster-problem"].ID != "" || all["edge-cut-off"].ID != "" {
		t.Errorf("of an edge that follows: %+v", all)
	}
	c.halt()
	testrig.Eventually(t, "the edge is cut off", func() bool {
		return strings.HasPrefix(fra.conditions()["edge-cut-off"].Sentence, "This edge last heard its authority ")
	})
}

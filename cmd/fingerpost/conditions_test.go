package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fingerpost/api/conditions"
	"fingerpost/cmd/fingerpost/cli"
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

// whsec is a secret of webhooks, as a file has it.
const whsec = `"whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="`

// TestConditionsOfWebhooks: a webhook whose receiver wants no more events, and one whose secret cannot be opened, need a
// person, in /status, /metrics and doctor alike, until they are changed.
func TestConditionsOfWebhooks(t *testing.T) {
	t.Parallel()
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/gone" {
			w.WriteHeader(http.StatusGone)
		}
	}))
	defer receiver.Close()
	hooks := func(path, secret string) string {
		return "webhook \"crm\" {\n  url    = \"" + receiver.URL + path + "\"\n  secret = " + whsec + "\n}\n" +
			"webhook \"billing\" {\n  url    = \"" + receiver.URL + "\"\n  secret = " + secret + "\n}\n"
	}
	const project = "project \"one\" {\n  name = \"One\"\n  status = \"ACTIVE\"\n}\n"
	r := idleRig(t, t.TempDir(), map[string]string{"one.hcl": project, "hooks.hcl": hooks("/gone", `file("billing")`)})
	secrets := t.TempDir()
	r.flags = []string{"--webhook-allow", "127.0.0.0/8", "--secrets-dir", secrets}
	r.start()
	r.put("one.hcl", strings.Replace(project, "ACTIVE", "SUSPENDED", 1))
	testrig.Eventually(t, "the webhook is off", func() bool { return r.conditions()["webhook-off webhook crm"].ID != "" })
	all := r.conditions()
	if c := all["webhook-off webhook crm"]; c.Sentence != "The webhook crm is switched off." || c.Since == nil ||
		!strings.Contains(c.Detail, "410") || c.Guide != "/docs/alerts#webhooks" {
		t.Errorf("%+v", c)
	}
	if all["secret-closed webhook billing"].ID == "" {
		t.Errorf("%+v", all)
	}
	metrics, _ := metricsAt(t, r)
	for webhook, want := range map[string]string{"crm": "1", "billing": "0"} {
		if got := metrics["fingerpost_webhook_off"].values[`fingerpost_webhook_off{webhook="`+webhook+`"}`]; got != want {
			t.Errorf("%s is off: %q, want %s", webhook, got, want)
		}
	}
	rs, _ := doctorSays(t, r.doctor("--ops-listen", strings.TrimPrefix(r.ops, "http://")))
	wantLine(t, rs, "webhooks", doctor.Failure, "the webhook crm is switched off", "resume")
	must(t, os.WriteFile(filepath.Join(secrets, "billing"), []byte(strings.Trim(whsec, `"`)), 0o600))
	if out, code := r.run("reload", "--ops-url", r.ops); code != cli.ExitOK {
		t.Errorf("reload: %d %s", code, out)
	}
	testrig.Eventually(t, "the secret is opened", func() bool { return r.conditions()["secret-closed webhook billing"].ID == "" })
	r.put("hooks.hcl", hooks("/here", `file("billing")`))
	testrig.Eventually(t, "both go on", func() bool {
		for key := range r.conditions() {
			if strings.Contains(key, "webhook") {
				return false
			}
		}
		return true
	})
}

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"fingerpost/api/conditions"
	"fingerpost/cmd/fingerpost/cli"
	"fingerpost/cmd/fingerpost/doctor"
	"fingerpost/cmd/testrig"
	"fingerpost/configsrc/cluster"
	"fingerpost/resolver/catalog"
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
	testrig.Thorough(t)
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

// TestConditionsAreEvents: a broken file is an entry of the audit trail, and an event of webhooks, when it has been broken
// for a while and when it has been whole for a while, once each, with a restart and SIGKILL in between. A start tells of
// nothing. Keys and webhooks for some projects do not see what belongs to none.
func TestConditionsAreEvents(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	var mu sync.Mutex
	got := map[string][]string{} // by path
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var b struct {
			Type string
			Data struct {
				Object, Door string
				Changes      []struct{ Field, Before, After string }
			}
		}
		err := json.NewDecoder(r.Body).Decode(&b)
		what := b.Type + " " + b.Data.Object
		for _, c := range b.Data.Changes {
			if c.Field == "sentence" {
				what += ": " + c.Before + c.After
			}
		}
		mu.Lock()
		defer mu.Unlock()
		if err != nil || b.Data.Door != "file" {
			t.Errorf("%+v, %v", b, err)
		}
		if !slices.Contains(got[r.URL.Path], what) { // repeated after a kill
			got[r.URL.Path] = append(got[r.URL.Path], what)
		}
	}))
	defer receiver.Close()
	const good = "project \"one\" {\n  name = \"One\"\n}\n"
	hook := func(name, more string) string {
		return "webhook \"" + name + "\" {\n  url    = \"" + receiver.URL + "/" + name + "\"\n  secret = " + whsec + "\n  " + more + "\n}\n"
	}
	r := idleRig(t, t.TempDir(), map[string]string{"one.hcl": good,
		"hooks.hcl": hook("all", `events = ["condition.*"]`) + hook("some", "events = [\"condition.*\"]\n  projects = [\"one\"]")})
	r.flags = []string{"--webhook-allow", "127.0.0.0/8", "--conditions-after", "1s"}
	r.env = []string{"WATCHDOG_USEC=200000"} // which has the conditions judged more often
	var want []string
	until := func(what string) {
		t.Helper()
		want = append(want, what)
		testrig.Eventually(t, what, func() bool {
			mu.Lock()
			defer mu.Unlock()
			return slices.Equal(got["/all"], want)
		})
	}
	r.start()
	r.put("one.hcl", "project \"one\" {\n")
	until("condition.begins files-broken: The files have 1 error; what 1 file said before is served.")
	r.halt()
	r.start()
	_, id := catalog.NewKeyText()
	r.put("soon.hcl", fmt.Sprintf("key \"soon\" {\n  id = %q\n  hash = %q\n  allow = [\"read\"]\n  expires_at = %q\n}\n", id,
		catalog.HashKeyText("soon"), catalog.FileMoment(time.Now().Add(30*time.Hour))))
	until("condition.begins key-ends key soon: The key soon ends in 1 day.") // what was there before has held for longer
	must(t, r.cmd.Process.Signal(syscall.SIGKILL))
	<-r.exited
	r.start()
	r.put("one.hcl", good)
	until("condition.ends files-broken: The files have 1 error; what 1 file said before is served.")
	audit := func(query string) string { return r.get("/api/platform/audit?" + query).body }
	if n, m := jsonCount(t, audit("action=condition.begins")), jsonCount(t, audit("action=condition.ends")); n != 2 || m != 1 {
		t.Errorf("%d entries of beginnings, and %d of ends", n, m)
	}
	out, code := r.run("audit", "--url", r.url, "--key", r.keys["all"], "--action", "condition.ends")
	if code != cli.ExitOK || !strings.Contains(out, "condition.ends      files-broken  warning: The files have 1 error") {
		t.Errorf("%d %s", code, out)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(got["/some"]) > 0 {
		t.Errorf("a webhook for a project got %q", got["/some"])
	}
}

package api_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"fingerpost/configsrc/seal"
	"fingerpost/resolver/catalog"
)

const webhooksPath = "/api/platform/webhooks"

var webhookDesk = map[string]string{"acme.hcl": "project \"acme\" {\n  name = \"Acme\"\n}\n", "sealing.hcl": "sealing {\n  recipients = [\"{{recipient}}\"]\n}\n"}

func newWebhookDesk(t *testing.T) *desk {
	files := map[string]string{}
	for name, content := range webhookDesk {
		files[name] = content
	}
	return newDesk(t, files)
}

// TestWebhooks goes through the life of a webhook: its secret is in the answer that makes it, sealed in the file, and
// nowhere else.
func TestWebhooks(t *testing.T) {
	t.Parallel()
	d := newWebhookDesk(t)
	file := func() string {
		b, err := os.ReadFile(filepath.Join(d.dir, "webhooks.hcl"))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	made := d.askBody("POST", webhooksPath, d.key, `{"name": "crm", "url": "https://crm.example/x", "events": ["domain.*"], "projects": ["acme"]}`)
	made.check(t, 201, "")
	secret, _ := made.data()["secret"].(string)
	if catalog.CheckWebhookSecret(secret) != "" || made.Header.Get("Location") != webhooksPath+"/crm" || made.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("%v %s", made.Header, made.body)
	}
	ids, err := seal.Load(d.seal)
	if err != nil {
		t.Fatal(err)
	}
	opened := func(want ...string) {
		t.Helper()
		w := d.resolver.Webhooks()[0]
		var got []string
		for _, s := range w.Secrets {
			plain, _ := ids.Open(w.SecretContext(), s.Ref)
			got = append(got, plain)
		}
		if !slices.Equal(got, want) {
			t.Errorf("secrets %q, want %q", got, want)
		}
	}
	opened(secret)
	given := catalog.NewWebhookSecret()
	two := d.askBody("POST", webhooksPath, d.key, `{"name": "two", "url": "https://two.example/", "secret": "`+given+`", "active": false}`)
	two.check(t, 201, "")
	if strings.Contains(string(two.body), "whsec_") || strings.Contains(file(), "whsec_") {
		t.Errorf("a secret is echoed: %s, or in the file:\n%s", two.body, file())
	}
	d.askBody("POST", webhooksPath, d.key, `{"name": "two", "url": "https://two.example/"}`).check(t, 409, "CONFLICT")
	one := d.ask("GET", webhooksPath+"/crm", d.key)
	one.check(t, 200, "")
	if got := one.data(); got["url"] != "https://crm.example/x" || got["secrets"] != 1.0 || got["active"] != true || fmt.Sprint(got["events"], got["projects"]) != "[domain.*] [acme]" ||
		got["uuid"] != catalog.DeriveWebhookUUID("crm").String() || strings.Contains(string(one.body), "whsec_") {
		t.Errorf("%s", one.body)
	}
	all := d.ask("GET", webhooksPath+"?sort=url&order=desc&page=1", d.key)
	all.check(t, 200, "")
	if list, _ := all.json["data"].([]any); len(list) != 2 || list[0].(map[string]any)["name"] != "two" || strings.Contains(string(all.body), "whsec_") {
		t.Errorf("%s", all.body)
	}
	d.askBody("PUT", webhooksPath+"/crm", d.key, `{"active": false}`, "If-Match: \"stale\"").check(t, 412, "PRECONDITION_FAILED")
	put := d.askBody("PUT", webhooksPath+"/crm", d.key, `{"events": null, "projects": null, "active": false}`, "If-Match: "+one.Header.Get("ETag"))
	put.check(t, 200, "")
	if w := d.resolver.Webhooks()[0]; w.Events != nil || w.Projects != nil || w.Active || put.Header.Get("ETag") == one.Header.Get("ETag") {
		t.Errorf("%+v, %s", w, put.body)
	}
	// What a client has read it may send back, and a secret that is sent again changes nothing.
	before := file()
	d.askBody("PUT", webhooksPath+"/crm", d.key, strings.TrimSuffix(strings.TrimSpace(dataOf(put)), "}")+`, "secret": "`+secret+`"}`).check(t, 200, "")
	turned := d.askBody("POST", webhooksPath+"/crm/rotate", d.key, `{"overlap": "1h"}`)
	turned.check(t, 200, "")
	next, _ := turned.data()["secret"].(string)
	if turned.data()["secrets"] != 2.0 || turned.data()["overlapEndsAt"] == nil || turned.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("%s", turned.body)
	}
	opened(next, secret)
	ends, err := catalog.RotationEnds(d.resolver)
	if err != nil || time.Until(ends["crm"]) > time.Hour || time.Until(ends["crm"]) < 50*time.Minute {
		t.Errorf("the rotation ends at %v, %v", ends, err)
	}
	now := d.ask("POST", webhooksPath+"/crm/rotate?dryRun=1", d.key)
	now.check(t, 200, "")
	if strings.Contains(string(now.body), "whsec_") {
		t.Errorf("a dry run shows a secret: %s", now.body)
	}
	last := d.askBody("POST", webhooksPath+"/crm/rotate", d.key, `{"overlap": "0s"}`)
	last.check(t, 200, "")
	opened(last.data()["secret"].(string))
	if last.data()["overlapEndsAt"] != nil || before == file() {
		t.Errorf("%s", last.body)
	}
	d.ask("DELETE", webhooksPath+"/crm", d.key).check(t, 200, "")
	d.ask("DELETE", webhooksPath+"/crm", d.key).check(t, 404, "NOT_FOUND")
	trail := d.ask("GET", "/api/platform/audit?order=asc&limit=100&action=webhook.rotate", d.key)
	if n := strings.Count(string(trail.body), `"action":"webhook.rotate"`); n != 2 || strings.Contains(string(trail.body), "whsec_") {
		t.Errorf("%d rotations in %s", n, trail.body)
	}
	if log := d.log.String(); strings.Contains(log, "whsec_") || strings.Contains(log, "crm.example") {
		t.Error("the log has a secret or an address")
	}
}

// dataOf returns the data of an answer as JSON.
func dataOf(a *answer) string {
	_, rest, _ := strings.Cut(string(a.body), `"data":`)
	return rest[:strings.LastIndex(rest, `,"timestamp"`)]
}

// Bad input gets all its problems at once, and changes nothing.
func TestWebhooksBadInput(t *testing.T) {
	t.Parallel()
	d := newWebhookDesk(t)
	f := func(body string, want ...string) {
		t.Helper()
		a := d.askBody("POST", webhooksPath, d.key, body)
		a.check(t, 400, "VALIDATION_ERROR")
		if got := a.fields(); !slices.Equal(got, want) || strings.Contains(string(a.body), "hunter2") {
			t.Errorf("%s: details for %q, want %q: %s", body, got, want, a.body)
		}
	}
	says := func(body, want string) {
		t.Helper()
		if a := d.askBody("POST", webhooksPath, d.key, body); a.StatusCode != 400 || !strings.Contains(string(a.body), want) {
			t.Errorf("%s: %s, want %s", body, a.body, want)
		}
	}
	f(`{}`, "name", "url")
	f(`{"name": 1, "url": 2, "secret": 3, "events": 4, "projects": 5, "active": 6}`, "name", "url", "active", "secret", "events", "projects")
	f(`{"name": "A B", "url": "ftp://x", "secret": "hunter2", "events": [], "projects": ["acme", "acem", "acme", "No", 1], "active": null}`,
		"active", "events", "projects[2]", "projects[4]", "projects[1]", "projects[3]", "name", "url", "secret")
	f(`{"name": "x", "url": "https://u:hunter2@x.example/", "events": ["domain.*", "dom*", "domain.*", 7, "domian.update"], "secret": null}`,
		"secret", "events[2]", "events[3]", "events[1]", "events[4]", "url")
	says(`{"name": "x", "url": "https://x.example/", "events": ["dom*"]}`, `\"domain.*\"`)
	says(`{"name": "x", "url": "https://x.example/", "events": ["domian.update"]}`, "did you mean domain.update?")
	says(`{"name": "x", "url": "https://x.example/", "projects": ["acem"]}`, "did you mean acme?")
	says(`{"name": "x", "url": "http://x.example/"}`, "must begin with https")
	for _, q := range []string{"?page=0", "?sort=secret", "?order=up"} {
		d.ask("GET", webhooksPath+q, d.key).check(t, 400, "VALIDATION_ERROR")
	}
	for _, overlap := range []string{`"-1s"`, `"721h"`, `1`, `null`, `""`} {
		d.askBody("POST", webhooksPath, d.key, `{"name": "crm", "url": "https://x.example/"}`)
		d.askBody("POST", webhooksPath+"/crm/rotate", d.key, `{"overlap": `+overlap+`}`).check(t, 400, "VALIDATION_ERROR")
	}
	for _, name := range []string{"-", "A", "a%20b", "a%2Db", strings.Repeat("n", 64)} {
		for _, method := range []string{"GET", "PUT", "DELETE"} {
			d.ask(method, webhooksPath+"/"+name, d.key).check(t, 400, "VALIDATION_ERROR")
		}
	}
	d.ask("GET", webhooksPath+"/nobody", d.key).check(t, 404, "NOT_FOUND")
	if n := len(d.resolver.Webhooks()); n != 1 {
		t.Errorf("there are %d webhooks", n)
	}
}

// A key without secrets, or one that is limited to projects, sees and makes nothing here.
func TestWebhooksAreForManagers(t *testing.T) {
	t.Parallel()
	h := start(t)
	d := &catalog.Declared{Webhooks: []catalog.Webhook{*catalog.NewWebhook("crm")}}
	noSecrets := h.newKey(d, "no-secrets", catalog.MayAll&^catalog.MaySecrets)
	tenant := h.newKey(d, "tenant", catalog.MayAll, "acme")
	h.apply("keys2.hcl", d)
	for _, key := range []string{noSecrets, tenant} {
		for _, call := range []string{"GET " + webhooksPath, "POST " + webhooksPath, "GET " + webhooksPath + "/crm", "PUT " + webhooksPath + "/crm",
			"DELETE " + webhooksPath + "/crm", "POST " + webhooksPath + "/crm/rotate", "GET " + webhooksPath + "/nobody",
			"GET " + webhooksPath + "/crm/deliveries", "POST " + webhooksPath + "/crm/test", "POST " + webhooksPath + "/crm/resume", "POST " + webhooksPath + "/crm/replay", "DELETE " + webhooksPath + "/crm?dryRun=1"} {
			method, path, _ := strings.Cut(call, " ")
			h.ask(method, path, key).check(t, 403, "FORBIDDEN")
		}
	}
}

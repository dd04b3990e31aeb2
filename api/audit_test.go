package api_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"fingerpost/resolver"
	"fingerpost/resolver/ledger"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

const auditPath = "/api/platform/audit"

const adaActor = "Ada Lovelace <ada@acme.example>"

// audit returns the entries that a query selects.
func (d *desk) audit(t testing.TB, key, query string) (entries []map[string]any) {
	t.Helper()
	a := d.in(t).ask(http.MethodGet, auditPath+query, key)
	a.check(t, 200, "")
	for _, row := range a.json["data"].([]any) {
		entries = append(entries, row.(map[string]any))
	}
	return entries
}

// reload takes in what was saved.
func (d *desk) reload(t testing.TB) {
	t.Helper()
	if err := d.source.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// The same change shows the same fields, made over the API and by a person's save.
func TestAuditOfAPIAndFiles(t *testing.T) {
	t.Parallel()
	const acme = "project \"acme\" {\n  name = \"Acme\"\n  domain \"acme.example\" {}\n  smtp_config {\n    host = \"mail.acme.example\"\n" +
		"    from_email = \"a@acme.example\"\n    password = env(\"ACME_PASSWORD\")\n    username = \"u\"\n  }\n}\n"
	other, otherKey := keyText("other", `"read"`, "  projects = [\"other\"]\n")
	d := newDesk(t, map[string]string{"acme.hcl": acme, "other.hcl": "project \"other\" {\n  name = \"Other\"\n}\n", "keys.hcl": otherKey})
	id := d.projectID(t, "acme")
	before := len(d.audit(t, d.key, "?limit=100"))
	put := func(path, body string) {
		t.Helper()
		header := []string{"X-Actor: " + adaActor, "X-Request-Id: r-1"}
		a := d.in(t).askBody(http.MethodPut, path, d.key, body, header...)
		if strings.HasPrefix(path, "/api/mail") {
			a = d.in(t).askBody(http.MethodPut, path, "", body, append(header, "X-Internal-Service-Token: "+d.key, "X-Internal-Service-Name: t")...)
		}
		a.check(t, 200, "")
	}
	put(projectPath(id), `{"name":"Acme Shop","description":"Boots"}`)
	put(projectPath(id)+"/service-settings", `{"mailEnabled":true}`)
	put(fmt.Sprintf("/api/mail/projects/%d/smtp-config", id), `{"host":"mail.acme.example","fromEmail":"shop@acme.example","fromName":"Shop"}`)
	written, err := os.ReadFile(filepath.Join(d.dir, "acme.hcl"))
	if err != nil {
		t.Fatal(err)
	}
	byAPI := d.audit(t, d.key, fmt.Sprintf("?limit=100&order=asc&requestId=r-1&projectId=%d", id))
	for _, e := range byAPI {
		if e["door"] != "api" || e["actor"] != adaActor || e["key"] != "story" || e["requestId"] != "r-1" || e["projectId"] != float64(id) || e["object"] != "acme" {
			t.Errorf("%v", e)
		}
	}
	d.save(t, map[string]string{"acme.hcl": acme})
	d.reload(t)
	d.save(t, map[string]string{"acme.hcl": string(written)})
	d.reload(t)
	byFile := d.audit(t, d.key, "?limit=100&sort=time")[:3]
	slices.Reverse(byFile)
	told := func(entries []map[string]any) (told []string) {
		for _, e := range entries {
			told = append(told, fmt.Sprint(e["action"], e["changes"]))
		}
		slices.Sort(told)
		return told
	}
	if !slices.Equal(told(byAPI), told(byFile)) || len(byAPI) != 3 {
		t.Errorf("over the API\n%s\nby a save\n%s", strings.Join(told(byAPI), "\n"), strings.Join(told(byFile), "\n"))
	}
	for _, e := range byFile {
		if e["door"] != "file" || e["actor"] != nil || e["key"] != nil || e["requestId"] != nil || e["commit"] != nil {
			t.Errorf("%v", e)
		}
	}
	if all := len(d.audit(t, d.key, "?limit=100")); all != before+9 {
		t.Errorf("%d entries, want %d", all, before+9)
	}
	count := func(key, query string, want int) {
		t.Helper()
		if got := len(d.audit(t, key, query)); got != want {
			t.Errorf("%s: %d entries, want %d", query, got, want)
		}
	}
	count(d.key, "?actor="+url.QueryEscape(adaActor), 3)
	count(d.key, "?actor=story", 3)
	count(d.key, "?action=service-settings.update&limit=100", 3)
	count(d.key, "?from=2100-01-01T00:00:00", 0)
	count(d.key, "?projectId=4711", 0)
	count(d.key, "?limit=2&page=2", 2)
	count(d.key, "?newest=2&limit=100", 2)
	count(d.key, "?newest=2&requestId=r-1", 0)
	count(other, "?limit=100", 0)
	count(other, fmt.Sprint("?projectId=", d.projectID(t, "other")), 0)
	d.in(t).ask(http.MethodGet, fmt.Sprint(auditPath, "?projectId=", id), other).check(t, 403, "FORBIDDEN")
	a := d.in(t).ask(http.MethodGet, auditPath+"?projectId=x&actor=&from=now&to=1&requestId=&action=&newest=0&page=0&sort=door&order=up", d.key)
	a.check(t, 400, "VALIDATION_ERROR")
	if got := a.fields(); !sameFields(got, "projectId", "actor", "action", "requestId", "newest", "from", "to", "page", "sort", "order") {
		t.Errorf("fields %v", got)
	}
}

func sameFields(got []string, want ...string) bool {
	got = slices.Sorted(slices.Values(got))
	slices.Sort(want)
	return slices.Equal(got, want)
}

// A secret shows as changed, whether it is given over the API or in a file.
func TestAuditShowsNoSecret(t *testing.T) {
	t.Parallel()
	d := newDesk(t, map[string]string{"acme.hcl": "sealing {\n  recipients = [\"{{recipient}}\"]\n}\nproject \"acme\" {\n  name = \"Acme\"\n}\n"})
	path := fmt.Sprintf("/projects/%d/smtp-config", d.projectID(t, "acme"))
	d.mail(t, http.MethodPost, path, `{"host":"smtp.acme.example","fromEmail":"a@acme.example","username":"u","password":"correct horse"}`).check(t, 201, "")
	d.mail(t, http.MethodPut, path, `{"host":"smtp.acme.example","fromEmail":"a@acme.example","username":"u","password":"battery staple"}`).check(t, 200, "")
	content, err := os.ReadFile(filepath.Join(d.dir, "acme.hcl"))
	if err != nil {
		t.Fatal(err)
	}
	d.save(t, map[string]string{"acme.hcl": strings.Replace(string(content), "sealed(", "sealed  (", 1) + "# saved\n"})
	d.reload(t)
	entries := d.audit(t, d.key, "?order=asc&limit=100")
	if e := entries[len(entries)-1]; e["action"] != "smtp-config.update" ||
		!reflect.DeepEqual(e["changes"], []any{map[string]any{"field": "password", "secret": true, "before": nil, "after": nil}}) {
		t.Errorf("%v", e)
	}
	if body := string(d.in(t).ask(http.MethodGet, auditPath+"?limit=100", d.key).body); strings.Contains(body, "horse") ||
		strings.Contains(body, "staple") || strings.Contains(body, "AGE-SECRET") || strings.Contains(body, "age-encryption") {
		t.Errorf("a secret is in the trail:\n%s", body)
	}
}

// X-Actor must be a name and an address. A write with another one is refused before anything is done.
func TestActorRefused(t *testing.T) {
	t.Parallel()
	d := newDesk(t, map[string]string{"acme.hcl": "project \"acme\" {\n  name = \"Acme\"\n}\n"})
	path := projectPath(d.projectID(t, "acme"))
	files := d.files(t)
	for name, headers := range map[string][]string{
		"no address":     {"X-Actor: Ada"},
		"empty":          {"X-Actor: "},
		"10 KB":          {"X-Actor: " + strings.Repeat("a", 10<<10) + " <ada@acme.example>"},
		"257 bytes":      {"X-Actor: " + strings.Repeat("a", 238) + " <ada@acme.example>"},
		"two":            {"X-Actor: " + adaActor, "X-Actor: " + adaActor},
		"two addresses":  {"X-Actor: ada@acme.example, bob@acme.example"},
		"no UTF-8":       {"X-Actor: \xff <ada@acme.example>"},
		"control":        {"X-Actor: A\x01da <ada@acme.example>"},
		"escape":         {"X-Actor: A\x1b[31mda <ada@acme.example>"},
		"line separator": {"X-Actor: A\u2028da <ada@acme.example>"},
		"C1":             {"X-Actor: A\u0085da <ada@acme.example>"},
	} {
		a := d.in(t).askBody(http.MethodPut, path, d.key, `{"name":"New"}`, headers...)
		if a.check(t, 400, "VALIDATION_ERROR"); strings.ContainsAny(headers[0], "\x01\x1b") {
			continue // the message itself is malformed
		}
		if !slices.Equal(a.fields(), []string{"X-Actor"}) {
			t.Errorf("%s: fields %v", name, a.fields())
		}
	}
	if now := d.files(t); !maps.Equal(now, files) {
		t.Error("a refused write has changed a file")
	}
	for _, actor := range []string{adaActor, "ada@acme.example", "Größe <ada@acme.example>", `"Ada, L." <ada@acme.example>`} {
		d.in(t).askBody(http.MethodPut, path, d.key, fmt.Sprintf(`{"name":%q}`, actor), "X-Actor: "+actor).check(t, 200, "")
		if e := d.audit(t, d.key, "?limit=1")[0]; e["actor"] != actor {
			t.Errorf("%s: %v", actor, e)
		}
	}
	d.in(t).ask(http.MethodGet, path, d.key, "X-Actor: nobody").check(t, 200, "") // counts for writes only
}

// When the ledger refuses the entry of a write, the files are as they were, and the answer is 503. A save goes live.
func TestWriteWithoutAuditTrail(t *testing.T) {
	t.Parallel()
	var broken atomic.Bool
	disk := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if broken.Load() && op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
			return syscall.EIO
		}
		return nil
	}))
	d := &desk{dir: t.TempDir(), store: resolver.Options{DataDir: t.TempDir(), Disk: resolver.DiskOptions{
		Ledger: func(dir string, o ledger.Options) (*ledger.Ledger, error) { o.FS = disk; return ledger.Open(dir, o) }}}}
	d.open(t, map[string]string{"acme.hcl": "project \"acme\" {\n  name = \"Acme\"\n}\n"})
	id := d.projectID(t, "acme")
	broken.Store(true)
	files := d.files(t)
	for range 2 { // the first write finds it out
		d.in(t).askBody(http.MethodPut, projectPath(id), d.key, `{"name":"New"}`).check(t, 503, "UNAVAILABLE")
		d.in(t).ask(http.MethodDelete, projectPath(id), d.key).check(t, 503, "UNAVAILABLE")
		d.in(t).askBody(http.MethodPost, platformProjects, d.key, `{"name":"Made"}`).check(t, 503, "UNAVAILABLE")
		if now := d.files(t); !maps.Equal(now, files) {
			t.Fatalf("the files are %v, were %v", now, files)
		}
	}
	if _, err := d.resolver.ProjectBySlug("made"); err == nil || d.projectName(t, "acme") != "Acme" {
		t.Error("a refused write is served")
	}
	d.save(t, map[string]string{"acme.hcl": "project \"acme\" {\n  name = \"Saved\"\n}\n"})
	d.reload(t)
	if name := d.projectName(t, "acme"); name != "Saved" {
		t.Errorf("a save is not served: %s", name)
	}
	if status, state := d.source.Status(), "ok"; string(status.State) != state {
		t.Errorf("state %s, %s", status.State, status.Error)
	}
}

package configsrc_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"fingerpost/configsrc/compare"
	"fingerpost/configsrc/edits"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

// overlayFiles are the live files of the tests below.
var overlayFiles = map[string]string{
	"a.hcl": `project "alpha" {
  name = "Alpha"
  domain "a.example" { primary = true }
  domain "*.a.example" {}
  service_settings { sms_enabled = true }
  template "welcome" {
    name = "Welcome"
    subject_template = "Hi"
    body_text = file("mail/welcome.txt")
  }
}
`,
	"b.hcl": `project "beta" {
  name = "Beta"
  labels = { tier = "gold" }
  domain "b.example" {}
  smtp_config {
    host = "mail.b.example"
    from_email = "b@b.example"
  }
}
project "gamma" {
  name = "Gamma"
  domain "g.example" {}
}
`,
	"defaults.hcl": `defaults {
  service_settings { mail_enabled = true }
}
template "reset" {
  name = "Reset"
  subject_template = "Reset"
  body_text = "Reset it."
}
`,
	"keys.hcl": `key "both" {
  id = "abcdefgh"
  allow = ["read"]
  hash = "sha256:` + strings.Repeat("0", 64) + `"
  projects = ["alpha", "gamma"]
}
`,
	"hooks.hcl": `webhook "crm" {
  url = "https://crm.example/"
  secret = env("CRM")
  projects = ["alpha", "beta"]
}
`,
	"logins.hcl":       loginOf("company", `["alpha", "beta"]`, `["gamma"]`),
	"inbound.hcl":      inboundOf("ses", `["alpha", "gamma"]`),
	"mail/welcome.txt": "Welcome!\n",
}

// overlayChanges are differences from overlayFiles: new contents, "" for a file that goes.
var overlayChanges = map[string]map[string]string{
	"nothing":    {},
	"a name":     {"a.hcl": strings.Replace(overlayFiles["a.hcl"], `"Alpha"`, `"Other"`, 1)},
	"a new slug": {"b.hcl": strings.Replace(overlayFiles["b.hcl"], `"gamma" {`, `"delta" {`, 1)},
	"a project":  {"c.hcl": "project \"new\" {\n  name = \"New\"\n  domain \"new.example\" {}\n}\n"},
	"a removal":  {"a.hcl": "", "mail/welcome.txt": ""},
	"one of two": {"b.hcl": overlayFiles["b.hcl"][:strings.Index(overlayFiles["b.hcl"], `project "gamma"`)]},
	"a move":     {"b.hcl": overlayFiles["b.hcl"][:strings.Index(overlayFiles["b.hcl"], `project "gamma"`)], "g.hcl": overlayFiles["b.hcl"][strings.Index(overlayFiles["b.hcl"], `project "gamma"`):]},
	"a domain":   {"a.hcl": strings.Replace(overlayFiles["a.hcl"], "  domain \"*", "  domain \"deep.a.example\" {}\n  domain \"*", 1)},
	"a domain's move": {"a.hcl": strings.Replace(overlayFiles["a.hcl"], "  domain \"*.a.example\" {}\n", "", 1),
		"b.hcl": strings.Replace(overlayFiles["b.hcl"], "  domain \"g", "  domain \"*.a.example\" {}\n  domain \"g", 1)},
	"defaults":     {"defaults.hcl": strings.Replace(overlayFiles["defaults.hcl"], "mail_enabled = true", "sms_enabled = true", 1)},
	"no defaults":  {"defaults.hcl": ""},
	"a body":       {"mail/welcome.txt": "Welcome, all of you!\n"},
	"a template":   {"defaults.hcl": strings.Replace(overlayFiles["defaults.hcl"], "Reset it.", "Reset it now.", 1)},
	"a key's list": {"keys.hcl": strings.Replace(overlayFiles["keys.hcl"], `"alpha", `, "", 1)},
	"a webhook":    {"hooks.hcl": strings.Replace(overlayFiles["hooks.hcl"], `"alpha", `, "", 1)},
	"no webhook":   {"hooks.hcl": ""},
	"a login":      {"logins.hcl": loginOf("company", `["beta"]`, `["alpha"]`)},
	"no login":     {"logins.hcl": ""},
	"an inbound":   {"inbound.hcl": inboundOf("ses", `["beta"]`)},
	"no inbound":   {"inbound.hcl": ""},
	"sealing":      {"sealing.hcl": "sealing {\n  require = true\n  recipients = [\"age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p\"]\n}\n"},
	"no SMTP": {"b.hcl": strings.Replace(overlayFiles["b.hcl"], `  smtp_config {
    host = "mail.b.example"
    from_email = "b@b.example"
  }
`, "", 1)},
}

func writeTree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		at := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, []byte(content), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// differenceTo returns the way from overlayFiles to a change, and the files after it.
func differenceTo(change map[string]string) (*compare.Difference, map[string]string) {
	after := maps.Clone(overlayFiles)
	d := &compare.Difference{}
	for _, name := range slices.Sorted(maps.Keys(change)) {
		e := catalog.FileEdit{Path: name}
		if was, is := overlayFiles[name]; is {
			e.Before = []byte(was)
		}
		if delete(after, name); change[name] != "" {
			e.After, after[name] = []byte(change[name]), change[name]
		}
		d.Files = append(d.Files, e)
	}
	d.After = func(path string) ([]byte, error) {
		if text, is := after[path]; is {
			return []byte(text), nil
		}
		return nil, nil
	}
	return d, after
}

// A shownState is what reads of a state give: of a Resolver, or of an Overlay of one.
type shownState interface {
	edits.Facts
	Logins() []catalog.Login
	Inbounds() []catalog.Inbound
	ProjectBySlug(slug string) (*catalog.Project, error)
	ServiceSettings(id int64) (*catalog.ServiceSettings, error)
	AuthSettings(id int64) (*catalog.AuthSettings, error)
	SMTPConfig(id int64) (*catalog.SMTPConfig, error)
	Domain(project, id int64) (*catalog.Domain, error)
	Domains(project int64, q resolver.Query) ([]*catalog.Domain, int, error)
	Template(project, id int64) (*catalog.Template, error)
	OwnTemplate(project int64, code string) (*catalog.Template, error)
	Templates(project int64, q resolver.Query) ([]*catalog.Template, int, error)
}

// showState reads all that can be read, as texts by question. Times are left out: they are those of different stores.
func showState(s shownState, where interface {
	Explain(project catalog.UUID) (*catalog.Explained, error)
	Block(project catalog.UUID) (*edits.Block, error)
}, ids []int64, domainIDs []int64, files []string) map[string]string {
	shown := map[string]string{}
	note := func(question string, v any, err error) {
		v = withoutTimes(v)
		text, jerr := json.Marshal(v)
		if jerr != nil {
			panic(jerr)
		}
		shown[question] = fmt.Sprintf("%s %v", text, err)
	}
	for _, slug := range []string{"alpha", "beta", "gamma", "delta", "new"} {
		p, err := s.ProjectBySlug(slug)
		note("slug "+slug, p, err)
		var names []string
		for _, h := range s.ListsNaming(slug) {
			names = append(names, string(h.Kind)+" "+h.Name)
		}
		slices.Sort(names)
		note("lists naming "+slug, names, nil)
	}
	note("webhooks", s.Webhooks(), nil)
	note("logins", s.Logins(), nil)
	note("inbounds", s.Inbounds(), nil)
	for _, id := range ids {
		at := fmt.Sprintf("project %d: ", id)
		p, err := s.ProjectByID(id)
		note(at+"itself", p, err)
		if err == nil {
			x, err := where.Explain(p.UUID)
			note(at+"explained", x, err)
			b, err := where.Block(p.UUID)
			note(at+"block", b, err)
		}
		service, err := s.ServiceSettings(id)
		note(at+"service", service, err)
		auth, err := s.AuthSettings(id)
		note(at+"auth", auth, err)
		smtp, err := s.SMTPConfig(id)
		note(at+"smtp", smtp, err)
		own, err := s.OwnTemplate(id, "welcome")
		note(at+"welcome", own, err)
		for _, q := range []resolver.Query{{}, {Sort: "id", Desc: true, Page: 1, Limit: 1}, {Sort: "nope"}} {
			rows, total, err := s.Domains(id, q)
			note(fmt.Sprintf("%sdomains %v", at, q), rows, err)
			note(fmt.Sprintf("%snumber of domains %v", at, q), total, nil)
			templates, total, err := s.Templates(id, q)
			note(fmt.Sprintf("%stemplates %v", at, q), templates, err)
			note(fmt.Sprintf("%snumber of templates %v", at, q), total, nil)
			for _, row := range templates {
				one, err := s.Template(id, row.ID)
				note(fmt.Sprintf("%stemplate %d", at, row.ID), one, err)
			}
		}
		for _, domain := range domainIDs {
			d, err := s.Domain(id, domain)
			note(fmt.Sprintf("%sdomain %d", at, domain), d, err)
		}
	}
	for _, name := range []string{"a.example", "*.a.example", "deep.a.example", "b.example", "g.example", "new.example"} {
		d, err := s.DomainNamed(name)
		note("named "+name, d, err)
		below := []string{}
		err = s.DomainsBelow(name, func(d *catalog.Domain) bool {
			below = append(below, fmt.Sprint(d.Name, d.ID, d.ProjectID))
			return true
		})
		slices.Sort(below)
		note("below "+name, below, err)
	}
	for _, path := range files {
		b, err := s.LastGood(path)
		note("bytes of "+path, string(b), err)
		row, err := s.File(path)
		if err == nil {
			note("row of "+path, row.Refs, nil)
		} else {
			note("row of "+path, nil, err)
		}
	}
	note("defaults", s.Defaults(), nil)
	note("sealing", s.Sealing(), nil)
	return shown
}

// withoutTimes returns a copy of a value without the times of its objects.
func withoutTimes(v any) any {
	switch v := v.(type) {
	case *catalog.Project:
		if v != nil {
			c := *v
			c.CreatedAt, c.UpdatedAt = time.Time{}, time.Time{}
			return c
		}
	case *catalog.Domain:
		if v != nil {
			c := *v
			c.CreatedAt, c.UpdatedAt = time.Time{}, time.Time{}
			return c
		}
	case *catalog.Template:
		if v != nil {
			c := *v
			c.CreatedAt, c.UpdatedAt = time.Time{}, time.Time{}
			return c
		}
	case []*catalog.Domain:
		out := []any{}
		for _, d := range v {
			out = append(out, withoutTimes(d))
		}
		return out
	case []*catalog.Template:
		out := []any{}
		for _, t := range v {
			out = append(out, withoutTimes(t))
		}
		return out
	}
	return v
}

// An overlay shows what a second store filled from the branch's files would show.
func TestOverlayShowsTheBranch(t *testing.T) {
	live := newNode(t, writeTree(t, overlayFiles), nodeOptions{loadOnly: true})
	for name, change := range overlayChanges {
		t.Run(name, func(t *testing.T) {
			d, after := differenceTo(change)
			other := newNode(t, writeTree(t, after), nodeOptions{loadOnly: true})
			if problems := other.source.Status().Problems; problems.HasErrors() {
				t.Fatal(problems)
			}
			layer := newLayer(t, live)
			over, err := live.source.Overlay(d, layer)
			if err != nil {
				t.Fatal(err)
			}
			layer.Bring = over.Bring
			var ids, domains []int64
			for _, r := range []*resolver.Resolver{live.resolver, other.resolver} {
				err := r.EachProject(func(p *catalog.Project) bool {
					ids = append(ids, p.ID)
					rows, _, err := r.Domains(p.ID, resolver.Query{})
					if err != nil {
						t.Error(err)
					}
					for _, d := range rows {
						domains = append(domains, d.ID)
					}
					return true
				})
				if err != nil {
					t.Fatal(err)
				}
			}
			ids, domains = distinct(ids), distinct(domains)
			files := slices.Sorted(maps.Keys(after))
			files = slices.DeleteFunc(files, func(name string) bool { return !strings.HasSuffix(name, ".hcl") })
			got := showState(layer, over, ids, domains, files)
			want := showState(other.resolver, other.source, ids, domains, files)
			for question := range want {
				if got[question] != want[question] {
					t.Errorf("%s: %s, a store of its own says %s", question, got[question], want[question])
				}
			}
			if len(want) < 90 || len(got) != len(want) {
				t.Errorf("%d and %d answers", len(got), len(want))
			}
		})
	}
}

func distinct(ids []int64) []int64 {
	slices.Sort(ids)
	return slices.Compact(ids)
}

// A countingLayer counts the files that were decoded for it.
type countingLayer struct {
	*resolver.Overlay
	put []string
}

func (l *countingLayer) Put(files ...catalog.FileChange) error {
	for i := range files {
		l.put = append(l.put, files[i].Path)
	}
	return l.Overlay.Put(files...)
}

func newLayer(t *testing.T, live *node) *resolver.Overlay {
	t.Helper()
	o, err := live.resolver.Overlay(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = o.Close() })
	return o
}

// An overlay reads and decodes the files that differ, and those that it writes, with any number of files.
func TestOverlayReadsFewFiles(t *testing.T) {
	files := maps.Clone(overlayFiles)
	for i := range 300 {
		files[fmt.Sprintf("many/%d.hcl", i)] = project(fmt.Sprintf("many%d", i))
	}
	live := newNode(t, writeTree(t, files), nodeOptions{loadOnly: true})
	d, after := differenceTo(overlayChanges["a name"])
	maps.Copy(after, files)
	after["a.hcl"] = overlayChanges["a name"]["a.hcl"]
	var asked []string
	from := d.After
	d.After = func(path string) ([]byte, error) {
		asked = append(asked, path)
		return from(path)
	}
	layer := &countingLayer{Overlay: newLayer(t, live)}
	over, err := live.source.Overlay(d, layer)
	if err != nil {
		t.Fatal(err)
	}
	p, err := layer.ProjectBySlug("beta")
	if err != nil {
		t.Fatal(err)
	}
	err = updateProject(context.Background(), over, p.UUID, func(p *catalog.ProjectConfig) error {
		p.Project.Name = "Changed"
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"a.hcl", "b.hcl"}; !reflect.DeepEqual(layer.put, want) {
		t.Errorf("decoded %q, want %q", layer.put, want)
	}
	slices.Sort(asked)
	if want := []string{"b.hcl", "mail/welcome.txt"}; !reflect.DeepEqual(slices.Compact(asked), want) {
		t.Errorf("read %q, want %q", asked, want)
	}
	writes := over.Writes()
	if len(writes) != 1 || len(writes[0].Files) != 1 || !strings.Contains(string(writes[0].Files[0].After), `"Changed"`) ||
		string(writes[0].Files[0].Before) != overlayFiles["b.hcl"] {
		t.Errorf("the writes: %+v", writes)
	}
	if now, err := live.resolver.ProjectBySlug("beta"); err != nil || now.Name != "Beta" {
		t.Errorf("live: %+v, %v", now, err)
	}
	if text := read(t, filepath.Join(live.dir, "b.hcl")); text != overlayFiles["b.hcl"] {
		t.Errorf("the live file was written:\n%s", text)
	}
}

// What somebody has saved and not committed is no part of a proposal: the branch's file is shown, changed and compared.
func TestOverlayOfUncommittedSaves(t *testing.T) {
	saved := maps.Clone(overlayFiles)
	saved["a.hcl"] = strings.Replace(saved["a.hcl"], `"Alpha"`, `"By hand"`, 1)
	saved["mail/welcome.txt"] = "By hand\n"
	saved["new.hcl"] = strings.Replace(overlayFiles["a.hcl"], "a.example", "new.example", 2)
	saved["new.hcl"] = strings.Replace(saved["new.hcl"], "alpha", "uncommitted", 1)
	live := newNode(t, writeTree(t, saved), nodeOptions{loadOnly: true})
	d, _ := differenceTo(map[string]string{"mail/welcome.txt": "Welcome!\n"}) // the file of another uses it, too
	layer := newLayer(t, live)
	over, err := live.source.Overlay(d, layer)
	if err != nil {
		t.Fatal(err)
	}
	layer.Bring = over.Bring
	p, err := layer.ProjectBySlug("alpha")
	if err != nil || p.Name != "Alpha" {
		t.Fatalf("%+v, %v", p, err)
	}
	if w, err := layer.OwnTemplate(p.ID, "welcome"); err != nil || w.BodyText != "Welcome!\n" {
		t.Errorf("%+v, %v", w, err)
	}
	err = updateProject(context.Background(), over, p.UUID, func(c *catalog.ProjectConfig) error {
		if c.Project.Name != "Alpha" {
			t.Errorf("the write sees %q", c.Project.Name)
		}
		c.Project.Name = "Proposed"
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if w := over.Writes(); len(w) != 1 || string(w[0].Files[0].After) != strings.Replace(overlayFiles["a.hcl"], `"Alpha"`, `"Proposed"`, 1) {
		t.Errorf("%+v", w)
	}
	// A project in a file that is nowhere in the branch can be read, and not changed.
	own, err := layer.ProjectBySlug("uncommitted")
	if err != nil {
		t.Fatal(err)
	}
	err = updateProject(context.Background(), over, own.UUID, func(c *catalog.ProjectConfig) error {
		c.Project.Name = "No"
		return nil
	})
	if e, is := errors.AsType[*catalog.Error](err); !is || e.Code != catalog.CodeFileChanged || !strings.Contains(e.Message, "commit it first") {
		t.Errorf("%v", err)
	}
	if err := createProject(context.Background(), over, &catalog.Project{UUID: catalog.NewUUID(), Name: "New", Slug: "new", Status: catalog.StatusDraft}); err != nil {
		t.Fatal(err)
	}
	if w := over.Writes(); w[len(w)-1].Files[0].Path != "new-2.hcl" {
		t.Errorf("the new project's file is %s", w[len(w)-1].Files[0].Path)
	}
	if _, err := os.Stat(filepath.Join(live.dir, "new-2.hcl")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a proposed project is in the folder: %v", err)
	}
}

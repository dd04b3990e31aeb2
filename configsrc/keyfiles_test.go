package configsrc_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"fingerpost/cmd/testrig"
	"fingerpost/configsrc"
	"fingerpost/configsrc/atomicfile"
	"fingerpost/configsrc/hclfile"
	"fingerpost/configsrc/offline"
	"fingerpost/resolver/catalog"
)

// keyOf returns a key block for a name of six or more letters, which is its id, too.
func keyOf(name, projects string) string {
	out, _ := hclfile.Format(fmt.Appendf(nil, "key %q {\n  id = %q\n  hash = %q\n  allow = [\"read\"]\n  projects = %s\n}\n",
		name, name, catalog.HashKeyText(name), projects))
	return string(out)
}

// hookOf returns a webhook block.
func hookOf(name, projects string) string {
	out, _ := hclfile.Format(fmt.Appendf(nil, "webhook %q {\n  url = \"https://hooks.example/\"\n  secret = env(\"HOOK\")\n  projects = %s\n}\n",
		name, projects))
	return string(out)
}

// inboundOf returns an inbound block.
func inboundOf(name, projects string) string {
	out, _ := hclfile.Format(fmt.Appendf(nil, "inbound %q {\n  format = \"json\"\n  secret = env(\"IN\")\n  projects = %s\n}\n", name, projects))
	return string(out)
}

// loginOf returns a login block with a rule for each list, and one for every project.
func loginOf(name string, projects ...string) string {
	text := fmt.Sprintf("login %q {\n  issuer = \"https://login.example/\"\n  client_id = \"fingerpost\"\n", name)
	for _, list := range append([]string{""}, projects...) {
		if list != "" {
			list = "    projects = " + list + "\n"
		}
		text += "\n  rule {\n    claim = \"groups\"\n    value = \"ops\"\n    allow = [\"read\"]\n" + list + "  }\n"
	}
	out, _ := hclfile.Format([]byte(text + "}\n"))
	return string(out)
}

// A rename or a deletion, with lists of keys, webhooks, logins and inbound blocks in four further files and in the project's own, takes effect as
// a whole after a crash at any step, or not at all; and at no step does a list name a slug that another project has.
func TestSlugMoveDies(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	acme := "project \"acme\" {\n  name = \"Acme\"\n}\n"
	before := map[string]string{
		"acme.hcl": acme + "\n" + keyOf("inside", `["acme"]`), "hooks.hcl": hookOf("crm", `["acme", "alone"]`) + hookOf("cdn", `["acme"]`) + inboundOf("ses", `["acme", "alone"]`), "logins.hcl": loginOf("company", `["acme"]`, `["alone", "acme"]`), "alone.hcl": "project \"alone\" {\n  name = \"Alone\"\n}\n",
		"keys.hcl": keyOf("outside", `["alone", "acme"]`), "team/keys.hcl": keyOf("deepest", `["acme"]`),
	}
	uuid := catalog.DeriveProjectUUID
	rename := func(slug string) func(*configsrc.Source) error {
		return func(s *configsrc.Source) error {
			return updateProject(context.Background(), s, uuid(slug), func(p *catalog.ProjectConfig) error {
				p.Project.Slug = "shop"
				return nil
			})
		}
	}
	remove := func(slug string) func(*configsrc.Source) error {
		return func(s *configsrc.Source) error {
			return deleteProject(context.Background(), s, uuid(slug), func(*catalog.ProjectConfig) error { return nil })
		}
	}
	with := func(changed map[string]string) map[string]string {
		all := map[string]string{}
		for name, text := range before {
			all[name] = text
		}
		for name, text := range changed {
			if all[name] = text; text == "" {
				delete(all, name)
			}
		}
		return all
	}
	for name, c := range map[string]struct {
		write func(*configsrc.Source) error
		after map[string]string
	}{
		"rename": {rename("acme"), with(map[string]string{
			"acme.hcl":  fmt.Sprintf("project \"shop\" {\n  name = \"Acme\"\n  uuid = %q\n}\n\n%s", uuid("acme"), keyOf("inside", `["shop"]`)),
			"hooks.hcl": hookOf("crm", `["shop", "alone"]`) + hookOf("cdn", `["shop"]`) + inboundOf("ses", `["shop", "alone"]`), "logins.hcl": loginOf("company", `["shop"]`, `["alone", "shop"]`),
			"keys.hcl": keyOf("outside", `["alone", "shop"]`), "team/keys.hcl": keyOf("deepest", `["shop"]`)})},
		"delete": {remove("acme"), with(map[string]string{
			"acme.hcl": keyOf("inside", `[]`), "hooks.hcl": hookOf("crm", `["alone"]`) + hookOf("cdn", `[]`) + inboundOf("ses", `["alone"]`), "logins.hcl": loginOf("company", `[]`, `["alone"]`), "keys.hcl": keyOf("outside", `["alone"]`), "team/keys.hcl": keyOf("deepest", `[]`)})},
		"delete with the file": {remove("alone"), with(map[string]string{"alone.hcl": "",
			"hooks.hcl": hookOf("crm", `["acme"]`) + hookOf("cdn", `["acme"]`) + inboundOf("ses", `["acme"]`), "logins.hcl": loginOf("company", `["acme"]`, `["acme"]`), "keys.hcl": keyOf("outside", `["acme"]`)})},
	} {
		t.Run(name, func(t *testing.T) {
			whole, none := 0, 0
			for steps := int64(0); ; steps++ {
				dir := t.TempDir()
				for name, text := range before {
					put(t, filepath.Join(dir, name), text)
				}
				left := new(atomic.Int64)
				left.Store(1 << 40)
				_, s, end := openDying(t, dir, dyingDisk{left: left})
				left.Store(steps)
				err := c.write(s)
				alive := left.Load() >= 0
				end()

				r, s, end := openDying(t, dir, atomicfile.OSDisk{})
				got := filesIn(t, dir)
				switch fmt.Sprint(got) {
				case fmt.Sprint(c.after):
					whole++
				case fmt.Sprint(before):
					if none++; err == nil {
						t.Errorf("after %d steps: the write was answered and is not there", steps)
					}
				default:
					t.Errorf("after %d steps (%v): %q", steps, err, got)
				}
				if unknown := r.UnknownSlugs(); len(unknown) > 0 || s.Status().Warnings > 4 { // that a list is empty
					t.Errorf("after %d steps: %v, %v", steps, unknown, s.Status().Problems)
				}
				end()
				if alive {
					if err != nil {
						t.Errorf("with %d steps: %v", steps, err)
					}
					break
				}
			}
			if whole < 2 || none < 5 {
				t.Errorf("%d times whole, %d times not: were the steps counted?", whole, none)
			}
		})
	}
}

// A slug that a person leaves in a key's list, or misspells, is reported with its position; the key and its file stay
// in force.
func TestUnknownSlugIsTold(t *testing.T) {
	testrig.Slow(t)
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "acme.hcl"), project("acme"))
	write(t, filepath.Join(dir, "shop.hcl"), project("web-shop"))
	keys := write(t, filepath.Join(dir, "keys.hcl"), keyOf("first1", `["acme", "webshop", "nobody", "nobody"]`))
	n := newNode(t, dir, nodeOptions{})
	warned := func(want ...string) {
		t.Helper()
		st := n.source.Status()
		var got []string
		for _, d := range st.Problems {
			if d.Severity != hclfile.Warning || d.File != keys {
				t.Errorf("%+v", d)
			}
			got = append(got, fmt.Sprintf("%d:%d %s; %s", d.Start.Line, d.Start.Column, d.Summary, d.Detail))
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") || st.Quarantined != 0 || st.State != configsrc.StateOK || st.Warnings != len(want) {
			t.Errorf("%d quarantined, %s, %d warnings:\n%s\nwant:\n%s", st.Quarantined, st.State, st.Warnings, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	acme, err := n.resolver.ProjectBySlug("acme")
	must(t, err)
	covers := func(id int64) bool { return n.resolver.Keys().Lookup([]byte("first1")).Covers(id) }
	warned("5:23 key \"first1\" names the project \"webshop\", which no file declares; did you mean `web-shop`?",
		"5:34 key \"first1\" names the project \"nobody\", which no file declares; put the project's present slug in its place, or take it out")
	if !covers(acme.ID) {
		t.Error("the key has lost its other project")
	}
	checked, err := offline.Check(dir)
	must(t, err)
	if fmt.Sprint(checked.Problems) != fmt.Sprint(n.source.Status().Problems) {
		t.Errorf("Check says %v", checked.Problems)
	}
	// One line more above: the position follows.
	write(t, keys, "# keys\n"+keyOf("first1", `["acme", "nobody"]`))
	n.problem("keys.hcl", "nobody")
	n.until("the place has moved", func() bool { return n.source.Status().Problems[0].Start.Line == 6 })
	write(t, filepath.Join(dir, "nobody.hcl"), project("nobody"))
	n.until("nothing is wrong", func() bool { return n.source.Status().Warnings == 0 })
	// A person renames the slug, with the uuid: the key is left behind.
	write(t, filepath.Join(dir, "acme.hcl"), fmt.Sprintf("project \"acme2\" {\n  name = \"acme\"\n  uuid = %q\n}\n", acme.UUID))
	n.problem("keys.hcl", "did you mean `acme2`?")
	if covers(acme.ID) {
		t.Error("the key covers what its list does not name")
	}
	must(t, os.Remove(keys))
	n.until("nothing is wrong", func() bool { return n.source.Status().Warnings == 0 })
}

// A hookedDisk calls before in front of each step of a write.
type hookedDisk struct {
	atomicfile.OSDisk
	before func()
}

func (d hookedDisk) CreateTemp(dir, pattern string, perm fs.FileMode) (atomicfile.TempFile, error) {
	d.before()
	return d.OSDisk.CreateTemp(dir, pattern, perm)
}

func (d hookedDisk) Rename(from, to string) error {
	d.before()
	return d.OSDisk.Rename(from, to)
}

func (d hookedDisk) Exchange(a, b string) error {
	d.before()
	return d.OSDisk.Exchange(a, b)
}

func (d hookedDisk) Remove(name string) error {
	d.before()
	return d.OSDisk.Remove(name)
}

func (d hookedDisk) SyncFolder(dir string) error {
	d.before()
	return d.OSDisk.SyncFolder(dir)
}

// A person who saves a key file before any step of a rename loses nothing: the save is in the file, with the new slug
// if the rename came after it.
func TestKeyFileSavedDuringRename(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	before, after := 0, 0
	for at := 0; ; at++ {
		dir := t.TempDir()
		put(t, filepath.Join(dir, "acme.hcl"), "project \"acme\" {\n  name = \"Acme\"\n}\n")
		put(t, filepath.Join(dir, "a/keys.hcl"), keyOf("first1", `["acme"]`))
		keys := filepath.Join(dir, "b/keys.hcl")
		put(t, keys, keyOf("second", `["acme"]`))
		var mu sync.Mutex // folders are synced concurrently
		steps, armed := 0, false
		_, s, end := openDying(t, dir, hookedDisk{before: func() {
			mu.Lock()
			defer mu.Unlock()
			if armed && steps == at {
				replace(t, keys, "# by hand\n"+keyOf("second", `["acme"]`))
			}
			if armed {
				steps++
			}
		}})
		mu.Lock()
		armed = true
		mu.Unlock()
		err := updateProject(context.Background(), s, catalog.DeriveProjectUUID("acme"), func(p *catalog.ProjectConfig) error {
			p.Project.Slug = "shop"
			return nil
		})
		end()
		got := filesIn(t, dir)
		saved, renamed := "# by hand\n"+keyOf("second", `["acme"]`), "# by hand\n"+keyOf("second", `["shop"]`)
		switch is := got["b/keys.hcl"]; {
		case steps <= at: // the rename is over without the save
			if err != nil || before == 0 || after == 0 {
				t.Errorf("%v; %d saves came in before the exchange, %d after it", err, before, after)
			}
			return
		case err != nil || len(got) != 3 || !strings.Contains(got["acme.hcl"], `"shop"`) || !strings.Contains(got["a/keys.hcl"], `["shop"]`):
			t.Errorf("saved before step %d: %v, %q", at, err, got)
		case is == renamed:
			before++
		case is == saved:
			after++
		default:
			t.Errorf("saved before step %d: the save is lost: %q", at, is)
		}
	}
}

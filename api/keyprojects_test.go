package api_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"fingerpost/cmd/testrig"
	"fingerpost/configsrc/hclfile"
	"fingerpost/resolver/catalog"
)

// keyText makes a key and the text of its block, formatted. lists is what stands for the projects attribute.
func keyText(name, allow, lists string) (key, block string) {
	key, id := catalog.NewKeyText()
	out, _ := hclfile.Format(fmt.Appendf(nil, "key %q {\n  id = %q\n  hash = %q\n  allow = [%s]\n%s}\n", name, id, catalog.HashKeyText(key), allow, lists))
	return key, string(out)
}

// projectID is the id of the project that has the slug now.
func (d *desk) projectID(t testing.TB, slug string) int64 {
	t.Helper()
	p, err := d.resolver.ProjectBySlug(slug)
	if err != nil {
		t.Fatalf("%s: %v", slug, err)
	}
	return p.ID
}

const platformProjects = "/api/platform/projects"

func projectPath(id int64) string { return fmt.Sprintf("%s/%d", platformProjects, id) }

// fileHas compares one file.
func (d *desk) fileHas(t testing.TB, name, want string) {
	t.Helper()
	if got, err := os.ReadFile(filepath.Join(d.dir, name)); err != nil || string(got) != want {
		t.Errorf("%s, %v:\n%s\nwant:\n%s", name, err, got, want)
	}
}

// TestKeyFollowsRenamedSlug: an API rename rewrites the lists of all keys that name the slug, in every file. The key
// keeps its project, and cannot reach a new one that takes the old slug.
func TestKeyFollowsRenamedSlug(t *testing.T) {
	acme, first := keyText("acme", `"read", "write", "resolve"`, "  projects = [\"acme\"] # the shop\n")
	_, second := keyText("both", `"read"`, "\n  # two of them\n  projects = [\n    \"globex\",\n    # the shop\n    \"acme\", # second\n  ]\n")
	_, third := keyText("team", `"read"`, "  projects = [\"acme\", \"acme\"]\n")
	_, inline := keyText("inline", `"read"`, "  projects = [\"acme\"]\n")
	d := newDesk(t, map[string]string{
		"acme.hcl":      "# head\nproject \"acme\" {\n  name = \"Acme\"\n  domain \"acme.example\" {}\n}\n\n" + inline,
		"globex.hcl":    "project \"globex\" {\n  name = \"Globex\"\n}\n",
		"keys.hcl":      "# keys\n" + first + "\n" + second,
		"team/keys.hcl": third,
	})
	id := d.projectID(t, "acme")
	ask := func(method, path, key, body string) *answer {
		t.Helper()
		return d.askBody(method, path, key, body, "Content-Type: application/json")
	}
	ask("PUT", projectPath(id), d.key, `{"slug":"acme-shop"}`).check(t, 200, "")
	ask("GET", projectPath(id), acme, "").check(t, 200, "")
	ask("GET", platformProjects+"/by-slug/acme-shop", acme, "").check(t, 200, "")
	ask("GET", platformProjects+"/resolve?domain=acme.example", acme, "").check(t, 200, "")
	renamed := func(s string) string { return strings.ReplaceAll(s, `"acme"`, `"acme-shop"`) }
	only := func(s string) string { // the key of the name acme keeps its name
		return strings.Replace(renamed(s), `key "acme-shop"`, `key "acme"`, 1)
	}
	d.fileHas(t, "keys.hcl", only("# keys\n"+first+"\n"+second))
	d.fileHas(t, "team/keys.hcl", renamed(third))
	d.fileHas(t, "acme.hcl", fmt.Sprintf("# head\nproject \"acme-shop\" {\n  name = \"Acme\"\n  uuid = %q\n  domain \"acme.example\" {}\n}\n\n%s",
		catalog.DeriveProjectUUID("acme"), renamed(inline)))

	ask("POST", platformProjects, d.key, `{"name":"Other","slug":"acme"}`).check(t, 201, "")
	other := d.projectID(t, "acme")
	ask("GET", projectPath(other), acme, "").check(t, 403, "FORBIDDEN")
	ask("PUT", projectPath(other), acme, `{"name":"Mine"}`).check(t, 403, "FORBIDDEN")
	ask("GET", platformProjects+"/by-slug/acme", acme, "").check(t, 403, "FORBIDDEN")
	if list := ask("GET", platformProjects, acme, ""); strings.Count(string(list.body), `"slug"`) != 1 || !strings.Contains(string(list.body), `"acme-shop"`) {
		t.Errorf("the key's list: %s", list.body)
	}
	d.compareFresh(t)
}

// TestKeyForgetsDeletedSlug: an API delete removes the slug from the lists; an empty list is no project.
func TestKeyForgetsDeletedSlug(t *testing.T) {
	acme, first := keyText("acme", `"read", "write", "resolve"`, "  projects = [\"acme\"]\n")
	_, second := keyText("both", `"read"`, "  projects = [\n    \"acme\", # goes\n    # stays\n    \"globex\",\n  ]\n")
	_, third := keyText("last", `"read"`, "  projects = [\"globex\", \"acme\"]\n")
	d := newDesk(t, map[string]string{
		"acme.hcl":   "project \"acme\" {\n  name = \"Acme\"\n  domain \"acme.example\" {}\n}\n",
		"globex.hcl": "project \"globex\" {\n  name = \"Globex\"\n  domain \"globex.example\" {}\n}\n",
		"keys.hcl":   first + second + third,
	})
	ask := func(method, path, key, body string) *answer {
		t.Helper()
		return d.askBody(method, path, key, body, "Content-Type: application/json")
	}
	ask("DELETE", projectPath(d.projectID(t, "acme")), d.key, "").check(t, 200, "")
	d.fileHas(t, "keys.hcl", strings.Replace(first, `["acme"]`, `[]`, 1)+
		strings.Replace(second, "    \"acme\", # goes\n", "", 1)+strings.Replace(third, `["globex", "acme"]`, `["globex"]`, 1))
	ask("POST", platformProjects, d.key, `{"name":"Acme","slug":"acme"}`).check(t, 201, "")
	for _, path := range []string{projectPath(d.projectID(t, "acme")), projectPath(d.projectID(t, "globex")), platformProjects + "/resolve?domain=globex.example"} {
		ask("GET", path, acme, "").check(t, 403, "FORBIDDEN")
	}
	if list := ask("GET", platformProjects, acme, ""); list.StatusCode != 200 || strings.Contains(string(list.body), `"slug"`) {
		t.Errorf("a key for no project sees %s", list.body)
	}
	ask("POST", platformProjects, acme, `{"name":"Mine"}`).check(t, 403, "FORBIDDEN")
	d.compareFresh(t)
}

// TestProjectKeyRenamesNothing: a new slug may be one that another key was prepared for.
func TestProjectKeyRenamesNothing(t *testing.T) {
	acme, block := keyText("acme", `"read", "write"`, "  projects = [\"acme\"]\n")
	d := newDesk(t, map[string]string{"acme.hcl": "project \"acme\" {\n  name = \"Acme\"\n}\n", "keys.hcl": block})
	path := projectPath(d.projectID(t, "acme"))
	before := d.files(t)
	d.askBody("PUT", path, acme, `{"slug":"prepared"}`).check(t, 403, "FORBIDDEN")
	if after := d.files(t); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("the files: %q", after)
	}
	d.askBody("PUT", path, acme, `{"slug":"acme","name":"Acme Ltd"}`).check(t, 200, "")
	// An invalid slug is reported as such: 400 comes first.
	d.askBody("PUT", path, acme, `{"slug":"No Slug"}`).check(t, 400, "VALIDATION_ERROR")
}

// TestRenameNeedsAllKeyFiles: if one file with the slug cannot be written, the rename and the deletion are refused, and
// no file is changed.
func TestRenameNeedsAllKeyFiles(t *testing.T) {
	_, first := keyText("one", `"read"`, "  projects = [\"acme\"]\n")
	two, second := keyText("two", `"read"`, "  projects = [\"acme\"]\n")
	files := func() map[string]string {
		return map[string]string{"acme.hcl": "project \"acme\" {\n  name = \"Acme\"\n}\n", "a-keys.hcl": first, "team/keys.hcl": second}
	}
	refused := func(t *testing.T, d *desk, code, file string) {
		t.Helper()
		before := d.files(t)
		id := d.projectID(t, "acme")
		for _, a := range []*answer{
			d.askBody("PUT", projectPath(id), d.key, `{"slug":"acme-shop"}`),
			d.ask("DELETE", projectPath(id), d.key),
		} {
			a.check(t, 409, code)
			if !strings.Contains(string(a.body), file) {
				t.Errorf("the message does not name %s: %s", file, a.body)
			}
		}
		if after := d.files(t); fmt.Sprint(after) != fmt.Sprint(before) {
			t.Errorf("the files: %q, want %q", after, before)
		}
		d.ask("GET", projectPath(id), two).check(t, 200, "")
	}
	t.Run("broken", func(t *testing.T) {
		d := newDesk(t, files())
		d.save(t, map[string]string{"team/keys.hcl": second + "key \"broken\" {\n"})
		refused(t, d, "CONFIG_FILE_INVALID", "team/keys.hcl")
	})
	t.Run("hard links", func(t *testing.T) {
		d := newDesk(t, files())
		if err := os.Link(filepath.Join(d.dir, "team/keys.hcl"), filepath.Join(t.TempDir(), "other")); err != nil {
			t.Fatal(err)
		}
		refused(t, d, "CONFIG_READ_ONLY", "team/keys.hcl")
	})
	t.Run("mended", func(t *testing.T) {
		d := newDesk(t, files())
		d.save(t, map[string]string{"team/keys.hcl": second + "key \"broken\" {\n"})
		d.askBody("PUT", projectPath(d.projectID(t, "acme")), d.key, `{"slug":"acme-shop"}`).check(t, 409, "CONFIG_FILE_INVALID")
		d.save(t, map[string]string{"team/keys.hcl": second})
		d.askBody("PUT", projectPath(d.projectID(t, "acme")), d.key, `{"slug":"acme-shop"}`).check(t, 200, "")
		d.fileHas(t, "team/keys.hcl", strings.Replace(second, `"acme"`, `"acme-shop"`, 1))
	})
}

// TestHotKeyFollowsRenames renames a project back and forth, with another one that takes the free slug, while its key
// is in use: the key never loses its project, and never reaches the other one. Hundreds of keys name the slug.
func TestHotKeyFollowsRenames(t *testing.T) {
	testrig.Thorough(t)
	renames := testrig.Size(t, 6, 2)
	acme, block := keyText("acme", `"read", "write", "resolve"`, "  projects = [\"acme\"]\n")
	files := map[string]string{
		"acme.hcl": "project \"acme\" {\n  name = \"Acme\"\n  domain \"acme.example\" {}\n}\n",
		"keys.hcl": block,
	}
	for i := range 10 {
		var many strings.Builder
		for j := range 40 {
			_, block := keyText(fmt.Sprintf("k%d-%d", i, j), `"read"`, "  projects = [\"acme\"]\n")
			many.WriteString(block)
		}
		files[fmt.Sprintf("many/%d.hcl", i)] = many.String()
	}
	d := newDesk(t, files)
	id := d.projectID(t, "acme")
	var other atomic.Int64
	var stop atomic.Bool
	var asked atomic.Int64
	var running sync.WaitGroup
	for range 2 {
		running.Go(func() {
			c := d.dial()
			defer c.Close()
			get := func(path string) int {
				asked.Add(1)
				c.send("GET " + path + " HTTP/1.1\r\nHost: test\r\nX-PLATFORM-KEY: " + acme + "\r\n\r\n")
				a, err := c.read("GET")
				if err != nil {
					t.Error(err)
					return 0
				}
				return a.StatusCode
			}
			for !stop.Load() && !t.Failed() {
				if status := get(projectPath(id)); status != http.StatusOK {
					t.Errorf("the key's own project: %d", status)
				}
				if status := get(platformProjects + "/resolve?domain=acme.example"); status != http.StatusOK {
					t.Errorf("resolve of the key's own domain: %d", status)
				}
				if status := get(platformProjects + "/resolve?domain=other.example"); status != http.StatusForbidden && status != http.StatusNotFound {
					t.Errorf("resolve of the other project's domain: %d", status)
				}
				if at := other.Load(); at != 0 {
					if status := get(projectPath(at)); status != http.StatusForbidden && status != http.StatusNotFound {
						t.Errorf("the other project: %d", status)
					}
				}
			}
		})
	}
	defer running.Wait()
	defer stop.Store(true)
	slugs := [2]string{"acme", "acme-shop"}
	for i := range renames {
		from, to := slugs[i%2], slugs[1-i%2]
		d.askBody("PUT", projectPath(id), d.key, fmt.Sprintf(`{"slug":%q}`, to)).check(t, 200, "")
		d.askBody("POST", platformProjects, d.key, fmt.Sprintf(`{"name":"Other","slug":%q}`, from)).check(t, 201, "")
		other.Store(d.projectID(t, from))
		d.askBody("POST", projectPath(other.Load())+"/domains", d.key, `{"domain":"other.example"}`).check(t, 201, "")
		now := asked.Load()
		testrig.Eventually(t, "requests with the new key lists", func() bool { return asked.Load() > now+20 || t.Failed() })
		d.ask("DELETE", projectPath(other.Swap(0)), d.key).check(t, 200, "")
		if t.Failed() {
			return
		}
	}
	if b, err := os.ReadFile(filepath.Join(d.dir, "many/7.hcl")); err != nil || strings.Count(string(b), `["acme"]`) != 40 {
		t.Errorf("%v: %s", err, b)
	}
}

// TestSlowBodyKeepsOldKeyOut: a request that was admitted before the rename and finishes after another project has
// taken the slug gets nothing of that project.
func TestSlowBodyKeepsOldKeyOut(t *testing.T) {
	acme, block := keyText("acme", `"read", "write", "resolve"`, "  projects = [\"acme\"]\n")
	d := newDesk(t, map[string]string{"acme.hcl": "project \"acme\" {\n  name = \"Acme\"\n  domain \"acme.example\" {}\n}\n", "keys.hcl": block})
	id := d.projectID(t, "acme")
	body := `{"domains":["new.example","acme.example"]}`
	c := d.dial()
	defer c.Close()
	c.send("POST " + platformProjects + "/resolve HTTP/1.1\r\nHost: test\r\nX-PLATFORM-KEY: " + acme +
		"\r\nContent-Type: application/json\r\nContent-Length: " + itoa(len(body)) + "\r\n\r\n" + body[:5])
	d.askBody("PUT", projectPath(id), d.key, `{"slug":"acme-shop"}`).check(t, 200, "")
	d.askBody("POST", platformProjects, d.key, `{"name":"New","slug":"acme"}`).check(t, 201, "")
	d.askBody("POST", projectPath(d.projectID(t, "acme"))+"/domains", d.key, `{"domain":"new.example"}`).check(t, 201, "")
	c.send(body[5:])
	a := c.answer("POST")
	rows, _ := a.json["data"].([]any)
	if len(rows) != 2 || rows[0].(map[string]any)["status"] != 403.0 || rows[1].(map[string]any)["status"] != 200.0 {
		t.Errorf("%s", a.body)
	}
}

// TestEventsFollowKeyLists: a stream continues through a rename without a reset, and has no event of a project that
// takes the old slug. A deletion is a reset, because the key reaches less than before.
func TestEventsFollowKeyLists(t *testing.T) {
	acme, block := keyText("acme", `"read", "write", "resolve"`, "  projects = [\"acme\"]\n")
	d := newDesk(t, map[string]string{"acme.hcl": "project \"acme\" {\n  name = \"Acme\"\n}\n", "keys.hcl": block})
	id := d.projectID(t, "acme")
	s := d.events(acme, "")
	d.askBody("PUT", projectPath(id), d.key, `{"slug":"acme-shop"}`).check(t, 200, "")
	s.want("project.changed", `"slug":"acme-shop"`)
	d.askBody("POST", platformProjects, d.key, `{"name":"New","slug":"acme"}`).check(t, 201, "")
	d.askBody("PUT", projectPath(id), d.key, `{"name":"Acme Ltd"}`).check(t, 200, "")
	s.want("project.changed", `"slug":"acme-shop"`)
	d.ask("DELETE", projectPath(id), d.key).check(t, 200, "")
	s.want("reset", "")
}

// TestPowerLossOfKeyLists cuts the power at every step of a rename and of a deletion with key lists in other folders:
// all of the files are old after it, or all are new.
func TestPowerLossOfKeyLists(t *testing.T) {
	testrig.Thorough(t)
	every := testrig.Size(t, 1, fewShots)
	t.Parallel()
	_, first := keyText("one", `"read"`, "  projects = [\"acme\"]\n")
	_, second := keyText("two", `"read"`, "  projects = [\"acme\", \"globex\"]\n")
	r := newCrashRun(t, map[string]string{
		"acme.hcl":      "project \"acme\" {\n  name = \"Acme\"\n}\n\nproject \"globex\" {\n  name = \"Globex\"\n}\n",
		"team/keys.hcl": first, "zoo/keys.hcl": second,
	}, nil, &crashDisk{})
	r.every = every
	one := func(name, method, path, body string) {
		t.Helper()
		r.step(t, name, crashWrite{exchange: exchange{method: method, path: path, body: body, status: 200}})
	}
	one("rename", "PUT", "/api/platform/projects/@acme", `{"slug":"shop"}`)
	one("delete", "DELETE", "/api/platform/projects/@shop", "")
	r.report(t, r.finish())
	for _, s := range r.shots {
		if step := r.steps[s.step]; fold(s.got) != fold(step.prev) && fold(s.got) != fold(step.after) {
			t.Fatalf("%s, power lost after %s: neither all old nor all new\n--- left\n%s\n--- after the restart\n%s", step.name, s.at, show(s.left), show(s.got))
		}
	}
	if len(r.seen) < 30 {
		t.Errorf("a crash may leave only %d states", len(r.seen))
	}
}

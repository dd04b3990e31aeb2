package api_test

import (
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"

	"fingerpost/api/platform"
	"fingerpost/cmd/testrig"
	"fingerpost/resolver/catalog"
	"fingerpost/resolver/hostname"
)

// newProofDesk serves the projects "own" and "other", each with a key, and with the key "both" one for the two. require
// "" is a folder without a verification block.
func newProofDesk(t *testing.T, require string, verifier ...platform.Verifier) (d *desk, keys map[string]string) {
	t.Helper()
	return newProofDeskIn(t, require, false, verifier...)
}

// newProofDeskIn is newProofDesk with both projects in one file, or one file each.
func newProofDeskIn(t *testing.T, require string, together bool, verifier ...platform.Verifier) (d *desk, keys map[string]string) {
	t.Helper()
	files, keys := map[string]string{}, map[string]string{}
	for name, projects := range map[string]string{"own": `"own"`, "other": `"other"`, "both": `"own", "other"`} {
		text, id := catalog.NewKeyText()
		keys[name] = text
		files["key-"+name+".hcl"] = fmt.Sprintf("key %q {\n  id       = %q\n  hash     = %q\n  allow    = [\"read\", \"write\", \"resolve\"]\n  projects = [%s]\n}\n",
			name, id, catalog.HashKeyText(text), projects)
	}
	for _, slug := range []string{"own", "other"} {
		name := slug + ".hcl"
		if together {
			name = "all.hcl"
		}
		files[name] += fmt.Sprintf("project %q {\n  name   = %q\n  status = \"ACTIVE\"\n}\n", slug, slug)
	}
	if require != "" {
		files["defaults.hcl"] = fmt.Sprintf("defaults {\n  verification { require = %q }\n}\n", require)
	}
	d = &desk{dir: t.TempDir()}
	if len(verifier) > 0 {
		d.verifier = verifier[0]
	}
	d.open(t, files)
	keys["full"] = d.key
	return d, keys
}

// verifiedJSON writes a value of verified; "-" is null.
func verifiedJSON(value string) string {
	if value == "-" {
		return "null"
	}
	return fmt.Sprintf("%q", value)
}

// has checks the value of verified over the API, and in the file, by a service that starts from it.
func (d *desk) has(t *testing.T, slug, name, want string) {
	t.Helper()
	a := d.in(t).ask("GET", d.path(t, "/api/platform/projects/@"+slug+"/domains/@"+name), d.key)
	a.check(t, http.StatusOK, "")
	data, _ := a.json["data"].(map[string]any)
	got := "-"
	if v, said := data["verified"].(string); said {
		got = v
	}
	if got != want {
		t.Errorf("%s of %s has verified %s, want %s", name, slug, got, want)
	}
	fresh, _ := d.load(t, false)
	dom, err := fresh.resolver.DomainNamed(name)
	if err != nil || (dom.Verified == nil) != (want == "-") || dom.Verified != nil && *dom.Verified != want {
		t.Errorf("the file says another thing of %s: %+v %v", name, dom, err)
	}
}

// names lists the domains of a project.
func (d *desk) names(t *testing.T, slug string) string {
	t.Helper()
	a := d.in(t).ask("GET", d.path(t, "/api/platform/projects/@"+slug+"/domains"), d.key)
	rows, _ := a.json["data"].([]any)
	var names []string
	for _, row := range rows {
		names = append(names, fmt.Sprint(row.(map[string]any)["domain"]))
	}
	return strings.Join(names, " ")
}

const proofDay = "2026-01-24"

// proofActions are what keys do to a domain: "POST" adds the domain NEW, "PUT" changes the one that has the value start.
// own is the value afterwards with the key of the project, by what the defaults require: nothing, proofs of project
// keys, or of all; full is the value with a key for every project. A number is the status of a refusal.
var proofActions = []struct {
	name, method, start, body string
	own                       [3]string
	full                      string
}{
	{"add", "POST", "", `{"domain":"NEW"}`, [3]string{"-", "pending", "pending"}, "-"},
	{"add a wildcard", "POST", "", `{"domain":"*.NEW"}`, [3]string{"-", "pending", "pending"}, "-"},
	{"add with null", "POST", "", `{"domain":"NEW","verified":null}`, [3]string{"-", "pending", "pending"}, "-"},
	{"add with a day", "POST", "", `{"domain":"NEW","verified":"2026-01-24"}`, [3]string{"403", "403", "403"}, proofDay},
	{"add as pending", "POST", "", `{"domain":"NEW","verified":"pending"}`, [3]string{"403", "403", "403"}, "pending"},
	{"add as lost", "POST", "", `{"domain":"NEW","verified":"lost"}`, [3]string{"403", "403", "403"}, "lost"},
	{"add with nonsense", "POST", "", `{"domain":"NEW","verified":"yes"}`, [3]string{"400", "400", "400"}, "400"},
	{"add with a number", "POST", "", `{"domain":"NEW","verified":1}`, [3]string{"400", "400", "400"}, "400"},
	{"add with a future day", "POST", "", `{"domain":"NEW","verified":"9999-12-31"}`, [3]string{"400", "400", "400"}, "400"},

	{"flags of a trusted one", "PUT", "-", `{"primary":true,"active":false,"certificates":true}`, [3]string{"-", "-", "-"}, "-"},
	{"flags of a pending one", "PUT", "pending", `{"primary":true,"active":false,"certificates":true}`, [3]string{"pending", "pending", "pending"}, "pending"},
	{"flags of a lost one", "PUT", "lost", `{"active":true}`, [3]string{"lost", "lost", "lost"}, "lost"},
	{"flags of a proven one", "PUT", proofDay, `{"certificates":null}`, [3]string{proofDay, proofDay, proofDay}, proofDay},

	{"rename a trusted one", "PUT", "-", `{"domain":"NEW"}`, [3]string{"-", "pending", "pending"}, "-"},
	{"rename a pending one", "PUT", "pending", `{"domain":"NEW"}`, [3]string{"pending", "pending", "pending"}, "-"},
	{"rename a lost one", "PUT", "lost", `{"domain":"NEW"}`, [3]string{"pending", "pending", "pending"}, "-"},
	{"rename a proven one", "PUT", proofDay, `{"domain":"NEW"}`, [3]string{"-", "pending", "pending"}, "-"},
	{"rename with the present value", "PUT", proofDay, `{"domain":"NEW","verified":"2026-01-24"}`, [3]string{"-", "pending", "pending"}, proofDay},
	{"rename with null", "PUT", proofDay, `{"domain":"NEW","verified":null}`, [3]string{"403", "403", "403"}, "-"},
	{"make it a wildcard", "PUT", proofDay, `{"domain":"*.OLD"}`, [3]string{"-", "pending", "pending"}, "-"},
	{"other spellings of a pending one", "PUT", "pending", `{"domain":"UPPER."}`, [3]string{"pending", "pending", "pending"}, "pending"},
	{"other spellings of a trusted one", "PUT", "-", `{"domain":"UPPER"}`, [3]string{"-", "-", "-"}, "-"},

	{"null over null", "PUT", "-", `{"verified":null}`, [3]string{"-", "-", "-"}, "-"},
	{"null over pending", "PUT", "pending", `{"verified":null}`, [3]string{"403", "403", "403"}, "-"},
	{"a day over pending", "PUT", "pending", `{"verified":"2026-01-24"}`, [3]string{"403", "403", "403"}, proofDay},
	{"pending over a day", "PUT", proofDay, `{"verified":"pending"}`, [3]string{"403", "403", "403"}, "pending"},
	{"lost over lost", "PUT", "lost", `{"verified":"lost","active":false}`, [3]string{"lost", "lost", "lost"}, "lost"},
	{"another day", "PUT", proofDay, `{"verified":"2026-01-25"}`, [3]string{"403", "403", "403"}, "2026-01-25"},
}

// TestVerifiedMatrix tests what each key makes of the proof of a domain, by each action, under each requirement
// (api/README.md, Domains). A dry run has the same answer and changes nothing.
func TestVerifiedMatrix(t *testing.T) {
	for n, require := range []string{"none", "project-keys", "all", ""} {
		t.Run("require "+require, func(t *testing.T) {
			t.Parallel()
			d, keys := newProofDesk(t, require)
			number := 0
			for _, action := range proofActions {
				for _, key := range []string{"own", "full"} {
					want := action.full
					if key == "own" {
						want = action.own[n%3]
					}
					// Under none the key "full" does what it does under each requirement, and "" is none.
					if number++; number%5 != 0 && (n != 2 || key == "full") && !testrig.IsThorough() {
						continue
					}
					t.Run(action.name+" with the key "+key, func(t *testing.T) {
						old, name := fmt.Sprintf("old%d.bücher.example", number), fmt.Sprintf("new%d.example", number)
						d.act(t, keys[key], action.method, old, name, action.start, action.body, want)
					})
				}
			}
		})
	}
}

// act makes one action with a domain old of the project "own", or with none, and checks the outcome.
func (d *desk) act(t *testing.T, key, method, old, name, start, body, want string) {
	t.Helper()
	canonical, err := hostname.ParseDomain(old)
	if err != nil {
		t.Fatal(err)
	}
	path, good, is := d.path(t, "/api/platform/projects/@own/domains"), http.StatusCreated, name
	if method == "PUT" {
		d.in(t).askBody("POST", path, d.key, fmt.Sprintf(`{"domain":%q,"verified":%s}`, old, verifiedJSON(start)), "Content-Type: application/json").
			check(t, http.StatusCreated, "")
		path, good = d.path(t, "/api/platform/projects/@own/domains/@"+canonical), http.StatusOK
		if !strings.Contains(body, "NEW") {
			is = canonical
		}
	}
	if strings.Contains(body, "*.") {
		is = "*." + strings.Replace(is, old, canonical, 1)
	}
	body = strings.NewReplacer("NEW", name, "OLD", old, "UPPER", strings.ToUpper(old)).Replace(body)
	before := d.files(t)
	dry := d.in(t).askBody(method, path+"?dryRun=1", key, body, "Content-Type: application/json")
	if !maps.Equal(before, d.files(t)) {
		t.Error("the dry run has changed the files")
	}
	a := d.in(t).askBody(method, path, key, body, "Content-Type: application/json")
	switch want {
	case "400", "403":
		code := map[string]string{"400": "VALIDATION_ERROR", "403": "FORBIDDEN"}[want]
		for _, refused := range []*answer{a, dry} {
			if refused.code() != code || strings.Join(refused.fields(), " ") != "verified" {
				t.Errorf("got %d %s", refused.StatusCode, refused.body)
			}
		}
		if !maps.Equal(before, d.files(t)) {
			t.Error("the files have changed")
		}
		return
	}
	dry.check(t, http.StatusOK, "")
	a.check(t, good, "")
	if !strings.Contains(string(a.body), `"verified":`+verifiedJSON(want)) {
		t.Errorf("want verified %s: %s", want, a.body)
	}
	if is != canonical { // the whole block is in the diff
		if want != "-" && !regexp.MustCompile(`verified += \\"`+want).Match(dry.body) {
			t.Errorf("the dry run does not show verified %s: %s", want, dry.body)
		}
	} else if planned := strings.Contains(string(dry.body), `"field":"verified"`); planned != (want != start) {
		t.Errorf("the dry run has a change of verified: %v: %s", planned, dry.body)
	}
	d.has(t, "own", is, want)
}

// TestVerifiedAttacks: no series of calls with keys of projects makes a trusted domain of a name that such a key has
// given to a project.
func TestVerifiedAttacks(t *testing.T) {
	t.Parallel()
	d, keys := newProofDesk(t, "project-keys")
	domains := func(slug string) string { return d.path(t, "/api/platform/projects/@"+slug+"/domains") }
	one := func(slug, name string) string { return d.path(t, "/api/platform/projects/@"+slug+"/domains/@"+name) }
	ask := func(key, method, path, body string, status int, code string, headers ...string) *answer {
		t.Helper()
		a := d.in(t).askBody(method, path, keys[key], body, append(headers, "Content-Type: application/json")...)
		a.check(t, status, code)
		return a
	}
	refusedAtResolve := func(name string) {
		t.Helper()
		d.in(t).ask("GET", "/api/platform/projects/resolve?domain="+name, d.key).check(t, 403, "DOMAIN_NOT_VERIFIED")
	}

	// Removed and added again, in another spelling.
	ask("full", "POST", domains("own"), `{"domain":"a.example","verified":"2026-01-24"}`, 201, "")
	ask("own", "DELETE", one("own", "a.example"), "", 200, "")
	ask("own", "POST", domains("own"), `{"domain":"A.EXAMPLE."}`, 201, "")
	d.has(t, "own", "a.example", "pending")
	refusedAtResolve("a.example")

	// Renamed and renamed back.
	ask("full", "POST", domains("own"), `{"domain":"b.example"}`, 201, "")
	ask("own", "PUT", one("own", "b.example"), `{"domain":"c.example"}`, 200, "")
	ask("own", "PUT", one("own", "c.example"), `{"domain":"b.example"}`, 200, "")
	d.has(t, "own", "b.example", "pending")
	refusedAtResolve("b.example")

	// A wildcard and back.
	ask("full", "POST", domains("own"), `{"domain":"w.example"}`, 201, "")
	ask("own", "PUT", one("own", "w.example"), `{"domain":"*.w.example"}`, 200, "")
	d.has(t, "own", "*.w.example", "pending")
	ask("own", "PUT", one("own", "*.w.example"), `{"domain":"w.example"}`, 200, "")
	d.has(t, "own", "w.example", "pending")

	// Moved from one of the key's projects to the other.
	ask("full", "POST", domains("own"), `{"domain":"m.example"}`, 201, "")
	ask("both", "POST", domains("other"), `{"domain":"m.example"}`, 409, "CONFLICT")
	ask("both", "DELETE", one("own", "m.example"), "", 200, "")
	ask("both", "POST", domains("other"), `{"domain":"m.example"}`, 201, "")
	d.has(t, "other", "m.example", "pending")

	// Two domains swap their names: each has been the project's, neither is trusted.
	ask("full", "POST", domains("own"), `{"domain":"x.example"}`, 201, "")
	ask("full", "POST", domains("own"), `{"domain":"y.example"}`, 201, "")
	ask("own", "PUT", one("own", "x.example"), `{"domain":"z.example"}`, 200, "")
	ask("own", "PUT", one("own", "y.example"), `{"domain":"x.example"}`, 200, "")
	ask("own", "PUT", one("own", "z.example"), `{"domain":"y.example"}`, 200, "")
	d.has(t, "own", "x.example", "pending")
	d.has(t, "own", "y.example", "pending")

	// A request that knows an older state.
	tag := ask("own", "GET", one("own", "x.example"), "", 200, "").Header.Get("ETag")
	ask("full", "PUT", one("own", "x.example"), `{"verified":"2026-01-24"}`, 200, "")
	ask("own", "PUT", one("own", "x.example"), `{"domain":"q.example"}`, 412, "PRECONDITION_FAILED", "If-Match: "+tag)
	ask("own", "PUT", one("own", "x.example"), `{"verified":"pending","active":true}`, 403, "FORBIDDEN")
	d.has(t, "own", "x.example", "2026-01-24")

	// The whole project's PUT takes no domains, and no value of theirs.
	ask("own", "PUT", d.path(t, "/api/platform/projects/@own"), `{"description":"new","domains":[{"domain":"b.example","verified":null}]}`, 200, "")
	d.has(t, "own", "b.example", "pending")
}

// TestVerifiedDayAhead: a day that a clock wrote that was ahead stops no write to the project, and may be sent back.
func TestVerifiedDayAhead(t *testing.T) {
	t.Parallel()
	files := map[string]string{"own.hcl": "project \"own\" {\n  name = \"own\"\n  domain \"a.example\" { verified = \"9999-12-31\" }\n}\n"}
	d := newDesk(t, files)
	project := d.path(t, "/api/platform/projects/@own")
	path := d.path(t, "/api/platform/projects/@own/domains/@a.example")
	put := func(path, body string, status int) {
		t.Helper()
		if a := d.askBody("PUT", path, d.key, body, "Content-Type: application/json"); a.StatusCode != status {
			t.Errorf("%s: %d %s", body, a.StatusCode, a.body)
		}
	}
	put(project, `{"description":"new"}`, http.StatusOK)
	put(path, `{"verified":"9999-12-31","certificates":false}`, http.StatusOK)
	put(path, `{"verified":"9999-12-30"}`, http.StatusBadRequest)
	d.has(t, "own", "a.example", "9999-12-31")
}

// TestVerifiedRaces: renames by a project's key while a key for every project trusts the domain, and the other way
// round: a name that the project's key has given last is pending.
func TestVerifiedRaces(t *testing.T) {
	t.Parallel()
	d, keys := newProofDesk(t, "project-keys")
	path := d.path(t, "/api/platform/projects/@own/domains")
	d.in(t).askBody("POST", path, d.key, `{"domain":"r0.example"}`, "Content-Type: application/json").check(t, 201, "")
	path = d.path(t, "/api/platform/projects/@own/domains/@r0.example")
	for round := range 10 {
		var wg sync.WaitGroup
		var renamed, trusted *answer
		wg.Go(func() {
			renamed = d.askBody("PUT", path, keys["own"], fmt.Sprintf(`{"domain":"r%d.example"}`, round+1), "Content-Type: application/json")
		})
		wg.Go(func() {
			trusted = d.askBody("PUT", path, d.key, fmt.Sprintf(`{"domain":"r%d.example","verified":null}`, round), "Content-Type: application/json",
				"If-Match: "+d.ask("GET", path, d.key).Header.Get("ETag"))
		})
		wg.Wait()
		renamed.check(t, http.StatusOK, "")
		name := fmt.Sprintf("r%d.example", round+1)
		switch trusted.StatusCode {
		case http.StatusPreconditionFailed:
			d.has(t, "own", name, "pending")
		case http.StatusOK: // before the rename, which then has made it pending; or after it, back to the former name
			if strings.Contains(d.names(t, "own"), name) {
				d.has(t, "own", name, "pending")
			} else {
				d.in(t).askBody("PUT", path, keys["own"], fmt.Sprintf(`{"domain":%q}`, name), "Content-Type: application/json").check(t, 200, "")
			}
		default:
			t.Errorf("%d %s", trusted.StatusCode, trusted.body)
		}
	}
}

// TestConsoleVerified: the form of a domain shows the field, and only a key for every project can change it.
func TestConsoleVerified(t *testing.T) {
	d, keys := newProofDesk(t, "project-keys")
	project, err := d.resolver.ProjectBySlug("own")
	if err != nil {
		t.Fatal(err)
	}
	a := d.askBody("POST", d.path(t, "/api/platform/projects/@own/domains"), d.key, `{"domain":"a.example","verified":"2026-01-24"}`)
	a.check(t, http.StatusCreated, "")
	id := d.domainID(t, "a.example")
	r := newConsoleRig(t, d)
	for _, key := range []string{"own", "full"} {
		g := r.signIn(t, keys[key])
		for path, value := range map[string]string{"": "", fmt.Sprintf("&id=%d", id): proofDay} {
			g.send(fmt.Sprintf("/console/edit?kind=domain&project=%d%s", project.ID, path), nil)
			sent, _ := g.controls("/console/edit")
			given, may := sent["verified"]
			if may != (key == "full") || may && given[0] != value || !strings.Contains(g.page, `id="f-verified"`) {
				t.Errorf("%s, %q: the form sends %q", key, path, sent)
			}
			g.nothingChanged(key + path)
		}
	}
	d.has(t, "own", "a.example", proofDay)
}

// TestUnprovenClaims: a pending record that a project's key made keeps no other project's key from the names above and
// below it. A trusted, proven or lost record does, and a pending one that a person wrote.
func TestUnprovenClaims(t *testing.T) {
	t.Parallel()
	testrig.Thorough(t)
	d, keys := newProofDesk(t, "project-keys")
	ask := func(key, method, path, body string, status int) {
		t.Helper()
		if a := d.askBody(method, path, keys[key], body, "Content-Type: application/json"); a.StatusCode != status {
			t.Errorf("%s %s %s: %d %s", key, method, body, a.StatusCode, a.body)
		}
	}
	domains := func(slug string) string { return d.path(t, "/api/platform/projects/@"+slug+"/domains") }
	one := func(slug, name string) string { return d.path(t, "/api/platform/projects/@"+slug+"/domains/@"+name) }
	for _, c := range []struct{ first, second string }{
		{"*.above%d.example", "shop.above%d.example"}, {"above%d.example", "shop.above%d.example"},
		{"shop.below%d.example", "*.below%d.example"}, {"*.above%d.example", "*.shop.above%d.example"},
	} {
		for i, record := range []struct {
			key, body string
			status    int
		}{
			{"other", "", 201},
			{"full", `,"verified":null`, 403},
			{"full", `,"verified":"2026-01-24"`, 403},
			{"full", `,"verified":"lost"`, 403},
			{"full", `,"verified":"pending"`, 403},
		} {
			first, second := fmt.Sprintf(c.first, i), fmt.Sprintf(c.second, i)
			ask(record.key, "POST", domains("other"), fmt.Sprintf(`{"domain":%q%s}`, first, record.body), 201)
			ask("own", "POST", domains("own"), fmt.Sprintf(`{"domain":%q}`, second), record.status)
			if record.status == 201 { // once it is proven, it counts
				ask("own", "DELETE", one("own", second), "", 200)
				ask("full", "PUT", one("other", first), `{"verified":"2026-01-24"}`, 200)
				ask("own", "POST", domains("own"), fmt.Sprintf(`{"domain":%q}`, second), 403)
			}
			ask("full", "DELETE", one("other", first), "", 200)
		}
	}
}

// TestLostStays: pending and lost stay with a project's name through DELETE and POST by the project's key, and through
// renames, whatever the defaults require; another project begins at its own.
func TestLostStays(t *testing.T) {
	t.Parallel()
	testrig.Thorough(t)
	for _, require := range []string{"none", "project-keys", "all", ""} {
		d, keys := newProofDesk(t, require)
		ask := func(key, method, path, body string, status int) {
			t.Helper()
			if a := d.askBody(method, path, keys[key], body, "Content-Type: application/json"); a.StatusCode != status {
				t.Errorf("require %q: %s %s %s: %d %s", require, key, method, body, a.StatusCode, a.body)
			}
		}
		domains := func(slug string) string { return d.path(t, "/api/platform/projects/@"+slug+"/domains") }
		one := func(slug, name string) string { return d.path(t, "/api/platform/projects/@"+slug+"/domains/@"+name) }
		for _, value := range []string{"lost", "pending"} {
			name := value + ".example"
			ask("full", "POST", domains("own"), fmt.Sprintf(`{"domain":%q,"verified":%q}`, name, value), 201)
			for range 2 {
				ask("own", "DELETE", one("own", name), "", 200)
				ask("own", "POST", domains("own"), fmt.Sprintf(`{"domain":%q}`, name), 201)
				d.has(t, "own", name, value)
			}
			ask("own", "PUT", one("own", name), `{"domain":"x`+name+`"}`, 200)
			ask("own", "PUT", one("own", "x"+name), fmt.Sprintf(`{"domain":%q}`, name), 200)
			d.has(t, "own", name, value)

			ask("own", "DELETE", one("own", name), "", 200)
			ask("other", "POST", domains("other"), fmt.Sprintf(`{"domain":%q}`, name), 201)
			want := "pending"
			if require == "none" || require == "" {
				want = "-"
			}
			d.has(t, "other", name, want)
			ask("other", "DELETE", one("other", name), "", 200)

			ask("full", "POST", domains("own"), fmt.Sprintf(`{"domain":%q,"verified":"2026-01-24"}`, name), 201)
			d.has(t, "own", name, "2026-01-24") // a key for every project says so
			ask("own", "DELETE", one("own", name), "", 200)
			ask("own", "POST", domains("own"), fmt.Sprintf(`{"domain":%q}`, name), 201)
			d.has(t, "own", name, want)
		}
	}
}

package api_test

import (
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"

	"fingerpost/cmd/testrig"
	"fingerpost/resolver/catalog"
	"fingerpost/resolver/hostname"
)

// newClaimsDesk serves three projects, of which each has a file and a key of its own.
func newClaimsDesk(t *testing.T) (d *desk, keys map[string]string) {
	t.Helper()
	files, keys := map[string]string{}, map[string]string{}
	for slug, status := range map[string]string{"own": "ACTIVE", "other": "ACTIVE", "asleep": "SUSPENDED"} {
		text, id := catalog.NewKeyText()
		keys[slug] = text
		files["tenants/"+slug+"-file.hcl"] = fmt.Sprintf("project %q {\n  name   = \"The %s one\"\n  status = %q\n}\n", slug, slug, status)
		files["keys/"+slug+".hcl"] = fmt.Sprintf("key %q {\n  id       = %q\n  hash     = %q\n  allow    = [\"read\", \"write\", \"resolve\"]\n  projects = [%q]\n}\n",
			slug, id, catalog.HashKeyText(text), slug)
	}
	d = newDesk(t, files)
	keys["full"] = d.key
	return d, keys
}

// declare adds a domain with the key for every project.
func (d *desk) declare(t *testing.T, slug, name string, active bool) (id int64) {
	t.Helper()
	a := d.in(t).askBody("POST", d.path(t, "/api/platform/projects/@"+slug+"/domains"), d.key,
		fmt.Sprintf(`{"domain":%q,"active":%v}`, name, active), "Content-Type: application/json")
	a.check(t, http.StatusCreated, "")
	data, _ := a.json["data"].(map[string]any)
	number, _ := data["id"].(float64)
	return int64(number)
}

// TestClaims tests the rule of api/README.md, Keys, as a matrix: an exact name or a wildcard, above, below or equal to
// a record of the same project, of another one or of none, claimed with the key of one project or with one for every
// project, by POST and by PUT. The record may be inactive, or its project suspended.
func TestClaims(t *testing.T) {
	d, keys := newClaimsDesk(t)
	records := map[string][]string{"above": {"x.%s", "*.x.%s", "*.%s"}, "below": {"*.%s", "%s"}, "equal": {""}}
	number, every := 0, testrig.Size(t, 1, 17)
	for _, relation := range []string{"above", "below", "equal"} {
		for _, wildcard := range []bool{false, true} {
			for _, holder := range []string{"own", "other", "asleep", ""} {
				for _, record := range records[relation] {
					for _, active := range []bool{true, false} {
						for _, key := range []string{"own", "full"} {
							for _, method := range []string{"POST", "PUT"} {
								if number++; number%every != 0 {
									continue
								}
								base := fmt.Sprintf("c%d.example", number)
								if relation == "above" && record == "*.%s" {
									base = "deep." + base // the record is a wildcard below the claimed one
								}
								c := claim{method: method, key: keys[key], record: fmt.Sprintf(record, base), name: base}
								switch relation {
								case "above":
									c.name = strings.TrimPrefix(base, "deep.")
								case "below":
									c.name = "login." + base
								}
								if wildcard {
									c.name = "*." + c.name
								}
								if relation == "equal" {
									c.record = c.name
								}
								foreign := holder == "other" || holder == "asleep"
								switch {
								case holder == "":
									c.record = ""
								case relation == "equal":
									c.status, c.code = http.StatusConflict, "CONFLICT"
								case key == "own" && foreign && (relation == "below" || wildcard):
									c.status, c.code = http.StatusForbidden, "DOMAIN_NOT_ALLOWED"
								}
								name := fmt.Sprintf("%s %s with the key %s, %s %s (active %v) of %q", method, c.name, key, relation, c.record, active, holder)
								t.Run(name, func(t *testing.T) {
									if c.record != "" {
										d.declare(t, holder, c.record, active)
									}
									d.claim(t, c)
								})
							}
						}
					}
				}
			}
		}
	}
	d.compareFresh(t)
}

// A claim is a domain that a client requests for the project "own". The zero status is for one that is granted.
type claim struct {
	method, key  string
	record, name string
	status       int
	code         string
}

func (d *desk) claim(t *testing.T, c claim) {
	t.Helper()
	path, want := d.path(t, "/api/platform/projects/@own/domains"), http.StatusCreated
	if c.method == "PUT" {
		// A name becomes a wildcard, or another name becomes this one.
		former := strings.TrimPrefix(strings.TrimSuffix(strings.ToLower(c.name), "."), "*.")
		if former == c.name || former == c.record || !strings.Contains(former, ".") || isSuffix(former) {
			former = fmt.Sprintf("former-%d-", len(c.name)) + strings.NewReplacer("*.", "w-", ".", "-").Replace(strings.TrimSuffix(c.name, ".")) + ".elsewhere.example"
		}
		path, want = fmt.Sprintf("%s/%d", path, d.declare(t, "own", former, true)), http.StatusOK
	}
	before := d.files(t)
	a := d.in(t).askBody(c.method, path, c.key, fmt.Sprintf(`{"domain":%q}`, c.name), "Content-Type: application/json")
	if c.status == 0 {
		a.check(t, want, "")
		return
	}
	a.check(t, c.status, c.code)
	if got := strings.Join(a.fields(), ","); got != "domain" {
		t.Errorf("details name %q, want domain: %s", got, a.body)
	}
	if !maps.Equal(before, d.files(t)) {
		t.Error("the files have changed")
	}
	if c.key != d.key {
		for _, secret := range []string{"other", "asleep", "hcl", d.dir} {
			if strings.Contains(string(a.body), secret) {
				t.Errorf("the answer tells %q: %s", secret, a.body)
			}
		}
	}
}

func isSuffix(name string) bool { public, _ := hostname.PublicSuffix(name); return public }

// TestClaimsBelowAName: a project key takes no name below the exact name of another project, nor the wildcard that has
// all of them.
func TestClaimsBelowAName(t *testing.T) {
	t.Parallel()
	d, keys := newClaimsDesk(t)
	d.declare(t, "other", "apex.example", false)
	d.declare(t, "own", "mine.example", true)
	for _, name := range []string{"login.apex.example", "a.b.apex.example", "*.apex.example", "*.b.apex.example"} {
		for _, method := range []string{"POST", "PUT"} {
			d.claim(t, claim{method: method, key: keys["own"], record: "apex.example", name: name, status: 403, code: "DOMAIN_NOT_ALLOWED"})
		}
	}
	for _, name := range []string{"login.mine.example", "*.mine.example", "notapex.example", "up.example"} {
		d.claim(t, claim{method: "POST", key: keys["own"], name: name})
	}
	d.claim(t, claim{method: "POST", key: keys["full"], name: "*.apex.example"})
}

// TestClaimsOfSuffixes: no project key takes a public suffix, a wildcard directly below one, or a single label.
func TestClaimsOfSuffixes(t *testing.T) {
	d, keys := newClaimsDesk(t)
	refused := []string{"com", "*.com", "co.uk", "*.co.uk", "github.io", "*.github.io", "localhost", "*.localhost", "intranet",
		"*.example", "*.kawasaki.jp", "foo.kawasaki.jp", "xn--55qx5d.cn", "*.COM."}
	for _, method := range []string{"POST", "PUT"} {
		for _, name := range refused {
			t.Run(method+" "+name, func(t *testing.T) {
				d.claim(t, claim{method: method, key: keys["own"], name: name, status: http.StatusForbidden, code: "DOMAIN_NOT_ALLOWED"})
			})
		}
	}
	for _, name := range []string{"acme.com", "*.acme.com", "acme.co.uk", "*.acme.co.uk", "acme.github.io", "*.acme.github.io",
		"city.kawasaki.jp", "a.foo.kawasaki.jp", "*.city.kawasaki.jp"} {
		t.Run("POST "+name, func(t *testing.T) { d.claim(t, claim{method: "POST", key: keys["own"], name: name}) })
	}
	for _, name := range refused[:len(refused)-1] { // a key for every project may have them
		t.Run("POST with every project "+name, func(t *testing.T) { d.claim(t, claim{method: "POST", key: keys["full"], name: name}) })
	}
}

// TestClaimsOrder: the order of api/README.md, Errors, around DOMAIN_NOT_ALLOWED.
func TestClaimsOrder(t *testing.T) {
	d, keys := newClaimsDesk(t)
	d.declare(t, "other", "*.order.example", true)
	d.declare(t, "other", "taken.order.example", true)
	own := d.path(t, "/api/platform/projects/@own/domains")
	one := fmt.Sprintf("%s/%d", own, d.declare(t, "own", "order.elsewhere.example", true))
	const refusedName, stale = `{"domain":"login.order.example"}`, `If-Match: "stale"`
	ask := func(what, method, path, body string, status int, code string, headers ...string) {
		t.Helper()
		a := d.askBody(method, path, keys["own"], body, append(headers, "Content-Type: application/json")...)
		if a.StatusCode != status || a.code() != code {
			t.Errorf("%s: got %d %s, want %d %s: %s", what, a.StatusCode, a.code(), status, code, a.body)
		}
	}
	ask("another project", "POST", d.path(t, "/api/platform/projects/@other/domains"), refusedName, 403, "FORBIDDEN")
	ask("no such domain", "PUT", own+"/4711", refusedName, 404, "NOT_FOUND")
	ask("another bad field", "POST", own, `{"domain":"login.order.example","active":7}`, 400, "VALIDATION_ERROR")
	ask("a name that is not allowed, and If-Match", "PUT", one, refusedName, 403, "DOMAIN_NOT_ALLOWED", stale)
	ask("a name that is taken, and If-Match", "PUT", one, `{"domain":"taken.order.example"}`, 412, "PRECONDITION_FAILED", stale)
	ask("a name that is taken, below a wildcard", "PUT", one, `{"domain":"taken.order.example"}`, 409, "CONFLICT")
	ask("the name that it has", "PUT", one, `{"domain":"order.elsewhere.example"}`, 200, "")
}

// TestClaimsStandAsideForPeople: a domain that a person has declared for a project stays writable with the project's
// key, whatever it overlaps.
func TestClaimsStandAsideForPeople(t *testing.T) {
	d, keys := newClaimsDesk(t)
	d.declare(t, "other", "login.people.example", true)
	id := d.declare(t, "own", "*.people.example", true)
	one := fmt.Sprintf("%s/%d", d.path(t, "/api/platform/projects/@own/domains"), id)
	json := "Content-Type: application/json"
	d.askBody("PUT", one, keys["own"], `{"domain":"*.people.example","active":false}`, json).check(t, http.StatusOK, "")
	d.askBody("PUT", one, keys["own"], `{"primary":true}`, json).check(t, http.StatusOK, "")
	d.ask("DELETE", one, keys["own"]).check(t, http.StatusOK, "")
	d.askBody("POST", d.path(t, "/api/platform/projects/@own/domains"), keys["own"], `{"domain":"*.people.example"}`, json).
		check(t, http.StatusForbidden, "DOMAIN_NOT_ALLOWED")
}

// TestClaimsRace: two project keys claim overlapping names at the same time, and one of them gets its name.
func TestClaimsRace(t *testing.T) {
	d, keys := newClaimsDesk(t)
	rounds := testrig.Size(t, 400, 8)
	paths := map[string]string{}
	for _, slug := range []string{"own", "other", "asleep"} {
		paths[slug] = d.path(t, "/api/platform/projects/@"+slug+"/domains")
	}
	given := map[string]int{}
	for i := range rounds {
		names := map[string]string{"own": fmt.Sprintf("*.r%d.example", i), "other": fmt.Sprintf("login.r%d.example", i)}
		if i%2 == 1 {
			names["other"] = fmt.Sprintf("*.deep.r%d.example", i)
		}
		var wg sync.WaitGroup
		var mu sync.Mutex // guards statuses
		statuses := map[string]int{}
		begin := make(chan struct{})
		for slug, name := range names {
			wg.Go(func() {
				<-begin
				a := d.askBody("POST", paths[slug], keys[slug], fmt.Sprintf(`{"domain":%q}`, name), "Content-Type: application/json")
				mu.Lock()
				defer mu.Unlock()
				statuses[slug] = a.StatusCode
			})
		}
		// A third writer keeps the folder busy, so that both claims come into one round.
		wg.Go(func() {
			<-begin
			d.askBody("POST", paths["asleep"], keys["asleep"], fmt.Sprintf(`{"domain":"busy%d.elsewhere.example"}`, i), "Content-Type: application/json")
		})
		close(begin)
		wg.Wait()
		a, b := statuses["own"], statuses["other"]
		if !(a == 201 && b == 403 || a == 403 && b == 201) {
			t.Fatalf("round %d: %s got %d and %s got %d; want one 201 and one 403", i, names["own"], a, names["other"], b)
		}
		if a == 201 {
			given["own"]++
		} else {
			given["other"]++
		}
	}
	testrig.Figure(t, "of %d rounds: %v", rounds, given)
}

package api_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"

	"fingerpost/cmd/testrig"
	"fingerpost/configsrc/hcledit"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

const issuerOfTests = "https://login.acme.example/realms/ops"

// pairWords are the permissions that rules grant in the test.
var pairWords = []string{"resolve", "read", "write", "mail", "secrets", "propose"}

// reaches are the sets of projects of keys and rules; nil is every project.
var reaches = [][]string{nil, {"acme"}, {"globex"}, {"acme", "globex"}}

// A pairRig is a server with a login of many rules, and a key of each kind.
type pairRig struct {
	*desk
	rules []catalog.LoginRule
	keys  map[string]string // texts by reach and permissions
	a, b  string            // ids of the projects
}

// newPairRig returns the rig, and the groups of as many people as asked for. It declares those keys alone that a person is
// compared with: each call that renames or removes a project rewrites the list of every key that names it.
func newPairRig(t *testing.T, people int) (r *pairRig, groupsOf [][]any) {
	r = &pairRig{keys: map[string]string{}}
	random := rand.New(rand.NewPCG(7, 9))
	for i := range 40 {
		allow := catalog.Permission(1 + random.IntN(1<<len(pairWords)-1))
		if i%2 == 0 { // single pairs, so that each combination of them comes up
			allow = 1 << random.IntN(len(pairWords))
		}
		r.rules = append(r.rules, catalog.LoginRule{Claim: "groups", Value: fmt.Sprintf("g%d", i), Allow: allow,
			Projects: reaches[random.IntN(len(reaches))]})
	}
	groupsOf = r.people(people)
	var login strings.Builder
	fmt.Fprintf(&login, "login \"company\" {\n  issuer    = %q\n  client_id = \"fingerpost\"\n", issuerOfTests)
	for _, rule := range r.rules {
		fmt.Fprintf(&login, "\n  rule {\n    claim = \"groups\"\n    value = %q\n    allow = %s\n", rule.Value,
			hcledit.QuoteList(rule.Allow.Words()))
		if rule.Projects != nil {
			fmt.Fprintf(&login, "    projects = %s\n", hcledit.QuoteList(rule.Projects))
		}
		login.WriteString("  }\n")
	}
	login.WriteString("}\n")
	files := map[string]string{
		"acme.hcl": "project \"acme\" {\n  name = \"Acme\"\n  status = \"ACTIVE\"\n  domain \"acme.example\" {}\n" +
			"  auth_settings {\n    jwt_secret = \"0123456789abcdef0123456789abcdef\"\n  }\n}\n",
		"globex.hcl": "project \"globex\" {\n  name = \"Globex\"\n  status = \"ACTIVE\"\n  domain \"globex.example\" {}\n" +
			"  auth_settings {\n    jwt_secret = \"fedcba9876543210fedcba9876543210\"\n  }\n}\n",
		"login.hcl": login.String(),
	}
	for i, projects := range reaches {
		var block strings.Builder
		for _, groups := range groupsOf {
			allow := r.allowOf(groups, projects)
			if allow == 0 || r.keys[keyOf(projects, allow)] != "" {
				continue
			}
			k := catalog.Key{Name: fmt.Sprintf("k%d-%d", i, allow), Allow: allow, Projects: projects}
			r.keys[keyOf(projects, allow)] = k.Renew()
			block.WriteString(hcledit.KeyBlock(&k))
		}
		files[fmt.Sprintf("keys%d.hcl", i)] = block.String()
	}
	r.desk = &desk{dir: t.TempDir(), store: resolver.Options{OpenSecret: func(s catalog.Secret, _ string) (string, error) {
		return s.Ref, nil
	}}}
	r.open(t, files)
	r.a, r.b = itoa(int(r.projectID(t, "acme"))), itoa(int(r.projectID(t, "globex")))
	return r, groupsOf
}

// people returns the groups of each of n people.
func (r *pairRig) people(n int) (groupsOf [][]any) {
	random := rand.New(rand.NewPCG(3, 5))
	for range n {
		var groups []any
		for range 1 + random.IntN(4) {
			groups = append(groups, fmt.Sprintf("g%d", random.IntN(len(r.rules))))
		}
		groupsOf = append(groupsOf, groups)
	}
	return groupsOf
}

func keyOf(projects []string, allow catalog.Permission) string { return fmt.Sprint(projects, allow) }

// allowOf is the oracle of what a person with some groups may do on all of some projects.
func (r *pairRig) allowOf(groups []any, projects []string) (allow catalog.Permission) {
	on := func(project string) (may catalog.Permission) { // "": every project
		for _, rule := range r.rules {
			if slices.Contains(groups, any(rule.Value)) && (rule.Projects == nil || slices.Contains(rule.Projects, project)) {
				may |= rule.Allow
			}
		}
		return may
	}
	if projects == nil {
		return on("")
	}
	allow = ^catalog.Permission(0)
	for _, p := range projects {
		may := on(p)
		if len(projects) > 1 && may&catalog.MayWrite != 0 { // who may write there may try and propose
			may |= catalog.MayPropose
		}
		allow &= may
	}
	return allow
}

// A pairCall is a call of the API that changes nothing, and what of its answer differs between keys.
type pairCall struct {
	method, path, body string
	rows               func(a *answer) []string // nil: the status alone
}

// texts returns a function that lists the values of a field in the rows of an answer.
func texts(field string) func(a *answer) []string {
	return func(a *answer) (list []string) {
		rows, _ := a.json["data"].([]any)
		for _, row := range rows {
			list = append(list, fmt.Sprint(row.(map[string]any)[field]))
		}
		return list
	}
}

func (r *pairRig) calls() []pairCall {
	secret := func(a *answer) []string {
		if strings.Contains(string(a.body), "0123456789abcdef") || strings.Contains(string(a.body), "fedcba9876543210") {
			return []string{"the secret"}
		}
		return nil
	}
	batch := func(a *answer) (list []string) {
		rows, _ := a.json["data"].([]any)
		for _, row := range rows {
			m := row.(map[string]any)
			if m["status"] == float64(200) {
				list = append(list, fmt.Sprint(m["domain"]))
				if result, _ := m["result"].(map[string]any); result["jwtSecret"] != nil {
					list = append(list, fmt.Sprint("secret of ", m["domain"]))
				}
			}
		}
		return list
	}
	const base, resolve = "/api/platform/projects", "/api/platform/projects/resolve"
	calls := []pairCall{
		{"GET", base, "", texts("slug")},
		{"GET", base + "?page=1&limit=10", "", texts("slug")},
		{"GET", base + "?q=e&page=1", "", texts("slug")},
		{"GET", "/api/platform/domains?q=example&page=1", "", texts("domain")},
		{"POST", resolve + "?form=flat", `{"domains":["acme.example","globex.example"]}`, batch},
		{"POST", base + "?dryRun=1", `{"name":"New"}`, nil},
		{"POST", base + "/bulk?dryRun=1", `{"projects":["acme","globex"],"set":{"status":"DRAFT"}}`, nil},
		{"GET", "/api/platform/keys", "", nil},
		{"POST", "/api/platform/keys?dryRun=1", `{"name":"n","allow":["mail"],"projects":["acme"]}`, nil},
		{"POST", "/api/platform/keys?dryRun=1", `{"name":"n","allow":["read"]}`, nil},
		{"GET", "/api/platform/webhooks", "", nil},
		{"GET", "/api/platform/audit?limit=100", "", texts("projectId")},
		{"GET", "/api/platform/edges", "", nil},
		{"GET", "/api/gate/ask?domain=acme.example", "", nil},
	}
	for id, slug := range map[string]string{r.a: "acme", r.b: "globex"} {
		calls = append(calls,
			pairCall{"GET", resolve + "?domain=" + slug + ".example", "", nil},
			pairCall{"GET", resolve + "?form=flat&domain=" + slug + ".example", "", secret},
			pairCall{"GET", base + "/" + id, "", nil},
			pairCall{"GET", base + "/by-slug/" + slug, "", nil},
			pairCall{"GET", base + "/" + id + "/auth-settings", "", nil},
			pairCall{"PUT", base + "/" + id + "?dryRun=1", `{"name":"Other"}`, nil},
			pairCall{"PUT", base + "/" + id + "?dryRun=1", `{"slug":"other"}`, nil},
			pairCall{"PUT", base + "/" + id + "?dryRun=1", `{"owner":"app"}`, nil},
			pairCall{"PUT", base + "/" + id, `{"name":7}`, nil}, // a real write, which fails after the permission
			pairCall{"POST", base + "/" + id + "/domains?dryRun=1", `{"domain":"x.` + slug + `.example"}`, nil},
			pairCall{"POST", base + "/" + id + "/domains?dryRun=1", `{"domain":"x.acme.example"}`, nil},
			pairCall{"DELETE", base + "/" + id + "?dryRun=1", "", nil},
			pairCall{"POST", base + "/bulk?dryRun=1", `{"projects":["` + slug + `"],"set":{"status":"DRAFT"}}`, nil},
			pairCall{"GET", "/api/platform/audit?projectId=" + id, "", nil},
			pairCall{"GET", "/api/mail/projects/" + id + "/logs", "", nil},
			pairCall{"POST", "/api/mail/send/raw", `{"domain":"` + slug + `.example","toEmail":"a@b.example","subject":"s","bodyHtml":"<p>x</p>"}`, nil},
		)
	}
	return calls
}

func (r *pairRig) do(c pairCall, key string) *answer {
	headers := []string{"Content-Type: application/json"}
	if strings.HasPrefix(c.path, "/api/mail") {
		headers, key = append(headers, "X-Internal-Service-Token: "+key, "X-Internal-Service-Name: test"), ""
	}
	return r.askBody(c.method, c.path, key, c.body, headers...)
}

// Over random rules and claims, a person may do exactly what the keys may that have some of the person's pairs of
// permission and project, all of them on the same projects.
func TestPersonMayWhatKeysMay(t *testing.T) {
	t.Parallel()
	r, groupsOf := newPairRig(t, testrig.Size(t, 400, 8))
	calls, allowed, refused, secrets := r.calls(), 0, 0, 0
	for n, groups := range groupsOf {
		text, end := r.resolver.AddPersonKey(&resolver.Person{Login: "company", Issuer: issuerOfTests, ClientID: "fingerpost",
			Subject: fmt.Sprint("ada", n), Claims: catalog.Claims{"groups": groups}})
		keys := map[string]string{}
		for _, projects := range reaches {
			if allow := r.allowOf(groups, projects); allow != 0 {
				keys[fmt.Sprint(projects, " ", allow.Words())] = r.keys[keyOf(projects, allow)]
			}
		}
		for _, c := range calls {
			status, rows := http.StatusForbidden, map[string]bool{}
			for _, key := range keys {
				a := r.do(c, key)
				if a.StatusCode == http.StatusForbidden {
					continue
				}
				if status = a.StatusCode; c.rows != nil {
					for _, row := range c.rows(a) {
						rows[row] = true
					}
				}
			}
			a, got := r.do(c, text), map[string]bool{}
			if c.rows != nil {
				for _, row := range c.rows(a) {
					got[row] = true
				}
			}
			if a.StatusCode != status || !maps.Equal(got, rows) {
				t.Errorf("%s %s %s\nas %v: %d %v\nkeys %v: %d %v", c.method, c.path, c.body, groups, a.StatusCode,
					slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(keys)), status, slices.Sorted(maps.Keys(rows)))
			}
			secrets += len(slices.DeleteFunc(slices.Collect(maps.Keys(rows)), func(row string) bool { return !strings.Contains(row, "secret") }))
			if status == http.StatusForbidden {
				refused++
			} else {
				allowed++
			}
		}
		end()
		// After many of them this peer's keys that fail are answered 429. One that is good is not.
		if a := r.ask("GET", "/api/platform/projects", text); a.StatusCode != http.StatusUnauthorized &&
			a.StatusCode != http.StatusTooManyRequests {
			t.Fatalf("after the end of the key: %d", a.StatusCode)
		}
	}
	if allowed < 50 || refused < 50 || secrets == 0 {
		t.Errorf("%d calls were allowed and %d refused, %d with secrets: the rules do not try much", allowed, refused, secrets)
	}
}

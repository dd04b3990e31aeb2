package api_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"fingerpost/configsrc/hcledit"
	"fingerpost/resolver/catalog"
)

// An ownersDesk is a server with two keys that sign customers up, each with an owner, and projects that people made.
type ownersDesk struct {
	*desk
	app, other, mixed string // mixed has the owner of app, and lists acme
}

func newOwnersDesk(t *testing.T) *ownersDesk {
	d := &ownersDesk{}
	files := map[string]string{
		"acme.hcl":     "project \"acme\" {\n  name = \"Acme\"\n\n  domain \"acme.example\" {}\n}\n",
		"defaults.hcl": "defaults {\n  verification { require = \"project-keys\" }\n}\n",
	}
	key := func(name, owner string, projects ...string) string {
		k := catalog.Key{Name: name, Owner: owner, Projects: append([]string{}, projects...),
			Allow: catalog.MayResolve | catalog.MayRead | catalog.MayWrite | catalog.MayMail | catalog.MayCreate}
		text := k.Renew()
		files["keys/"+name+".hcl"] = hcledit.KeyBlock(&k)
		return text
	}
	d.app, d.other, d.mixed = key("app", "app"), key("other", "other"), key("mixed", "app", "acme")
	d.desk = newDesk(t, files)
	return d
}

const projectsURL = "/api/platform/projects"

// signUp creates a customer's project.
func (d *ownersDesk) signUp(t *testing.T, key, slug string) (id int64) {
	t.Helper()
	a := d.askBody("POST", projectsURL, key, `{"name":"Customer","slug":"`+slug+`","domains":["`+slug+`.example"]}`)
	a.check(t, 201, "")
	return int64(a.json["data"].(map[string]any)["id"].(float64))
}

// slugs lists the projects that a key reaches.
func (d *ownersDesk) slugs(t *testing.T, key, query string) (slugs []string) {
	t.Helper()
	a := d.ask("GET", projectsURL+query, key)
	a.check(t, 200, "")
	for _, row := range a.json["data"].([]any) {
		slugs = append(slugs, row.(map[string]any)["slug"].(string))
	}
	slices.Sort(slugs)
	return slugs
}

// TestOwnerSignsUp: a key with create makes projects that have its owner, whose domains are pending, and reaches them at
// once in every way, as do other keys with that owner.
func TestOwnerSignsUp(t *testing.T) {
	t.Parallel()
	d := newOwnersDesk(t)
	id := d.signUp(t, d.app, "new")
	d.signUp(t, d.app, "newer")
	path := fmt.Sprintf("%s/%d", projectsURL, id)
	if file := d.files(t)["new.hcl"]; !strings.Contains(file, "owner = \"app\"") || !strings.Contains(file, "verified = \"pending\"") {
		t.Errorf("%s", file)
	}
	for _, query := range []string{"", "?page=1&limit=50", "?q=new", "?sort=name"} {
		if got := d.slugs(t, d.app, query); !slices.Equal(got, []string{"new", "newer"}) {
			t.Errorf("%s: %v", query, got)
		}
	}
	if got := d.slugs(t, d.mixed, ""); !slices.Equal(got, []string{"acme", "new", "newer"}) {
		t.Errorf("%v", got)
	}
	a := d.ask("GET", path+"?view=full", d.app)
	if a.check(t, 200, ""); !strings.Contains(string(a.body), `"owner":"app"`) {
		t.Errorf("%s", a.body)
	}
	if a := d.ask("GET", path, d.app); strings.Contains(string(a.body), "owner") {
		t.Errorf("the specification's project has an owner: %s", a.body)
	}
	d.ask("GET", projectsURL+"/by-slug/new", d.app).check(t, 200, "")
	d.askBody("POST", path+"/domains", d.app, `{"domain":"shop.new.example"}`).check(t, 201, "")
	d.askBody("PUT", path, d.app, `{"status":"ACTIVE"}`).check(t, 200, "")
	d.ask("DELETE", path, d.app).check(t, 200, "")
	if got := d.slugs(t, d.app, ""); !slices.Equal(got, []string{"newer"}) {
		t.Errorf("after the end of one: %v", got)
	}
	keys := d.ask("GET", "/api/platform/keys", d.key)
	if text := string(keys.body); !strings.Contains(text, `"projects":[],"owner":"app"`) || !strings.Contains(text, `"projects":["acme"],"owner":"app"`) {
		t.Errorf("%s", text)
	}
}

// TestOwnerSeesNoOther: for a key with an owner, another's project, one that does not exist and one of people are the
// same refusal in every call, and are in no list, search, count or answer.
func TestOwnerSeesNoOther(t *testing.T) {
	t.Parallel()
	d := newOwnersDesk(t)
	id := d.signUp(t, d.other, "theirs")
	acme := d.projectID(t, "acme")
	var refusal string
	for _, p := range []int64{id, acme, 12345678901234} {
		path := fmt.Sprintf("/projects/%d", p)
		for _, call := range [][2]string{{"GET", path}, {"GET", path + "?view=full"}, {"GET", path + "/domains"}, {"GET", path + "/auth-settings"},
			{"PUT", path}, {"DELETE", path}, {"POST", path + "/domains"}, {"GET", "/audit?projectId=" + fmt.Sprint(p)}} {
			a := d.askBody(call[0], "/api/platform"+call[1], d.app, `{"name":"Mine"}`)
			a.check(t, 403, "FORBIDDEN")
			text := string(a.body[:strings.Index(string(a.body), `,"timestamp"`)])
			if refusal == "" {
				refusal = text
			}
			if text != refusal {
				t.Errorf("%v: %s, elsewhere %s", call, text, refusal)
			}
		}
		mail := fmt.Sprintf("/api/mail/projects/%d/templates", p)
		d.askBody("GET", mail, "", "", "X-Internal-Service-Token: "+d.app, "X-Internal-Service-Name: tests").check(t, 403, "FORBIDDEN")
	}
	for _, slug := range []string{"theirs", "acme", "nobodys"} {
		d.ask("GET", projectsURL+"/by-slug/"+slug, d.app).check(t, 403, "FORBIDDEN")
	}
	for _, query := range []string{"", "?page=1&limit=1", "?q=theirs", "?q=a"} {
		a := d.ask("GET", projectsURL+query, d.app)
		if a.check(t, 200, ""); strings.Contains(string(a.body), "theirs") || strings.Contains(string(a.body), `"total":1`) {
			t.Errorf("%s: %s", query, a.body)
		}
	}
	a := d.askBody("POST", projectsURL, d.app, `{"name":"x","slug":"theirs"}`)
	if a.check(t, 409, "CONFLICT"); strings.Contains(string(a.body), "other") && strings.Contains(string(a.body), "owner") {
		t.Errorf("%s", a.body)
	}
	if a := d.ask("GET", "/api/platform/audit", d.app); strings.Contains(string(a.body), "theirs") {
		t.Errorf("%s", a.body)
	}
}

// TestOwnerIsGivenByPeople: only a key for every project gives a project an owner or takes it, and the reach of keys with
// an owner follows at once, also when a file says it.
func TestOwnerIsGivenByPeople(t *testing.T) {
	t.Parallel()
	d := newOwnersDesk(t)
	id := d.signUp(t, d.app, "new")
	path := fmt.Sprintf("%s/%d", projectsURL, id)
	for body, want := range map[string]int{`{"owner":"other"}`: 403, `{"owner":null}`: 403, `{"owner":"app","description":"x"}`: 200, `{"owner":"a b"}`: 400} {
		d.askBody("PUT", path, d.app, body).check(t, want, map[int]string{403: "FORBIDDEN", 400: "VALIDATION_ERROR"}[want])
	}
	d.askBody("PUT", projectsURL+fmt.Sprintf("/%d", d.projectID(t, "acme")), d.mixed, `{"owner":"app"}`).check(t, 200, "") // its own: ignored
	if acme, err := d.resolver.ProjectBySlug("acme"); err != nil || acme.Owner != nil {
		t.Error("a key that lists a project has given it an owner")
	}
	d.askBody("PUT", path, d.app, `{"slug":"renamed"}`).check(t, 403, "FORBIDDEN")
	for _, body := range []string{`{"name":"x","owner":"other"}`, `{"name":"x","slug":"x","owner":"x"}`} {
		d.askBody("POST", projectsURL, d.app, body).check(t, 403, "FORBIDDEN")
	}
	d.askBody("PUT", path, d.key, `{"owner":"other"}`).check(t, 200, "")
	d.ask("GET", path, d.app).check(t, 403, "FORBIDDEN")
	d.ask("GET", path, d.other).check(t, 200, "")
	d.save(t, map[string]string{"new.hcl": strings.Replace(d.files(t)["new.hcl"], `"other"`, `"app"`, 1)})
	d.reload(t)
	d.ask("GET", path, d.app).check(t, 200, "")
	d.ask("GET", path, d.other).check(t, 403, "FORBIDDEN")
	d.askBody("PUT", path, d.key, `{"owner":null}`).check(t, 200, "")
	d.ask("GET", path, d.app).check(t, 403, "FORBIDDEN")
	if file := d.files(t)["new.hcl"]; strings.Contains(file, "owner") {
		t.Errorf("%s", file)
	}
}

// TestOwnerOfKeys: create needs an owner, and a key gives no owner that it has not.
func TestOwnerOfKeys(t *testing.T) {
	t.Parallel()
	d := newOwnersDesk(t)
	const keys = "/api/platform/keys"
	for body, want := range map[string]int{
		`{"name":"a","allow":["create"]}`:                             400,
		`{"name":"a","allow":["create"],"owner":"a b"}`:               400,
		`{"name":"b","allow":["create"],"owner":"b"}`:                 201,
		`{"name":"c","allow":["read"],"owner":"b"}`:                   201,
		`{"name":"d","allow":["read","write","secrets"],"owner":"b"}`: 201,
	} {
		a := d.askBody("POST", keys, d.key, body)
		if a.StatusCode != want {
			t.Errorf("%s: %d %s", body, a.StatusCode, a.body)
		}
	}
	d.askBody("POST", keys, d.app, `{"name":"e","allow":["read"],"owner":"app"}`).check(t, 403, "FORBIDDEN")
	only := d.askBody("POST", keys, d.key, `{"name":"only","allow":["create"],"owner":"only"}`)
	text := only.json["data"].(map[string]any)["key"].(string)
	id := d.signUp(t, text, "only") // without read it sees nothing of it
	d.ask("GET", fmt.Sprintf("%s/%d", projectsURL, id), text).check(t, 403, "FORBIDDEN")
	d.askBody("PUT", fmt.Sprintf("%s/%d", projectsURL, id), text, `{"name":"x"}`).check(t, 403, "FORBIDDEN")
	rotated := d.ask("POST", keys+"/only/rotate", text)
	rotated.check(t, 200, "")
	if k := d.resolver.Keys().Named("only"); k.Owner != "only" || k.Projects == nil || k.EveryProject() {
		t.Errorf("%+v", k)
	}
}

// TestOwnerClaims: the domains of a new project of such a key follow the rules of keys with projects: none below or above
// another's names, no public suffix, no name that somebody has; and nothing of a refused project stays.
func TestOwnerClaims(t *testing.T) {
	t.Parallel()
	d := newOwnersDesk(t)
	d.save(t, map[string]string{"wide.hcl": "project \"wide\" {\n  name = \"Wide\"\n\n  domain \"*.wide.example\" {}\n}\n"})
	d.reload(t)
	d.signUp(t, d.other, "theirs") // theirs.example is pending, and keeps nobody out of what lies below it
	before := d.files(t)
	for name, want := range map[string]string{"shop.wide.example": "DOMAIN_NOT_ALLOWED", "x.acme.example": "DOMAIN_NOT_ALLOWED",
		"*.acme.example": "DOMAIN_NOT_ALLOWED", "co.uk": "DOMAIN_NOT_ALLOWED", "localhost": "DOMAIN_NOT_ALLOWED",
		"acme.example": "CONFLICT", "theirs.example": "CONFLICT"} {
		for _, query := range []string{"?dryRun=1", ""} {
			a := d.askBody("POST", projectsURL+query, d.app, `{"name":"New","domains":["fine.example","`+name+`"]}`)
			if a.code() != want || !slices.Equal(a.fields(), []string{"domains[1]"}) {
				t.Errorf("%s%s: %d %s, want %s", name, query, a.StatusCode, a.body, want)
			}
			if text := string(a.body); strings.Contains(text, "wide\"") || strings.Contains(text, "theirs\"") {
				t.Errorf("%s tells whose it is: %s", name, text)
			}
		}
	}
	d.compare(t, before)
	a := d.askBody("POST", projectsURL, d.app, `{"name":"New","domains":["shop.theirs.example","own.example"]}`)
	if a.check(t, 201, ""); strings.Count(d.files(t)["new.hcl"], `"pending"`) != 2 {
		t.Errorf("%s", d.files(t)["new.hcl"])
	}
	id := int64(a.data()["id"].(float64))
	d.askBody("PUT", fmt.Sprintf("%s/%d", projectsURL, id), d.app, `{"labels":{"plan":"gold"}}`).check(t, 200, "")
	d.ask("GET", "/api/platform/projects/resolve?domain=own.example", d.app).check(t, 403, "DOMAIN_NOT_VERIFIED")
}

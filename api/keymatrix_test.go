package api_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"fingerpost/cmd/testrig"
	"fingerpost/configsrc/hcledit"
	"fingerpost/resolver/catalog"
)

// A rights is what a key may do, in the words of the API.
type rights struct {
	allow    []string
	projects []string // nil: every project
	owner    string
	life     time.Duration // 0: for ever
}

// everyRights lists all sets of permissions, for one project, for all and for an owner's, with three ends.
func everyRights() (all []rights) {
	words := []string{"resolve", "read", "write", "mail", "secrets"}
	for set := 1; set < 1<<len(words); set++ {
		var allow []string
		for i, w := range words {
			if set>>i&1 == 1 {
				allow = append(allow, w)
			}
		}
		for _, projects := range [][]string{nil, {"acme"}} {
			for _, life := range []time.Duration{0, time.Hour, 48 * time.Hour} {
				all = append(all, rights{allow, projects, "", life})
			}
		}
		all = append(all, rights{append(slices.Clone(allow), "create"), []string{}, "app", time.Hour})
	}
	return all
}

// manages is the oracle of who may manage keys at all.
func (r rights) manages() bool {
	return slices.Contains(r.allow, "write") && slices.Contains(r.allow, "secrets") && r.projects == nil
}

// misses is the oracle of what a key that manages keys cannot give: the fields in which other has more.
func (r rights) misses(other rights) (fields []string) {
	for _, w := range other.allow {
		if !slices.Contains(r.allow, w) && w != "create" { // write on every project includes it
			fields = append(fields, "allow")
			break
		}
	}
	if r.life != 0 && (other.life == 0 || other.life > r.life) {
		fields = append(fields, "end")
	}
	return fields
}

// A matrix is a server with a key of each kind.
type matrix struct {
	*desk
	rights []rights
	texts  []string // by rights
}

func newMatrix(t *testing.T) *matrix {
	m := &matrix{rights: everyRights()}
	files := map[string]string{"acme.hcl": "project \"acme\" {\n  name = \"Acme\"\n}\n"}
	now := time.Now().Truncate(time.Second) // one for all: keys with the same life end at the same time
	for i, r := range m.rights {
		k := catalog.Key{Name: fmt.Sprintf("k%d", i), Projects: r.projects, Owner: r.owner}
		k.Allow, _ = catalog.ParsePermissions(r.allow)
		if r.life != 0 {
			k.ExpiresAt = now.Add(r.life)
		}
		m.texts = append(m.texts, k.Renew())
		files["keys/"+k.Name+".hcl"] = hcledit.KeyBlock(&k) // small files: a write takes less time
	}
	m.desk = newDesk(t, files)
	return m
}

// pairs calls f with some callers and other rights, in CI with all.
func (m *matrix) pairs(t *testing.T, f func(caller, other int)) {
	managing, others, n := testrig.Size(t, 1, 97), testrig.Size(t, 1, 701), 0
	for caller, r := range m.rights {
		every := others
		if r.manages() {
			every = managing
		}
		for other := range m.rights {
			if n++; n%every == 0 {
				f(caller, other)
			}
		}
	}
}

// check compares an answer with the oracle, and reports whether the call was allowed.
func (m *matrix) check(t *testing.T, a *answer, caller, other int, expiry string) bool {
	t.Helper()
	c, o := m.rights[caller], m.rights[other]
	misses := c.misses(o)
	for i := range misses {
		misses[i] = strings.Replace(misses[i], "end", expiry, 1)
	}
	switch ok := a.StatusCode == 200 || a.StatusCode == 201; {
	case !c.manages():
		a.check(t, 403, "FORBIDDEN")
		if len(a.fields()) > 0 {
			t.Errorf("%+v is told %s", c, a.body)
		}
	case len(misses) > 0:
		a.check(t, 403, "FORBIDDEN")
		if !slices.Equal(a.fields(), misses) {
			t.Errorf("%+v, %+v: details for %v, want %v", c, o, a.fields(), misses)
		}
	case !ok:
		t.Errorf("%+v, %+v: %d %s", c, o, a.StatusCode, a.body)
	default:
		return true
	}
	return false
}

// Nobody can give what he does not have.
func TestKeyMatrixCreate(t *testing.T) {
	t.Parallel()
	m, allowed := newMatrix(t), 0
	m.pairs(t, func(caller, other int) {
		o, expiry := m.rights[other], "expiresAt"
		body := map[string]any{"name": "new", "allow": o.allow}
		switch {
		case o.owner != "":
			body["owner"] = o.owner
		case o.projects != nil:
			body["projects"] = o.projects
		}
		if o.life != 0 {
			expiry = "expiresIn"
			body["expiresIn"] = (o.life - 30*time.Minute).String() // some of the caller's time has passed
		}
		text, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		a := m.askBody("POST", "/api/platform/keys", m.texts[caller], string(text))
		if !m.check(t, a, caller, other, expiry) {
			return
		}
		allowed++
		data := a.json["data"].(map[string]any)
		if a.StatusCode != 201 || a.Header.Get("Cache-Control") != "no-store" || a.Header.Get("Location") != "/api/platform/keys/new" {
			t.Errorf("%d %v", a.StatusCode, a.Header)
		}
		if k := m.resolver.Keys().Named("new"); k == nil || !slices.Equal(k.Allow.Words(), o.allow) ||
			catalog.HashKeyText(data["key"].(string)) != k.HashText() || !slices.Equal(k.Projects, o.projects) || k.ExpiresAt.IsZero() != (o.life == 0) {
			t.Errorf("%+v came to %+v", o, k)
		}
		m.ask("DELETE", "/api/platform/keys/new", m.texts[caller]).check(t, 200, "")
	})
	if allowed < 10 {
		t.Errorf("only %d calls were allowed", allowed)
	}
}

// Nobody can rotate a key that has more, because he would see its text. Every key can rotate itself.
func TestKeyMatrixRotate(t *testing.T) {
	t.Parallel()
	testrig.Thorough(t)
	m, allowed := newMatrix(t), 0
	rotate := func(caller, other int) {
		a := m.ask("POST", fmt.Sprintf("/api/platform/keys/k%d/rotate", other), m.texts[caller])
		if caller == other {
			a.check(t, 200, "")
		} else if !m.check(t, a, caller, other, "expiresAt") {
			return
		}
		allowed++
		k, text := m.resolver.Keys().Named(fmt.Sprintf("k%d", other)), a.json["data"].(map[string]any)["key"].(string)
		if o := m.rights[other]; k == nil || catalog.HashKeyText(text) != k.HashText() || !slices.Equal(k.Allow.Words(), o.allow) ||
			!slices.Equal(k.Projects, o.projects) || k.ExpiresAt.IsZero() != (o.life == 0) || a.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%+v came to %+v", o, k)
		}
		m.texts[other] = text // the old one ends in a day
	}
	m.pairs(t, rotate)
	for i := range m.rights {
		rotate(i, i)
	}
	if allowed < 30 {
		t.Errorf("only %d calls were allowed", allowed)
	}
}

// A key that manages keys can revoke any but the last that has every permission on every project.
func TestKeyMatrixRevoke(t *testing.T) {
	t.Parallel()
	testrig.Thorough(t)
	m := newMatrix(t)
	m.pairs(t, func(caller, other int) {
		name, want, code := fmt.Sprintf("k%d", other), 200, ""
		switch r := m.rights[caller]; {
		case m.resolver.Keys().Named(fmt.Sprintf("k%d", caller)) == nil:
			return // throttled after some tries
		case !r.manages():
			want, code = 403, "FORBIDDEN"
		case m.resolver.Keys().Named(name) == nil:
			want, code = 404, "NOT_FOUND"
		}
		m.ask("DELETE", "/api/platform/keys/"+name, m.texts[caller]).check(t, want, code)
	})
	full := func(r rights) bool { return len(r.allow) == 5 && r.projects == nil }
	for i, r := range m.rights {
		if name := fmt.Sprintf("k%d", i); full(r) && m.resolver.Keys().Named(name) != nil {
			m.ask("DELETE", "/api/platform/keys/"+name, m.key).check(t, 200, "")
		}
	}
	m.ask("DELETE", "/api/platform/keys/story", m.key).check(t, 409, "CONFLICT")
	if m.resolver.Keys().Named("story") == nil {
		t.Error("the last key that may do everything is gone")
	}
}

// A revocation names the old keys of rotations that go on, and ends them too if that is asked for. A key that ends
// earlier does not count as another one that may do everything.
func TestKeyRevokeAll(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	m := newMatrix(t)
	const keys = "/api/platform/keys"
	all := `"allow":["resolve","read","write","mail","secrets"]`
	create := func(name, more string) string {
		t.Helper()
		made := m.askBody("POST", keys, m.key, `{"name":"`+name+`",`+all+more+`}`)
		made.check(t, 201, "")
		return regexp.MustCompile(`fpk_\w+`).FindString(string(made.body))
	}
	rotate := func(name string) string {
		t.Helper()
		a := m.askBody("POST", keys+"/"+name+"/rotate", m.key, `{"overlap":"1h"}`)
		a.check(t, 200, "")
		return regexp.MustCompile(`fpk_\w+`).FindString(string(a.body))
	}
	works := func(text string) bool { return m.ask("GET", "/api/platform/projects", text).StatusCode == 200 }
	good := func(body []byte) int { return strings.Count(string(body), `"checkout-`) }

	first := create("checkout", "")
	second := rotate("checkout")
	a := m.askBody("POST", keys+"/checkout/rotate", m.key, `{"overlap":"1h"}`)
	third := regexp.MustCompile(`fpk_\w+`).FindString(string(a.body))
	if n := good(a.body); n != 3 || !strings.Contains(string(a.body), `"stillGood":[{"name":"checkout-`) { // in replaced, too
		t.Errorf("the second rotation names %d: %s", n, a.body)
	}
	m.ask("DELETE", keys+"/checkout?all=2", m.key).check(t, 400, "VALIDATION_ERROR")
	m.ask("DELETE", keys+"/checkout?all=1&dryRun=1", m.key).check(t, 400, "VALIDATION_ERROR")
	revoked := m.ask("DELETE", keys+"/checkout", m.key)
	revoked.check(t, 200, "")
	if n := good(revoked.body); n != 2 || works(third) || !works(first) || !works(second) {
		t.Errorf("%d are still good: %s; %v %v %v", n, revoked.body, works(first), works(second), works(third))
	}
	again := create("checkout", "")
	ended := m.ask("DELETE", keys+"/checkout?all=1", m.key)
	ended.check(t, 200, "")
	if !strings.Contains(string(ended.body), `"data":null`) || works(first) || works(second) || works(again) {
		t.Errorf("after all=1: %s; %v %v %v", ended.body, works(first), works(second), works(again))
	}

	// The last one.
	for _, k := range m.resolver.Keys().All() {
		if k.Full(time.Now()) && k.Name != "story" {
			m.ask("DELETE", keys+"/"+k.Name, m.key).check(t, 200, "")
		}
	}
	create("brief", `,"expiresIn":"2h"`)
	m.ask("DELETE", keys+"/story", m.key).check(t, 409, "CONFLICT")
	long := create("long", "")
	m.ask("DELETE", keys+"/brief", m.key).check(t, 200, "")
	m.ask("DELETE", keys+"/story", m.key).check(t, 200, "")
	m.ask("DELETE", keys+"/long", long).check(t, 409, "CONFLICT")
	// With its own old keys it is the last as well.
	a = m.askBody("POST", keys+"/long/rotate", long, `{"overlap":"1h"}`)
	a.check(t, 200, "")
	long = regexp.MustCompile(`fpk_\w+`).FindString(string(a.body))
	m.ask("DELETE", keys+"/long?all=1", long).check(t, 409, "CONFLICT")
	m.ask("DELETE", keys+"/long", long).check(t, 409, "CONFLICT")
}

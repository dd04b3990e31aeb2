package api_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"fingerpost/cmd/testrig"
)

// staleForm opens the form of a project, and has somebody else save its name, description and status.
func staleForm(t *testing.T) (g *guest, sent url.Values) {
	t.Helper()
	r := newConsoleRig(t, newDesk(t, map[string]string{"acme.hcl": "project \"acme\" {\n  name = \"Acme\"\n  status = \"DRAFT\"\n}\n"}))
	p, err := r.resolver.ProjectBySlug("acme")
	if err != nil {
		t.Fatal(err)
	}
	g = r.signIn(t, r.key)
	g.send(fmt.Sprintf("/console/edit?kind=project&project=%d", p.ID), nil)
	sent, _ = g.controls("/console/edit")
	r.askBody("PUT", fmt.Sprintf("/api/platform/projects/%d", p.ID), r.key,
		`{"name":"Theirs","description":"theirs","status":"ACTIVE"}`, "X-Actor: Grace Hopper <grace@example.com>").check(t, 200, "")
	return g, sent
}

// differing lists the fields that a page of a conflict shows with two values.
func (g *guest) differing() (names []string) {
	for _, part := range strings.Split(g.page, `name="theirs" value="`)[1:] {
		name, _, _ := strings.Cut(part, `"`)
		names = append(names, name)
	}
	return names
}

// TestConsoleConflictOfTwo: the page of a conflict has the fields that differ, says who has saved them, and takes theirs for
// each that is ticked. The others are saved as the person has them.
func TestConsoleConflictOfTwo(t *testing.T) {
	g, sent := staleForm(t)
	sent.Set("name", "Mine")
	sent.Set("labels", "plan=gold")
	g.send("/console/edit", sent)
	if got := g.differing(); g.status != http.StatusConflict || !slices.Equal(got, []string{"name", "labels"}) {
		t.Fatalf("%d, differing: %v: %s", g.status, got, visibleText(g.page))
	}
	text := visibleText(g.page)
	for _, want := range []string{"Grace Hopper", "just now", "Also changed, and kept as it is now: Description, by Grace Hopper just now; Status, by Grace Hopper",
		"Name, in the file now Theirs, by Grace Hopper just now", "Labels, in the file now empty – as it was when you began"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q: %s", want, text)
		}
	}
	again, _ := g.controls("/console/edit")
	if call := g.changed("theirs for the name", again, "theirs", "name"); call == nil || !slices.Equal(slices.Collect(maps.Keys(call.body)), []string{"labels"}) {
		t.Errorf("it sends %v", call)
	}
	if call := g.changed("mine", again, "name", "Mine"); call == nil || call.body["name"] != "Mine" || len(call.body) != 2 {
		t.Errorf("it sends %v", call)
	}
	all := maps.Clone(again)
	all["theirs"] = []string{"name", "labels"}
	g.send("/console/edit", all)
	if !strings.Contains(g.page, "Nothing was changed.") {
		t.Errorf("theirs for all: %s", visibleText(g.page))
	}
}

// TestConsoleConflictOfEqual: a form that nobody has touched, or in which a person has chosen what is there by now, is no
// conflict.
func TestConsoleConflictOfEqual(t *testing.T) {
	g, sent := staleForm(t)
	for what, name := range map[string]string{"untouched": "Acme", "the same": "Theirs"} {
		form := maps.Clone(sent)
		form.Set("name", name)
		if g.send("/console/edit", form); g.status != http.StatusOK || !strings.Contains(g.page, "Nothing was changed.") {
			t.Errorf("%s: %d %s", what, g.status, visibleText(g.page))
		}
	}
}

// TestConsoleUntouchedConflict makes a conflict about each field of each form in each of its states: the page has that field
// alone, theirs changes nothing, and mine sends what it would have sent without the conflict.
func TestConsoleUntouchedConflict(t *testing.T) {
	testrig.Thorough(t)
	r, states, roles := formFixture(t, formDefaults)
	g := r.signIn(t, roles["writer"])
	pages, n := 0, 0
	for _, s := range states {
		g.send(s.path, nil)
		sent, seen := g.controls("/console/edit")
		if sent.Get("etag") == "" { // the project does not have it yet
			continue
		}
		for _, c := range seen {
			for _, values := range otherValues(c) {
				if n++; n%testrig.Size(t, 1, 7) != 0 {
					continue
				}
				pages++
				s.conflicts(g, sent, c.name, values)
			}
		}
	}
	t.Logf("%d conflicts", pages)
}

// conflicts sends a form with one changed field and the ETag of an older version.
func (s *formState) conflicts(g *guest, sent url.Values, name string, values []string) {
	g.t.Helper()
	stale := maps.Clone(sent)
	stale.Set("etag", `"older"`)
	stale[name] = values
	g.send("/console/edit", stale)
	if got := g.differing(); g.status != http.StatusConflict || !slices.Equal(got, []string{name}) {
		g.t.Errorf("%s: %s = %q: %d, differing: %v: %s", s.state, name, values, g.status, got, visibleText(g.page))
		return
	}
	again, _ := g.controls("/console/edit")
	secret := again.Get(name) == "" && (name == "password" || name == "oauthClientSecret")
	if secret { // it does not travel back
		again[name] = values
	}
	s.changesOne(g, "after a conflict: "+s.state, again, name, again[name])
	before := len(g.calls)
	again.Set("theirs", name)
	g.send("/console/edit", again)
	if len(g.calls) != before || !strings.Contains(g.page, "Nothing was changed.") {
		g.t.Errorf("%s: theirs for %s: %d calls, %s", s.state, name, len(g.calls)-before, visibleText(g.page))
	}
}

package api_test

import (
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

// anotherValue is what a person enters first in a form for something new.
var anotherValue = map[string]string{"project": "name", "key": "name", "webhook": "name", "domain": "domain", "template": "name",
	"smtp-config": "host", "service-settings": "smsEnabled", "auth-settings": "inviteOnly"}

// TestConsoleEveryForm opens each form of each kind as each role, also forms for something new, those that begin with a
// preset, and those that delete. Exactly the roles that may send one see it; submitted untouched it changes nothing, and
// what its buttons ask for is not refused to the key.
func TestConsoleEveryForm(t *testing.T) {
	r, states, roles := formFixture(t, formDefaults)
	roles["admin"] = r.key
	in := map[string]int64{} // a project of each kind's first state
	for _, s := range states {
		if p, err := r.resolver.ProjectBySlug(s.slug); err != nil {
			t.Fatal(err)
		} else if in[s.kind] == 0 {
			in[s.kind] = p.ID
		}
	}
	list, _, err := r.resolver.Templates(in["template"], resolver.Query{})
	if err != nil || len(list) != 2 {
		t.Fatal(len(list), err)
	}
	forms := []string{"kind=project", "kind=key", "kind=webhook"}
	for _, preset := range catalog.Presets {
		forms = append(forms, "kind=key&preset="+preset.Name)
	}
	for kind, project := range in {
		if path := fmt.Sprintf("kind=%s&project=%d", kind, project); kind != "template" {
			forms = append(forms, path)
		} else {
			forms = append(forms, path, path+fmt.Sprintf("&id=%d", list[0].ID), path+fmt.Sprintf("&id=%d", list[1].ID))
		}
	}
	tried := 0
	for role, key := range roles {
		g := r.signIn(t, key)
		for _, form := range forms {
			kind := regexp.MustCompile("kind=([a-z-]+)").FindStringSubmatch(form)[1]
			may := slices.Contains(formEditors, role)
			switch {
			case role == "admin":
				may = true
			case kind == "key" || kind == "webhook":
				may = false // needs secrets
			case form == "kind=project":
				may = role == "writer" || role == "proposer"
			}
			g.formOf(role+": "+form, "/console/edit?"+form, kind, may)
			tried++
		}
		// A key that may send mail may test settings; an untouched form tests those that are stored.
		g.send(fmt.Sprintf("/console/smtp-test?project=%d", in["smtp-config"]), nil)
		if sent, _ := g.controls("/console/smtp-test"); (sent != nil) != (role == "mailer" || role == "admin") {
			t.Errorf("%s: a test of SMTP settings: %d", role, g.status)
		} else if sent != nil {
			before := len(g.calls)
			sent.Set("toEmail", "ada@example.com")
			g.send("/console/smtp-test", sent)
			if made := g.calls[before:]; len(made) != 1 || made[0].path != fmt.Sprintf("/api/mail/projects/%d/smtp-config/test", in["smtp-config"]) ||
				len(made[0].body) != 1 || made[0].status == http.StatusForbidden {
				t.Errorf("%s: an untouched test makes %+v", role, made)
			}
		}
	}
	t.Logf("%d roles, %d forms", len(roles), tried)
}

// formOf opens a form, submits it untouched, then with one value changed.
func (g *guest) formOf(what, path, kind string, may bool) {
	g.t.Helper()
	g.send(path, nil)
	sent, _ := g.controls("/console/edit")
	if (sent != nil) != may || !may && g.status != http.StatusForbidden {
		g.t.Errorf("%s: it is offered: %v, want %v: %d %s", what, sent != nil, may, g.status, visibleText(g.page))
	}
	if !may || sent == nil {
		return
	}
	if !strings.Contains(path, "preset=") { // whose choice is a change
		g.nothingChanged(what)
	}
	name := anotherValue[kind]
	value := map[string]string{"yes": "no", "no": "yes"}[sent.Get(name)]
	if value == "" {
		value = "other.example"
	}
	if call := g.changed(what, sent, name, value); call != nil && (call.status == http.StatusForbidden || call.status == http.StatusUnauthorized) {
		g.t.Errorf("%s: with another %s: %d %v", what, name, call.status, call.answer)
	}
	// A form that deletes, where there is something to delete.
	if g.send(path+"&delete=1", nil); !strings.Contains(g.page, `name="delete"`) {
		return
	}
	sent, _ = g.controls("/console/edit")
	before := len(g.calls)
	g.send("/console/edit", sent)
	if made := g.calls[before:]; len(made) != 1 || made[0].method != http.MethodDelete || made[0].status == http.StatusForbidden {
		g.t.Errorf("%s: to delete it makes %+v: %d %s", what, made, g.status, visibleText(g.page))
	}
}

// TestConsoleDefaultTemplate: a default template becomes the project's own with all that it has.
func TestConsoleDefaultTemplate(t *testing.T) {
	r, states, roles := formFixture(t, "")
	p, err := r.resolver.ProjectBySlug(states[0].slug)
	if err != nil {
		t.Fatal(err)
	}
	list, _, err := r.resolver.Templates(p.ID, resolver.Query{})
	if err != nil || len(list) == 0 {
		t.Fatal(len(list), err)
	}
	for _, role := range formEditors {
		g := r.signIn(t, roles[role])
		g.send(fmt.Sprintf("/console/edit?kind=template&project=%d&id=%d", p.ID, list[0].ID), nil)
		sent, _ := g.controls("/console/edit")
		call := g.changed(role, sent, "name", "Own")
		want := map[string]any{"code": "DEFAULT", "name": "Own", "subjectTemplate": " S ", "bodyHtml": "<p>\r\n</p>",
			"active": false, "maxAge": "24h"}
		if call != nil && (!maps.Equal(call.body, want) || call.status != http.StatusOK) {
			t.Errorf("%s: %d %v, want %v", role, call.status, call.body, want)
		}
	}
}

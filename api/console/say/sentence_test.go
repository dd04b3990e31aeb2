package say_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"fingerpost/api/client"
	"fingerpost/api/console/say"
	"fingerpost/resolver/catalog"
)

const acme = 57762359579023

func names(project int64) string {
	if project == acme {
		return "Acme"
	}
	return ""
}

// entry makes an entry from the form in which the API shows it.
func entry(t *testing.T, action, object, changes string) *client.AuditEntry {
	t.Helper()
	e := &client.AuditEntry{Action: action, Door: "api"}
	if err := json.Unmarshal([]byte(changes), &e.Changes); err != nil {
		t.Fatalf("%s: %v", changes, err)
	}
	id, actor, key := int64(acme), "Ada Lovelace <ada@example.com>", "desk"
	e.ProjectID, e.Object, e.Actor, e.Key = &id, &object, &actor, &key
	return e
}

func TestSentences(t *testing.T) {
	for _, c := range []struct{ action, object, changes, want string }{
		{"project.create", "acme", `[{"field":"name","before":null,"after":"Acme Corp"}]`, "Ada Lovelace created the project Acme"},
		{"project.update", "acme", `[{"field":"name","before":"Acme","after":"Acme Shop"}]`, "Ada Lovelace renamed Acme to Acme Shop"},
		{"project.update", "shop", `[{"field":"slug","before":"acme","after":"shop"},{"field":"name","before":"Acme","after":"Shop"}]`,
			"Ada Lovelace renamed Acme to Shop (slug shop)"},
		{"project.update", "acme", `[{"field":"name","before":"Acme","after":"Shop"},{"field":"description","before":"a","after":"b"}]`,
			"Ada Lovelace renamed Acme to Shop, and changed “Description”"},
		{"project.update", "shop", `[{"field":"slug","before":"acme","after":"shop"}]`,
			"Ada Lovelace gave Acme the slug shop, before: acme"},
		{"project.update", "acme", `[{"field":"status","before":"ACTIVE","after":"SUSPENDED"}]`, "Ada Lovelace suspended Acme"},
		{"project.update", "acme", `[{"field":"status","before":"DRAFT","after":"ACTIVE"}]`, "Ada Lovelace activated Acme"},
		{"project.update", "acme", `[{"field":"status","before":"ACTIVE","after":"DRAFT"}]`, "Ada Lovelace set Acme back to draft"},
		{"project.update", "acme", `[{"field":"labels","before":{"a":"1"},"after":{"a":"1","plan":"gold"}}]`,
			"Ada Lovelace set the label plan=gold on Acme"},
		{"project.update", "acme", `[{"field":"labels","before":{"a":"1"},"after":null}]`,
			"Ada Lovelace removed the label a from Acme"},
		{"project.update", "acme", `[{"field":"description","before":null,"after":"50%off %p"}]`,
			"Ada Lovelace set “Description” of Acme to 50%off %p"},
		{"project.update", "acme", `[{"field":"description","before":null,"after":"` + strings.Repeat("x", 100) + `"}]`,
			"Ada Lovelace changed “Description” of Acme"},
		{"project.delete", "acme", `[]`, "Ada Lovelace deleted the project Acme"},
		{"domain.create", "shop.acme.example", `[]`, "Ada Lovelace added the domain shop.acme.example to Acme"},
		{"domain.delete", "shop.acme.example", `[]`, "Ada Lovelace removed the domain shop.acme.example from Acme"},
		{"domain.update", "a.example", `[{"field":"active","before":true,"after":false}]`,
			"Ada Lovelace deactivated the domain a.example of Acme"},
		{"domain.update", "a.example", `[{"field":"primary","before":false,"after":true}]`,
			"Ada Lovelace made a.example the primary domain of Acme"},
		{"auth-settings.update", "acme", `[{"field":"passwordMinLength","before":8,"after":10}]`,
			"Ada Lovelace changed “Characters of the shortest password” of the auth settings of Acme from 8 to 10"},
		{"service-settings.update", "acme", `[{"field":"mailEnabled","before":false,"after":true}]`,
			"Ada Lovelace turned “Mail service” on in the service settings of Acme"},
		{"smtp-config.update", "acme", `[{"field":"host","before":"a","after":"b"},{"field":"password","secret":true,"before":null,"after":null}]`,
			"Ada Lovelace changed “Host” and “Password” of the mail server of Acme"},
		{"smtp-config.update", "acme", `[{"field":"host"},{"field":"port"},{"field":"username"},{"field":"password"}]`,
			"Ada Lovelace changed 4 values of the mail server of Acme"},
		{"template.update", "WELCOME", `[{"field":"subjectTemplate","before":"Hi","after":"Hello"}]`,
			"Ada Lovelace changed “Subject” of the mail template WELCOME of Acme from Hi to Hello"},
		{"key.update", "ci", `[{"field":"allow","before":["read"],"after":["read","write"]}]`,
			"Ada Lovelace changed what the key ci may do, from read to read, write"},
		{"key.rotate", "ci", `[{"field":"id"},{"field":"key","secret":true}]`, "Ada Lovelace rotated the key ci"},
		{"key.delete", "ci", `[]`, "Ada Lovelace revoked the key ci"},
		{"webhook.update", "crm", `[{"field":"url","secret":true}]`, "Ada Lovelace changed “Address” of the webhook crm"},
		{"webhook.update", "crm", `[{"field":"active","before":true,"after":false}]`, "Ada Lovelace switched the webhook crm off"},
		{"webhook.update", "crm", `[{"field":"active","before":false,"after":true}]`, "Ada Lovelace switched the webhook crm on"},
		{"webhook.replay", "crm", `[{"field":"delivery","after":"1.2.crm"},{"field":"count","after":1}]`,
			"Ada Lovelace sent 1 event again to the webhook crm"},
		{"webhook.replay", "crm", `[]`, "Ada Lovelace sent events again to the webhook crm"},
		{"webhook.rotate", "crm", `[{"field":"secret","secret":true}]`, "Ada Lovelace rotated the secret of the webhook crm"},
		{"defaults.update", "", `[{"field":"authSettings.passwordMinLength","before":8,"after":10}]`,
			"Ada Lovelace changed “Characters of the shortest password” of the defaults of every project from 8 to 10"},
		{"store.load", "", `[{"field":"projects","after":1},{"field":"domains","after":5}]`,
			"All files were loaded: 1 project and 5 domains"},
		{"brake.confirm", "", `[{"field":"reason","after":"x"},{"field":"projects","after":3},{"field":"domains","after":1}]`,
			"Ada Lovelace let a reload through that was held back, with 3 removed projects and 1 removed domain"},
		{"proposal.approve", "", `[{"field":"proposal","after":"rename-shop"},{"field":"commit","after":"5657785b"}]`,
			"Ada Lovelace approved of the proposal rename-shop"},
		{"proposal.apply", "", `[{"field":"proposal","after":"rename-shop"}]`, "Ada Lovelace applied the proposal rename-shop"},
		{"proposal.drop", "", `[{"field":"proposal","after":"x"},{"field":"reason","after":"no write since 720h0m0s"}]`,
			"Ada Lovelace dropped the proposal x: no write since 720h0m0s"},
		{"customer-links.end", "", "[]", "Ada Lovelace ended the links of all customers to their domains"},
		{"write.overruled", "", `[{"field":"branch","after":"fingerpost/overruled/1"},{"field":"author","after":"Bob <bob@example.com>"}]`,
			"A commit by Bob set aside what Ada Lovelace had saved; the branch fingerpost/overruled/1 keeps it"},
		{"condition.begins", "files-broken", `[{"field":"severity","after":"warning"},{"field":"sentence","after":"The files have 1 error."}]`,
			"Something needs a person: The files have 1 error"},
		{"condition.ends", "edge-missing edge fra1", `[{"field":"sentence","before":"The edge fra1 is missing."}]`,
			"What needed a person is over: The edge fra1 is missing"},
		{"moon.landing", "eagle", `[]`, "Ada Lovelace made the change moon.landing"},
	} {
		got := say.SentenceOf(entry(t, c.action, c.object, c.changes), names).String()
		if got != c.want {
			t.Errorf("%s %s:\n got %s\nwant %s", c.action, c.changes, got, c.want)
		}
	}
}

// TestEveryAction: each action that the catalog lists has a sentence of its own, with and without everything that may be
// missing in an entry.
func TestEveryAction(t *testing.T) {
	actions := slices.Clone(catalog.AuditOthers)
	for _, object := range catalog.AuditObjects {
		actions = append(actions, object+".create", object+".update", object+".delete")
	}
	for _, action := range actions {
		full := entry(t, action, "thing", `[{"field":"name","before":"a","after":"b"}]`)
		for _, e := range []*client.AuditEntry{full, {Action: action, Door: "file"}} {
			for _, call := range []func(int64) string{names, nil} {
				got := say.SentenceOf(e, call).String()
				if strings.Contains(got, "made the change") || strings.Contains(got, action) || strings.Contains(got, "%") {
					t.Errorf("%s has no sentence of its own: %s", action, got)
				}
			}
		}
	}
	for _, action := range catalog.AuditOthers {
		noun, _, _ := strings.Cut(action, ".")
		update := noun + ".update"
		said := say.SentenceOf(entry(t, action, "thing", `[{"field":"x"}]`), names).String()
		if action != update && said == say.SentenceOf(entry(t, update, "thing", `[{"field":"x"}]`), names).String() {
			t.Errorf("%s has the sentence of %s: it needs one in others (sentence.go)", action, update)
		}
	}
	for _, kind := range []catalog.Kind{catalog.KindProject, catalog.KindDomain, catalog.KindServiceSettings,
		catalog.KindAuthSettings, catalog.KindSMTPConfig, catalog.KindTemplate} {
		for _, f := range catalog.NewFields(kind) {
			if f.Label == "" {
				t.Errorf("a field has no name for people: %s", f.Name)
			}
		}
	}
}

// TestKinds: people can look for each action, by words.
func TestKinds(t *testing.T) {
	for _, k := range say.Kinds() {
		if !catalog.IsAuditAction(k.Action) || k.Text == "" || strings.HasPrefix(k.Text, " ") {
			t.Errorf("a kind without words, or without an action: %+v", k)
		}
	}
}

// TestEvents: each event, and each pattern of several, has words.
func TestEvents(t *testing.T) {
	for _, k := range say.Events() {
		if k.Text == "" || catalog.CheckWebhookEvent(k.Action) != "" {
			t.Errorf("an event without words: %+v", k)
		}
	}
}

// TestWho: a person is called by name, a key by its name, and a change of which neither is known by its door.
func TestWho(t *testing.T) {
	who := func(actor, key, door, want string) {
		t.Helper()
		e := entry(t, "project.update", "acme", `[{"field":"x"},{"field":"y"},{"field":"z"},{"field":"w"}]`)
		if e.Actor, e.Key, e.Door = &actor, &key, door; actor == "" {
			e.Actor = nil
		}
		if got := say.SentenceOf(e, names).String(); got != want+" changed 4 values of Acme" {
			t.Errorf("%q, %q, %q: %s", actor, key, door, got)
		}
	}
	who("Ada Lovelace <ada@example.com>", "desk", "api", "Ada Lovelace")
	who(`"Lovelace, Ada" <ada@example.com>`, "desk", "api", "Lovelace, Ada")
	who("<ada@example.com>", "desk", "api", "ada@example.com")
	who("desk", "desk", "api", "The key desk")
	who("", "desk", "api", "The key desk")
	who("", "", "file", "The files")
	who("Bob <bob@example.com>", "", "git", "Bob")
	who("", "", "cluster", "The authority")
	who("", "", "cli", "A command")
}

// TestNothingSecret: what the trail hides stays hidden, and long values are left out.
func TestNothingSecret(t *testing.T) {
	e := entry(t, "smtp-config.update", "acme", `[{"field":"password","secret":true,"before":"old-secret","after":"new-secret"}]`)
	if got := say.SentenceOf(e, names).String(); got != "Ada Lovelace changed “Password” of the mail server of Acme" {
		t.Error(got)
	}
	e = entry(t, "template.update", "X", `[{"field":"bodyText","before":"one\ntwo","after":"one"}]`)
	if got := say.SentenceOf(e, names).String(); got != "Ada Lovelace changed “Text” of the mail template X of Acme" {
		t.Error(got)
	}
}

// TestLinks: projects and domains that exist are parts of their own.
func TestLinks(t *testing.T) {
	s := say.SentenceOf(entry(t, "domain.create", "shop.acme.example", `[]`), names)
	var projects, domains []string
	for _, p := range s {
		if p.Project == acme {
			projects = append(projects, p.Text)
		}
		if p.Domain {
			domains = append(domains, p.Text)
		}
	}
	if !slices.Equal(projects, []string{"Acme"}) || !slices.Equal(domains, []string{"shop.acme.example"}) {
		t.Errorf("links to %q and %q in %q", projects, domains, s)
	}
	for _, p := range say.SentenceOf(entry(t, "domain.delete", "shop.acme.example", `[]`), func(int64) string { return "" }) {
		if p.Project != 0 || p.Domain {
			t.Errorf("a link to what is gone: %+v", p)
		}
	}
}

package store_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"fingerpost/resolver/catalog"
	"fingerpost/resolver/store"
)

// told returns the object changes of an effect, one a line.
func told(e *store.Effect) string {
	var b strings.Builder
	for _, o := range e.Objects {
		fmt.Fprintf(&b, "%s %s by %s:", o.Entry.Action, o.Entry.Object, o.Entry.Door)
		for _, c := range o.Entry.Changes {
			fmt.Fprintf(&b, " %s", c.Field)
			if !c.Secret {
				fmt.Fprintf(&b, "=%v>%v", c.Before, c.After)
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

func TestObjectChanges(t *testing.T) {
	t.Parallel()
	s := open(t, "", store.Options{})
	if e := apply(t, s, noon, file("first.hcl", declare(block("first", "first.example")))); !e.Loaded || len(e.Objects) != 0 {
		t.Fatalf("the first load: %v, %q", e.Loaded, told(e))
	}
	step := func(name, want string, files ...catalog.FileChange) {
		t.Helper()
		e := apply(t, s, noon.Add(time.Hour), files...)
		if got, want := told(e), strings.TrimLeft(want, "\n"); got != want || e.Loaded {
			t.Errorf("%s:\n%s\nwant:\n%s", name, got, want)
		}
	}
	acme := block("acme", "acme.example")
	step("create", `
project.create acme by file: slug=<nil>>acme name=<nil>>The acme status=<nil>>ACTIVE
domain.create acme.example by file: domain=<nil>>acme.example primary=<nil>>false active=<nil>>true
`, file("acme.hcl", declare(acme)))
	step("the same", "", file("acme.hcl", declare(acme)))
	acme.Project.Status = catalog.StatusSuspended
	acme.Service.MailEnabled, acme.Service.Said = true, 1<<1
	acme.SMTP = &catalog.SMTPConfig{ID: 7, Host: "mail.example", Password: catalog.Secret{Source: catalog.SecretPlain, Ref: "hush"}, FromEmail: "a@b.example"}
	acme.Templates = []catalog.Template{template(&acme, "HELLO")}
	by := file("acme.hcl", declare(acme))
	by.By = &catalog.Author{Door: catalog.DoorAPI, Key: "ci", RequestID: "r1"}
	step("update", `
project.update acme by api: status=ACTIVE>SUSPENDED
service-settings.update acme by api: mailEnabled=false>true
smtp-config.create acme by api: host=<nil>>mail.example port=<nil>>0 password fromEmail=<nil>>a@b.example sslEnabled=<nil>>false `+
		`tlsEnabled=<nil>>false active=<nil>>false
template.create HELLO by api: code=<nil>>HELLO name=<nil>>HELLO subjectTemplate=<nil>>Hello bodyText=<nil>>Hello {{userName}} active=<nil>>true
`, by)
	acme.SMTP = &catalog.SMTPConfig{ID: 7, Host: "mail.example", Password: catalog.Secret{Source: catalog.SecretPlain, Ref: "new"}, FromEmail: "a@b.example"}
	step("a secret", "smtp-config.update acme by file: password\n", file("acme.hcl", declare(acme)))
	// The value moves to the defaults: what is in force stays.
	acme.Service.MailEnabled, acme.Service.Said = false, 0
	defaults := &catalog.Defaults{Service: &catalog.ServiceSettings{MailEnabled: true, Said: 1 << 1}}
	step("defaults", "defaults.update  by file: serviceSettings.mailEnabled=<nil>>true\n",
		file("acme.hcl", declare(acme)), file("defaults.hcl", &catalog.Declared{Defaults: defaults}))
	key := catalog.Key{Name: "ci", ID: "abcdef", Hash: [32]byte{1}, Allow: catalog.MayRead}
	step("key", "key.create ci by file: name=<nil>>ci id=<nil>>abcdef key allow=<nil>>[read]\n", file("keys.hcl", &catalog.Declared{Keys: []catalog.Key{key}}))
	key.ID, key.Hash = "ghijkl", [32]byte{2}
	step("rotate", "key.rotate ci by file: id=abcdef>ghijkl key\n", file("keys.hcl", &catalog.Declared{Keys: []catalog.Key{key}}))
	sealing := &catalog.Sealing{Recipients: []string{"age1x"}}
	step("sealing", "sealing.update  by file: recipients=<nil>>[age1x] require=<nil>>false\n", file("keys.hcl", &catalog.Declared{Keys: []catalog.Key{key}, Sealing: sealing}))
	step("sealing gone", "sealing.update  by file: recipients=[age1x]><nil> require=false><nil>\n", file("keys.hcl", &catalog.Declared{Keys: []catalog.Key{key}}))
	step("key gone", "key.delete ci by file: name=ci><nil> id=ghijkl><nil> key allow=[read]><nil>\n", gone("keys.hcl"))
	step("moved to another file", "", gone("acme.hcl"), file("moved.hcl", declare(acme)))
	acme.Project.Labels, acme.Domains[0].Certificates = []catalog.Label{{Name: "plan", Value: "gold"}}, new(bool)
	step("labels and certificates", `
project.update acme by file: labels=<nil>>map[plan:gold]
domain.update acme.example by file: certificates=<nil>>false
`, file("moved.hcl", declare(acme)))
	// The domain passes to another project.
	other := block("other", "acme.example")
	acme.Domains = nil
	step("passed on", `
project.create other by file: slug=<nil>>other name=<nil>>The other status=<nil>>ACTIVE
domain.create acme.example by file: domain=<nil>>acme.example primary=<nil>>false active=<nil>>true
domain.delete acme.example by file: domain=acme.example><nil> primary=false><nil> active=true><nil> certificates=false><nil>
`, file("moved.hcl", declare(acme)), file("other.hcl", declare(other)))
	step("delete", `
project.delete other by file: slug=other><nil> name=The other><nil> status=ACTIVE><nil>
domain.delete acme.example by file: domain=acme.example><nil> primary=false><nil> active=true><nil>
`, gone("other.hcl"))
	for object, fields := range map[[2]string]int{{"project", ""}: 6, {"smtp_config", ""}: 20, {"template", "HELLO"}: 9, {"template", "X"}: 0, {"domain", "first.example"}: 0} {
		o, err := s.Object(catalog.Kind(object[0]), acme.Project.ID, object[1])
		if err != nil || (o == nil) != (fields == 0) || o != nil && len(o.Fields()) != fields {
			t.Errorf("%v is %v, want %d fields; %v", object, o, fields, err)
		}
	}
}

// A change that committing refuses leaves the store as it was, as a batch and as a bulk.
func TestRefusedCommit(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir(), store.Options{})
	apply(t, s, noon, file("first.hcl", declare(block("first", "first.example"))))
	no := errors.New("no")
	changes := []*catalog.Change{change(file("b.hcl", declare(block("b", "b.example"))))}
	if !testing.Short() {
		changes = append(changes, change(manyFiles(0)...))
	}
	for i, c := range changes {
		if _, err := s.Apply(c, 1, noon, func(*store.Effect) error { return no }); !errors.Is(err, no) {
			t.Errorf("%d: %v", i, err)
		}
		if s.Generation() != 1 || s.Counts().Projects != 1 || getProject(t, s, "b") != nil {
			t.Errorf("%d: generation %d, %+v", i, s.Generation(), s.Counts())
		}
		if id, err := s.AuditID(); id != 0 || err != nil {
			t.Errorf("%d: audited %d, %v", i, id, err)
		}
		if _, err := s.Apply(c, 1, noon, func(e *store.Effect) error { e.AuditID = int64(i + 5); return nil }); err != nil {
			t.Fatal(err)
		}
		if id, err := s.AuditID(); id != int64(i+5) || err != nil {
			t.Errorf("%d: audited %d, %v", i, id, err)
		}
		s = open(t, t.TempDir(), store.Options{})
		apply(t, s, noon, file("first.hcl", declare(block("first", "first.example"))))
	}
}

// TestEveryObjectIsFound: the store finds each object of the audit trail by its kind, project and name. A trail that is
// ahead of the store would take one that is not found for deleted.
func TestEveryObjectIsFound(t *testing.T) {
	t.Parallel()
	s := open(t, "", store.Options{})
	acme := block("acme", "acme.example")
	acme.SMTP = &catalog.SMTPConfig{ID: 7, Host: "mail.example", FromEmail: "a@b.example"}
	acme.Templates = []catalog.Template{template(&acme, "HELLO")}
	shared := template(&acme, "BYE")
	shared.ProjectID = 0
	all := &catalog.Declared{Projects: []catalog.ProjectConfig{acme}, Templates: []catalog.Template{shared},
		Keys: []catalog.Key{{Name: "ci", ID: "abcdef"}}, Edges: []catalog.Edge{{Name: "fra1", PublicKey: "U"}},
		Webhooks: []catalog.Webhook{{Name: "crm", URL: "https://crm.example/", Events: []string{"*"}, Projects: []string{}, Active: true}},
		Logins: []catalog.Login{{Name: "company", Issuer: "https://login.example/", Scopes: []string{"openid"},
			Rules: []catalog.LoginRule{{Claim: "a", Value: "b", Allow: catalog.MayRead}, {Claim: "a", Value: "c", Projects: []string{}}}}},
		Inbounds: []catalog.Inbound{{Name: "ses", Format: "ses", Secrets: make([]catalog.Secret, 2), Projects: []string{}}},
		Defaults: &catalog.Defaults{SMTP: &catalog.SMTPConfig{Host: "relay.example"}}, Sealing: &catalog.Sealing{Require: true}}
	apply(t, s, noon, file("all.hcl", all))
	for _, o := range all.Objects() {
		got, err := s.Object(o.Kind, o.ProjectID, o.Name)
		if err != nil || got == nil {
			t.Errorf("%s %q is not found: %v", o.Kind, o.Name, err)
		} else if c := catalog.ChangeOf(o, got); len(c.Fields) > 0 || got.Noun() != o.Noun() || catalog.KindOfNoun(o.Noun()) != o.Kind {
			t.Errorf("%s %q is found as %s with other fields: %v", o.Kind, o.Name, got.Noun(), c.Fields)
		}
	}
}

// TestSlugOfEntries: each entry has the slug of its project before the change, that of a new project as it is.
func TestSlugOfEntries(t *testing.T) {
	t.Parallel()
	s := open(t, "", store.Options{})
	apply(t, s, noon, file("first.hcl", declare(block("first", "first.example"))))
	step := func(want string, files ...catalog.FileChange) {
		t.Helper()
		var got []string
		for _, o := range apply(t, s, noon, files...).Objects {
			got = append(got, o.Entry.Action+" "+o.Entry.Slug)
		}
		if got := strings.Join(got, ", "); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	acme := block("acme", "acme.example")
	step("project.create acme, domain.create acme", file("acme.hcl", declare(acme)))
	acme.Domains = append(acme.Domains, block("acme", "www.acme.example").Domains...)
	step("domain.create acme", file("acme.hcl", declare(acme)))
	acme.Project.Slug, acme.Domains = "apex", acme.Domains[:1]
	step("project.update acme, domain.delete acme", file("acme.hcl", declare(acme)))
	key := catalog.Key{Name: "ci", ID: "abcdef", Hash: [32]byte{1}, Allow: catalog.MayRead}
	step("key.create ", file("keys.hcl", &catalog.Declared{Keys: []catalog.Key{key}}))
	step("project.delete apex, domain.delete apex", gone("acme.hcl"))
}

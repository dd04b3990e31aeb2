package mailer_test

import (
	"errors"
	"testing"

	"fingerpost/cmd/testrig"
	"fingerpost/mailer"
	"fingerpost/resolver/catalog"
)

// TestLanguages: a send takes the template's language that suits the wanted one, and the log names it. The template of
// the project comes first, whatever languages the default one has.
func TestLanguages(t *testing.T) {
	t.Parallel()
	k := testrig.NewSink(t)
	german := catalog.Locales{{Tag: "de", SubjectTemplate: "Hallo {{userName}} bei {{projectName}}", BodyText: "Hallo {{userName}}"},
		{Tag: "fr", SubjectTemplate: "Salut", BodyText: "{{fr}}"}}
	p := project("acme", k)
	template(&p, "WELCOME", "", true)
	p.Templates[0].Locales = german
	template(&p, "OWN", "", true)
	r := newRig(t, p)
	shared := p.Templates[1]
	shared.ProjectID, shared.ID, shared.UUID, shared.Locales = 0, 77, catalog.DeriveTemplateUUID(catalog.UUID{}, "OWN"), german
	r.apply(catalog.FileChange{Path: "shared.hcl", Declared: &catalog.Declared{Templates: []catalog.Template{shared}}, Bytes: []byte("shared"),
		Row: &catalog.FileRow{Stamp: catalog.Stamp{Size: 1, ModTime: noon}}})
	f := func(code, locale, subject, want string) {
		t.Helper()
		got := r.send(mailer.Send{Domain: "acme.example", ToEmail: "you@peer.example", TemplateCode: code, Locale: locale,
			Variables: map[string]string{"userName": "Ann"}})
		if e := r.entry("acme", got.LogID); e.Locale != want || e.Subject != subject {
			t.Errorf("%s in %q: %q, locale %q, want %q, %q", code, locale, e.Subject, e.Locale, subject, want)
		}
	}
	const own = "Hello Ann of The acme"
	f("WELCOME", "", own, "")
	f("WELCOME", "de-AT", "Hallo Ann bei The acme", "de")
	f("WELCOME", "de", "Hallo Ann bei The acme", "de")
	f("WELCOME", "en", own, "")
	f("OWN", "de", own, "")
	_, err := r.Send(t.Context(), mailer.Send{Domain: "acme.example", ToEmail: "you@peer.example", TemplateCode: "WELCOME", Locale: "fr",
		Variables: map[string]string{"userName": "Ann"}})
	var refused *catalog.Error
	if !errors.As(err, &refused) || len(refused.Problems) != 1 || refused.Problems[0].Path != "variables.fr" {
		t.Errorf("%v", err)
	}
}

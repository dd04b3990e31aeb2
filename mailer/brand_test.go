package mailer_test

import (
	"errors"
	"net/mail"
	"strings"
	"testing"

	"fingerpost/cmd/testrig"
	"fingerpost/mailer"
	"fingerpost/resolver/catalog"
)

// TestBrand: the labels of the project are in its mails, whatever the caller gives, and as they are now.
func TestBrand(t *testing.T) {
	t.Parallel()
	k := testrig.NewSink(t)
	p := project("acme", k)
	p.Project.Labels = []catalog.Label{{Name: "colour", Value: "#abc"}, {Name: "plan", Value: "gold"}}
	template(&p, "WELCOME", "", true)
	p.Templates[0].SubjectTemplate = "A {{label.plan}} plan"
	p.Templates[0].BodyHTML = `<p style="color:{{label.colour}}">{{#if label.logo}}<img src="{{label.logo}}">{{/if}}</p>`
	r := newRig(t, p)
	send := func() (mailer.Receipt, error) {
		return r.Send(t.Context(), mailer.Send{Domain: "acme.example", ToEmail: "you@peer.example", TemplateCode: "WELCOME",
			Variables: map[string]string{"userName": "Ann", "label.plan": "free", "label.colour": "red", "label.logo": "https://evil.example"}})
	}
	if _, err := send(); err != nil {
		t.Fatal(err)
	}
	letter := k.Letters()[0].Text
	m, err := mail.ReadMessage(strings.NewReader(letter))
	if err != nil || m.Header.Get("Subject") != "A gold plan" || !strings.Contains(letter, `<p style=3D"color:#abc"></p>`) {
		t.Errorf("%v:\n%s", err, letter)
	}
	p.Project.Labels = p.Project.Labels[1:]
	r.declare(p)
	var refused *catalog.Error
	if _, err := send(); !errors.As(err, &refused) || len(refused.Problems) != 1 || refused.Problems[0].Path != "variables.label.colour" {
		t.Errorf("%v", err)
	}
}

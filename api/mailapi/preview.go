package mailapi

import (
	"maps"

	"fingerpost/api/web"
	"fingerpost/mailer/template"
	"fingerpost/resolver/catalog"
)

// previewTemplate answers POST /projects/{projectId}/templates/preview. It renders the stored template that a send
// would take, or the parts in the body, with the body's variables.
func (a *API) previewTemplate(r *web.Request, project *catalog.Project) error {
	f, err := readForm(r, []string{"templateCode", "subjectTemplate", "bodyHtml", "bodyText", "variables", localeField})
	if err != nil {
		return err
	}
	var t catalog.Template
	f.Read("templateCode", &t.Code)
	f.Read("subjectTemplate", &t.SubjectTemplate)
	f.Read("bodyHtml", &t.BodyHTML)
	f.Read("bodyText", &t.BodyText)
	variables, locale := f.variables(), f.locale()
	parsed, locale, err := a.previewed(f, project, &t, locale)
	if err != nil {
		return err
	}
	all := template.WithProject(variables, project)
	if _, given := all[catalog.UnsubscribeVariable]; t.Category != "" && !given {
		all = maps.Clone(all)
		all[catalog.UnsubscribeVariable] = sampleLink
	}
	rendered, problems := parsed.Preview(all)
	if err := f.Validated(problems); err != nil {
		return err
	}
	return r.SucceedJSON("template rendered", previewOf(&rendered, parsed.Variables(), locale))
}

// sampleLink stands in previews for the link to unsubscribe, which is the recipient's alone.
const sampleLink = "https://unsubscribe.example/"

// previewed parses the template that t.Code names, in the locale that suits the wanted one, or the parts in t, whichever
// the body has. It returns the locale, too.
func (a *API) previewed(f *form, project *catalog.Project, t *catalog.Template, wanted string) (parsed *template.Template,
	locale string, err error) {
	parts := f.Has("subjectTemplate") || f.Has("bodyHtml") || f.Has("bodyText")
	switch {
	case f.Has("templateCode") && parts:
		f.Fail("templateCode", "must not be given together with subjectTemplate, bodyHtml or bodyText")
	case parts:
		if wanted != "" {
			f.Fail(localeField, "chooses from the languages of a stored template, so it goes with templateCode only")
		}
		parsed, err = f.parsed(t)
		return parsed, "", err
	case !f.Has("templateCode"):
		f.Fail("templateCode", "is required where neither subjectTemplate nor a body is given")
	case t.Code == "":
		f.Fail("templateCode", "must not be empty")
	}
	if err := f.Validated(nil); err != nil {
		return nil, "", err
	}
	stored, err := a.Live.MailTemplate(project.ID, t.Code)
	if err != nil {
		return nil, "", err
	}
	t.Category = stored.Category
	stored, locale = template.Localize(stored, wanted)
	parsed, err = f.parsed(stored)
	return parsed, locale, err
}

// parsed parses a template and reports every problem.
func (f *form) parsed(t *catalog.Template) (*template.Template, error) {
	parsed, problems := template.Parse(t)
	for _, p := range problems {
		switch {
		case p.Path != "":
			f.Fail(p.Path, p.Message)
		case !f.Bad["bodyText"]: // the body of the mail is missing, not of a wrong type
			f.Fail("bodyHtml", p.Message)
		}
	}
	return parsed, f.Validated(nil)
}

// A preview is a template.Preview as the API answers it.
type preview struct {
	Subject string   `json:"subject"`
	HTML    *string  `json:"bodyHtml"` // null if the mail has none
	Text    string   `json:"bodyText"`
	Missing []string `json:"missing"`
	Unused  []string `json:"unused"`
	Locale  *string  `json:"locale"` // of the template; null for its own texts
	All     []string `json:"variables"`
}

func previewOf(p *template.Preview, variables []string, locale string) *preview {
	shown := &preview{Subject: p.Subject, Text: p.Text, Missing: append([]string{}, p.Missing...),
		Unused: append([]string{}, p.Unused...), All: append([]string{}, variables...)}
	if p.HTML != "" {
		shown.HTML = &p.HTML
	}
	if locale != "" {
		shown.Locale = &locale
	}
	return shown
}

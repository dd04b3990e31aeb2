package mailapi

import (
	"fingerpost/api/web"
	"fingerpost/mailer/template"
	"fingerpost/resolver/catalog"
)

// previewTemplate answers POST /projects/{projectId}/templates/preview. It renders the stored template that a send
// would take, or the parts in the body, with the body's variables.
func (a *API) previewTemplate(r *web.Request, project *catalog.Project) error {
	f, err := readForm(r, []string{"templateCode", "subjectTemplate", "bodyHtml", "bodyText", "variables"})
	if err != nil {
		return err
	}
	var t catalog.Template
	f.Read("templateCode", &t.Code)
	f.Read("subjectTemplate", &t.SubjectTemplate)
	f.Read("bodyHtml", &t.BodyHTML)
	f.Read("bodyText", &t.BodyText)
	variables := f.variables()
	parsed, err := a.previewed(f, project, &t)
	if err != nil {
		return err
	}
	rendered, problems := parsed.Preview(template.WithProject(variables, project))
	if err := f.Validated(problems); err != nil {
		return err
	}
	return r.SucceedJSON("template rendered", previewOf(&rendered))
}

// previewed parses the template that t.Code names, or the parts in t, whichever the body has.
func (a *API) previewed(f *form, project *catalog.Project, t *catalog.Template) (*template.Template, error) {
	parts := f.Has("subjectTemplate") || f.Has("bodyHtml") || f.Has("bodyText")
	switch {
	case f.Has("templateCode") && parts:
		f.Fail("templateCode", "must not be given together with subjectTemplate, bodyHtml or bodyText")
		return nil, f.Validated(nil)
	case parts:
		return f.parsed(t)
	case !f.Has("templateCode"):
		f.Fail("templateCode", "is required where neither subjectTemplate nor a body is given")
	case t.Code == "":
		f.Fail("templateCode", "must not be empty")
	}
	if err := f.Validated(nil); err != nil {
		return nil, err
	}
	stored, err := a.Live.MailTemplate(project.ID, t.Code)
	if err != nil {
		return nil, err
	}
	return f.parsed(stored)
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
}

func previewOf(p *template.Preview) *preview {
	shown := &preview{Subject: p.Subject, Text: p.Text, Missing: append([]string{}, p.Missing...),
		Unused: append([]string{}, p.Unused...)}
	if p.HTML != "" {
		shown.HTML = &p.HTML
	}
	return shown
}

package mailapi

import (
	"slices"
	"strconv"
	"strings"

	"fingerpost/api/web"
	"fingerpost/mailer/template"
	"fingerpost/resolver/catalog"
	"fingerpost/resolver/rowjson"
)

var (
	// templateFields are the fields that sort a list of templates.
	templateFields = []string{"id", "projectId", "code", "name", "subjectTemplate", "active", "defaultTemplate", "maxAge"}
	// templateNames are the fields of a template in a request.
	templateNames = catalog.RequestNames(new(catalog.Template).AllFields())

	refuseDefault = &catalog.Error{Code: catalog.CodeForbidden,
		Message: "this is a default template, which belongs to no project: " +
			"it cannot be deleted through one; an own template of the same code goes before it"}
	refuseCategory = &catalog.Error{Code: catalog.CodePublicURLMissing,
		Message:  "mail of a category needs a link to unsubscribe: start the service with --public-url first",
		Problems: catalog.Problems{{Path: "category", Message: "needs --public-url"}}}
)

func (a *API) listTemplates(r *web.Request) error {
	return web.ListOwned(r, a.Config, "projectId", templateFields, "templates found", a.Config.Templates,
		rowjson.AppendTemplateRow)
}

// getTemplate answers with a template of the project, or with a default one.
func (a *API) getTemplate(r *web.Request, _ *catalog.Project, t *catalog.Template) error {
	r.SucceedTagged("template found", rowjson.AppendTemplate(nil, t), rowjson.TemplateETag(t))
	return nil
}

// saveTemplate answers POST and PUT of a project's templates; both create or change the one with the body's code. A
// default template of the same code stays as it is.
func (a *API) saveTemplate(r *web.Request, project *catalog.Project) error {
	f, err := readForm(r, templateNames, "defaultTemplate")
	if err != nil {
		return err
	}
	code, _ := f.Body.Values["code"].(string)
	now, err := a.Config.OwnTemplate(project.ID, code[:min(len(code), maxTemplateCode)])
	if err != nil && !catalog.IsNotFound(err) {
		return err
	}
	saved, err := f.template(now)
	if err != nil {
		return err
	}
	if a.PublicURL == "" && saved.Category != "" && (now == nil || now.Category != saved.Category) {
		return refuseCategory
	}
	present := func(t *catalog.Template) error {
		if t == nil {
			return r.MatchesNone()
		}
		return r.MatchesSaved(rowjson.TemplateETag(t))
	}
	if err := present(now); err != nil {
		return err
	}
	created := false
	err = a.Writer.Update(r, project, func(p *catalog.ProjectConfig) error {
		var old *catalog.Template
		at := slices.IndexFunc(p.Templates, func(t catalog.Template) bool { return t.Code == code })
		if at >= 0 {
			old = &p.Templates[at]
		}
		if err := present(old); err != nil {
			return err
		}
		t, err := f.template(old)
		if err != nil {
			return err
		}
		if created = old == nil; created {
			p.Templates = append(p.Templates, newTemplate(p, *t))
		} else {
			p.Templates[at] = *t
		}
		return nil
	})
	if err != nil {
		return err
	}
	if now, err = a.Config.OwnTemplate(project.ID, code); err != nil {
		return err
	}
	r.SucceedSaved("template", created, rowjson.AppendTemplate(nil, now), rowjson.TemplateETag(now),
		mailLocation(project.ID)+"/templates/"+strconv.FormatInt(now.ID, 10))
	return nil
}

// maxTemplateCode is longer than any valid code, so that a code cut to it matches no template.
const maxTemplateCode = 100

// newTemplate gives a template its identity.
func newTemplate(p *catalog.ProjectConfig, t catalog.Template) catalog.Template {
	t.ProjectID = p.Project.ID
	t.UUID = catalog.DeriveTemplateUUID(p.Project.UUID, t.Code)
	if slices.ContainsFunc(p.Templates, func(o catalog.Template) bool { return o.UUID == t.UUID }) {
		t.UUID = catalog.NewUUID() // the derived UUID belongs to a template that was renamed
	}
	t.ID = catalog.DeriveID(catalog.KindTemplate, t.UUID)
	return t
}

// template returns have, the current template (nil: none), with the body applied. It may be called again on the same
// form and reports every problem each time.
func (f *form) template(have *catalog.Template) (*catalog.Template, error) {
	f = f.again()
	t := catalog.Template{Active: true}
	f.Require("code", "is required: it tells which template is meant")
	f.Read("code", &t.Code)
	if have != nil {
		t = *have
	} else {
		f.Require("name", "is required")
		f.Require("subjectTemplate", "is required")
	}
	f.Fill(t.Fields(), "name", "subjectTemplate", "active", "locales")
	f.FillOptional("bodyHtml", &t.BodyHTML)
	f.FillOptional("bodyText", &t.BodyText)
	f.FillOptional("category", &t.Category)
	f.maxAge(&t)
	for _, part := range []struct{ name, body string }{{"bodyHtml", t.BodyHTML}, {"bodyText", t.BodyText}} {
		if strings.Contains(part.body, "\x00") {
			f.Fail(part.name, "must not hold NUL characters")
		}
	}
	problems := template.Validate(&t)
	for i := range problems {
		if problems[i].Path == "" { // a problem of the whole template: it has no body
			problems[i].Path = "bodyHtml"
		}
	}
	return &t, f.Validated(problems)
}

// maxAge reads how long a send is tried. A default that the file does not write stays unwritten: a client that sends
// back what it has read changes nothing.
func (f *form) maxAge(t *catalog.Template) {
	written := t.MaxAge
	f.FillOptional("maxAge", &t.MaxAge)
	if written == "" && t.MaxAge == catalog.DefaultMaxAge {
		t.MaxAge = ""
	}
}

// deleteTemplate answers DELETE of one of a project's templates.
func (a *API) deleteTemplate(r *web.Request, project *catalog.Project, t *catalog.Template) error {
	if t.ProjectID == 0 {
		return refuseDefault
	}
	if err := r.Matches(rowjson.TemplateETag(t)); err != nil {
		return err
	}
	err := a.Writer.Update(r, project, func(p *catalog.ProjectConfig) error {
		at := slices.IndexFunc(p.Templates, func(o catalog.Template) bool { return o.UUID == t.UUID })
		if at < 0 {
			return &catalog.Error{Code: catalog.CodeNotFound, Message: "no such template"}
		}
		if err := r.Matches(rowjson.TemplateETag(&p.Templates[at])); err != nil {
			return err
		}
		p.Templates = slices.Delete(p.Templates, at, at+1)
		return nil
	})
	if err != nil {
		return err
	}
	r.Succeed("template deleted", []byte("null"))
	return nil
}

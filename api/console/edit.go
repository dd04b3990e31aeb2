package console

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// A form edits one resource of the API. Its fields are those of the API, in the same naming.
type form struct {
	Kind, Project, ID string // what is edited; ID "" for a new one
	Title, Note       string
	Fields            []field
	ETag              string // of what the form shows; "" for something new
	Delete            bool   // the form asks whether to delete it
	Back              string

	method, path string
	mail         bool   // of the mail API
	now          object // what the API has; nil for something new
}

// A field is a field of a form.
type field struct {
	Name, Label, Hint string
	Type              string // text, textarea, code, number, check, select, password, labels, permissions
	Choices           []string
	Required          bool
	Nullable          bool // an empty text is null
	Value             string
	Error             string
	Now               string // in a conflict: what the API has by now
}

// Checked reports whether a check box is set, or a permission of a list is in it.
func (f field) Checked(choice string) bool {
	if f.Type == "check" {
		return f.Value == "yes"
	}
	return slices.Contains(strings.Split(f.Value, ", "), choice)
}

// kind describes a resource: where it is, and its fields.
type kind struct {
	title  string
	mail   bool
	list   string // path of the collection, "%s" is the project
	single bool   // a project has one
	fields []field
}

func check(name, label string, hint ...string) field {
	return field{Name: name, Label: label, Type: "check", Hint: strings.Join(hint, "")}
}

func line(name, label string, hint ...string) field {
	return field{Name: name, Label: label, Type: "text", Hint: strings.Join(hint, "")}
}

var editable = map[string]kind{
	"project": {title: "project", list: "/api/platform/projects", fields: []field{
		{Name: "name", Label: "Name", Type: "text", Required: true},
		{Name: "slug", Label: "Slug", Type: "text", Hint: "Lower-case letters, digits and hyphens. Left empty, it is made from the name."},
		{Name: "status", Label: "Status", Type: "select", Choices: []string{"DRAFT", "ACTIVE", "SUSPENDED"}, Hint: "The domains of a suspended project are answered with 403."},
		{Name: "description", Label: "Description", Type: "textarea", Nullable: true},
		{Name: "labels", Label: "Labels", Type: "labels", Hint: "One name=value a line, for gateways and tools."},
	}},
	"domain": {title: "domain", list: "/api/platform/projects/%s/domains", fields: []field{
		{Name: "domain", Label: "Domain", Type: "text", Required: true, Hint: "A name, or *.name for everything below it."},
		check("primary", "Primary", "The project's main address; another one stops being it."),
		check("active", "Active", "Requests for an inactive domain are answered with 403."),
		check("certificates", "Certificates", "Gateways may fetch certificates for names below this wildcard."),
	}},
	"service-settings": {title: "service settings", list: "/api/platform/projects/%s/service-settings", single: true, fields: []field{
		check("authEnabled", "Auth service"), check("mailEnabled", "Mail service"), check("smsEnabled", "SMS service"), check("auditEnabled", "Audit service"),
	}},
	"auth-settings": {title: "auth settings", list: "/api/platform/projects/%s/auth-settings", single: true, fields: []field{
		{Name: "registrationMode", Label: "Registration", Type: "select", Choices: []string{"OPEN", "APPROVAL", "INVITE_ONLY"}},
		check("emailVerificationRequired", "Mail addresses are verified"), check("phoneVerificationRequired", "Phone numbers are verified"),
		check("approvalRequired", "Somebody approves each registration"), check("inviteOnly", "Only invited people register"),
		check("twoFactorRequired", "A second factor is required"),
	}},
	"smtp-config": {title: "SMTP config", mail: true, list: "/api/mail/projects/%s/smtp-config", single: true, fields: []field{
		{Name: "host", Label: "Host", Type: "text", Required: true},
		{Name: "port", Label: "Port", Type: "number", Hint: "587 for STARTTLS, 465 for TLS from the first byte."},
		line("username", "User name", "Empty: the server asks for none."),
		{Name: "password", Label: "Password", Type: "password", Hint: "Left empty, the stored one stays. It is sealed before it is written into the file."},
		{Name: "fromEmail", Label: "From: address", Type: "text", Required: true}, line("fromName", "From: name"), line("replyTo", "Reply-To"),
		check("tlsEnabled", "STARTTLS is required"), check("sslEnabled", "TLS from the first byte"), check("active", "Active", "Sends are refused while it is not."),
	}},
	"template": {title: "template", mail: true, list: "/api/mail/projects/%s/templates", fields: []field{
		{Name: "code", Label: "Code", Type: "text", Required: true, Hint: "What callers name, such as WELCOME."},
		{Name: "name", Label: "Name", Type: "text", Required: true},
		{Name: "subjectTemplate", Label: "Subject", Type: "text", Required: true, Hint: "Placeholders are {{name}}."},
		{Name: "bodyHtml", Label: "HTML", Type: "code"}, {Name: "bodyText", Label: "Text", Type: "code"},
		line("maxAge", "Kept trying for", "Such as 10m or 24h."), check("active", "Active"),
	}},
	"key": {title: "key", list: "/api/platform/keys", fields: []field{
		{Name: "name", Label: "Name", Type: "text", Required: true},
		{Name: "allow", Label: "May", Type: "permissions", Choices: []string{"resolve", "read", "write", "propose", "mail", "secrets"}},
		{Name: "projects", Label: "Projects", Type: "textarea", Hint: "One slug a line. Left empty, the key covers every project."},
		line("expiresIn", "Expires in", "Such as 720h. Left empty, never."),
	}},
}

// formOf makes the form of a resource and fills it with what the API has.
func (c *Console) formOf(r *http.Request, s *session, name, project, id string) (*form, error) {
	k, known := editable[name]
	project, id = projectID(project), projectID(id)
	if !known || project == "" && name != "project" && name != "key" {
		return nil, &failure{Status: http.StatusNotFound, Message: "There is no such form."}
	}
	f := &form{Kind: name, Project: project, ID: id, mail: k.mail, Fields: slices.Clone(k.fields), path: k.list, method: http.MethodPost, Back: Prefix + "projects/" + project}
	if strings.Contains(f.path, "%s") {
		f.path = fmt.Sprintf(f.path, project)
	}
	switch {
	case name == "key":
		f.Back = Prefix + "keys"
	case name == "project":
		if f.ID = project; project == "" {
			f.Back = Prefix + "projects"
		}
	}
	if f.ID == "" && !k.single {
		f.Title = "New " + k.title
		for i := range f.Fields { // what the API would set
			switch f.Fields[i].Name {
			case "active":
				f.Fields[i].Value = "yes"
			case "status":
				f.Fields[i].Value = "DRAFT"
			}
		}
		return f, nil
	}
	f.Title, f.method = "Edit "+k.title, http.MethodPut
	if !k.single {
		f.path += "/" + f.ID
	}
	ask := get(f.path)
	if name == "project" { // labels are in the full form only
		ask = get(f.path, "view", "full")
	}
	a, err := c.ask(r.Context(), s, ask)
	if fail, is := errors.AsType[*failure](err); is && fail.Status == http.StatusNotFound && k.single {
		f.Title, f.method = "New "+k.title, http.MethodPost
		for i := range f.Fields {
			if f.Fields[i].Name == "active" || f.Fields[i].Name == "tlsEnabled" {
				f.Fields[i].Value = "yes"
			}
		}
		return f, nil
	}
	if err != nil {
		return nil, err
	}
	f.now, f.ETag = a.Object(), a.Header.Get("ETag")
	if name == "project" {
		if a, err = c.ask(r.Context(), s, get(f.path)); err != nil {
			return nil, err
		}
		f.ETag = a.Header.Get("ETag")
	}
	if name == "template" { // saved by its code; a default becomes the project's own
		f.path, f.method = strings.TrimSuffix(f.path, "/"+f.ID), http.MethodPut
		if f.now["defaultTemplate"] == true {
			f.now, f.ETag = nil, ""
			f.Note = "This is a default template, which all projects share. Saving makes one of the same code for this project alone."
			for i := range f.Fields {
				f.Fields[i].Value = shown(f.Fields[i], a.Object())
			}
			return f, nil
		}
	}
	for i := range f.Fields {
		f.Fields[i].Value = shown(f.Fields[i], f.now)
	}
	return f, nil
}

// shown returns a field's value in a form.
func shown(f field, of object) string {
	v := of[f.Name]
	if f.Type != "labels" {
		return text(v)
	}
	var lines []string
	for name, value := range asObject(v) {
		lines = append(lines, name+"="+text(value))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// fill takes the values that a person has sent.
func (f *form) fill(sent url.Values) {
	for i := range f.Fields {
		x := &f.Fields[i]
		switch x.Type {
		case "check":
			x.Value = "no"
			if sent.Get(x.Name) != "" {
				x.Value = "yes"
			}
		case "permissions":
			x.Value = strings.Join(sent[x.Name], ", ")
		case "textarea", "code", "labels":
			x.Value = strings.ReplaceAll(sent.Get(x.Name), "\r\n", "\n") // as browsers send line ends
		default:
			x.Value = strings.TrimSpace(sent.Get(x.Name))
		}
	}
}

// body returns what differs from what the API has, so that nothing else is touched. ok is false if a field is not
// what it should be.
func (f *form) body() (body object, ok bool) {
	body, ok = object{}, true
	for i := range f.Fields {
		x := &f.Fields[i]
		if f.now != nil && x.Value == shown(*x, f.now) || f.now == nil && (x.Value == "" || x.Type == "check" && x.Value == "no" && x.Name != "active") {
			continue
		}
		if x.Type == "password" && x.Value == "" {
			continue
		}
		switch x.Type {
		case "check":
			body[x.Name] = x.Value == "yes"
		case "number":
			if x.Value != "" && strings.Trim(x.Value, "0123456789") != "" {
				x.Error, ok = "must be a number", false
			}
			body[x.Name] = json.Number(x.Value)
			if x.Value == "" {
				delete(body, x.Name)
			}
		case "labels":
			labels := object{}
			for l := range strings.Lines(x.Value) {
				if l = strings.TrimSpace(l); l == "" {
					continue
				}
				name, value, named := strings.Cut(l, "=")
				if !named {
					x.Error, ok = "each line must be name=value", false
				}
				labels[strings.TrimSpace(name)] = strings.TrimSpace(value)
			}
			body[x.Name] = labels
		case "permissions":
			body[x.Name] = strings.Split(x.Value, ", ")
		case "textarea":
			if body[x.Name] = any(x.Value); x.Name == "projects" {
				body[x.Name] = strings.Fields(strings.ReplaceAll(x.Value, ",", " "))
			} else if x.Value == "" && x.Nullable {
				body[x.Name] = nil
			}
		default:
			body[x.Name] = x.Value
		}
	}
	if f.Kind == "template" { // is saved by its code
		for _, x := range f.Fields {
			if x.Name == "code" {
				body["code"] = x.Value
			}
		}
	}
	return body, ok
}

// editPage shows a form, empty or with what the API has.
func (c *Console) editPage(w http.ResponseWriter, r *http.Request, s *session) {
	q := r.URL.Query()
	f, err := c.formOf(r, s, q.Get("kind"), q.Get("project"), q.Get("id"))
	if err != nil {
		c.failed(w, r, s, err)
		return
	}
	if q.Get("delete") != "" && f.now != nil {
		f.Delete, f.Title = true, "Delete "+editable[f.Kind].title
	}
	if draft := s.draft(q.Get("draft")); draft != nil { // a person goes back from the diff
		f.fill(draft.sent)
		f.ETag = draft.etag
	}
	c.render(w, r, s, http.StatusOK, "edit", f.Title, f)
}

// edit takes a form: a dry run shows what it would change, which becomes a draft.
func (c *Console) edit(w http.ResponseWriter, r *http.Request, s *session) {
	f, err := c.formOf(r, s, r.PostFormValue("kind"), r.PostFormValue("project"), r.PostFormValue("id"))
	if err != nil {
		c.failed(w, r, s, err)
		return
	}
	etag := r.PostFormValue("etag")
	d := &draft{kind: f.Kind, project: f.Project, id: f.ID, sent: r.PostForm, etag: etag, Back: f.Back, Title: f.Title}
	d.call = call{method: f.method, path: f.path, header: http.Header{}}
	if etag != "" {
		d.call.header.Set("If-Match", etag)
	}
	if name := s.Proposal(); name != "" && f.Kind != "key" { // keys are always live
		d.Proposal = name
		d.call.header.Set(headerPropose, name)
	}
	if r.PostFormValue("delete") != "" {
		f.Delete = true
		d.Title, d.call.method = "Delete "+editable[f.Kind].title, http.MethodDelete
		if f.Kind == "template" {
			d.call.path += "/" + f.ID
		}
	} else {
		f.fill(r.PostForm)
		if etag != "" && f.ETag != "" && f.ETag != etag {
			c.conflict(w, r, s, f)
			return
		}
		body, ok := f.body()
		if !ok {
			c.render(w, r, s, http.StatusBadRequest, "edit", f.Title, f)
			return
		}
		if len(body) == 0 || f.Kind == "template" && len(body) == 1 {
			s.say("Nothing was changed.")
			http.Redirect(w, r, f.Back, http.StatusSeeOther)
			return
		}
		d.call.body = body
	}
	dry := d.call
	dry.path += "?dryRun=1"
	a, err := c.ask(r.Context(), s, dry)
	if fail, is := errors.AsType[*failure](err); is {
		if fail.Status == http.StatusPreconditionFailed {
			c.conflict(w, r, s, f)
			return
		}
		c.refused(w, r, s, f, fail)
		return
	}
	if err != nil {
		c.failed(w, r, s, err)
		return
	}
	d.Diff, d.Problems = text(a.Object()["diff"]), asList(a.Object()["problems"])
	s.keepDraft(d)
	http.Redirect(w, r, Prefix+"drafts/"+d.ID, http.StatusSeeOther)
}

// refused shows a form again with what the API says about it.
func (c *Console) refused(w http.ResponseWriter, r *http.Request, s *session, f *form, fail *failure) {
	var rest []detail
details:
	for _, d := range fail.Details {
		for i := range f.Fields {
			if name, _, _ := strings.Cut(d.Field, "["); name == f.Fields[i].Name || strings.HasPrefix(d.Field, f.Fields[i].Name+".") {
				f.Fields[i].Error = d.Message
				continue details
			}
		}
		rest = append(rest, d)
	}
	f.Note = fail.Message
	for _, d := range rest {
		f.Note += "; " + d.Field + " " + d.Message
	}
	c.render(w, r, s, fail.Status, "edit", f.Title, f)
}

// conflict shows both versions of what has been changed meanwhile. f has what the person wanted.
func (c *Console) conflict(w http.ResponseWriter, r *http.Request, s *session, f *form) {
	fresh, err := c.formOf(r, s, f.Kind, f.Project, f.ID)
	if err != nil {
		c.failed(w, r, s, err)
		return
	}
	for i := range f.Fields {
		f.Fields[i].Now = fresh.Fields[i].Value
		if f.Fields[i].Type == "password" {
			f.Fields[i].Now = f.Fields[i].Value
		}
	}
	f.ETag, f.Title = fresh.ETag, "Changed meanwhile"
	c.render(w, r, s, http.StatusConflict, "conflict", f.Title, f)
}

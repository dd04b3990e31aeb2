package console

import (
	"context"
	"fmt"
	"html/template"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/html"

	"fingerpost/api/client"
	"fingerpost/api/console/form"
	"fingerpost/api/console/say"
	"fingerpost/resolver/catalog"
)

// A smtpTestView is a test of SMTP settings.
type smtpTestView struct {
	Form    *form.Form
	Stored  bool // an untouched form tests what is saved
	To      string
	Running string // the id of a test whose steps are still to come
	Steps   []client.SMTPStep
	Passed  bool
	Failed  *failure
}

// smtpForm is the form of the SMTP config of a project, or an empty one.
func (c *Console) smtpForm(r *http.Request, s *session, project string) (*form.Form, error) {
	if !c.mayOn(s, idOf(project)).Mail {
		return nil, s.Key().refuse("Testing SMTP settings, which sends a mail,", catalog.MayMail, false)
	}
	if idOf(project) == 0 {
		f := form.New("smtp-config", 0, "")
		f.Begin()
		return f, nil
	}
	return c.showing(r, s, "smtp-config", project, "")
}

func (c *Console) smtpTestPage(w http.ResponseWriter, r *http.Request, s *session) error {
	f, err := c.smtpForm(r, s, r.FormValue("project"))
	if err != nil {
		return err
	}
	return c.render(w, r, s, http.StatusOK, "smtptest", "Test SMTP settings",
		smtpTestView{Form: f, Stored: testsStored(s, f)})
}

// smtpTest tries the settings of the form. With a script the steps are shown as they happen, else when it has ended.
func (c *Console) smtpTest(w http.ResponseWriter, r *http.Request, s *session) error {
	f, err := c.smtpForm(r, s, r.PostFormValue("project"))
	if err != nil {
		return err
	}
	f.Fill(r.PostForm)
	v := smtpTestView{Form: f, Stored: testsStored(s, f), To: strings.TrimSpace(r.PostFormValue("toEmail"))}
	t := &smtpTest{id: random(), changed: make(chan struct{})}
	run, ok := c.smtpCall(s, f, t.id, v.To)
	switch {
	case !ok:
		v.Failed = &failure{Message: "Some of the fields cannot be read:"}
		for _, x := range f.Fields {
			if x.Error != "" {
				v.Failed.Details = append(v.Failed.Details, client.Detail{Field: x.Name, Message: x.Error})
			}
		}
	case isFragment(r) && c.o.WatchTest != nil:
		s.mu.Lock()
		s.test = t
		s.mu.Unlock()
		stop := c.o.WatchTest(t.id, t.step)
		go func() {
			defer stop()
			t.end(run(c.stopped))
		}()
		v.Running = t.id
	default:
		if v.Steps, err = run(r.Context()); err != nil {
			v.Failed = failureOf(err)
		}
		v.Passed = err == nil
	}
	if v.Failed != nil {
		for _, d := range v.Failed.Details {
			for i := range f.Fields {
				if f.Fields[i].Name == d.Field {
					f.Fields[i].Error = d.Message
				}
			}
		}
	}
	return c.render(w, r, s, http.StatusOK, "smtptest", "Test SMTP settings", v)
}

// testsStored reports whether an untouched form tests what mail is sent with. In a proposal the form shows other settings.
func testsStored(s *session, f *form.Form) bool { return f.Project != 0 && s.Proposal() == "" }

// smtpCall returns the call that makes the test: of what is saved, its password included, if nothing in the form was
// changed, else of what stands in the form. ok is false if a field of it cannot be read.
func (c *Console) smtpCall(s *session, f *form.Form, id, to string) (
	call func(context.Context) ([]client.SMTPStep, error), ok bool) {
	if testsStored(s, f) && !f.Touched() {
		return func(ctx context.Context) ([]client.SMTPStep, error) {
			return c.api(s).TestStoredSMTP(ctx, id, f.Project, to)
		}, true
	}
	body, ok := f.Whole()
	delete(body, "active")
	body["toEmail"] = to
	return func(ctx context.Context) ([]client.SMTPStep, error) { return c.api(s).TestSMTP(ctx, id, body) }, ok
}

// An smtpTest is a test that runs while a page waits for its steps. Its fields after mu are guarded by it.
type smtpTest struct {
	id string

	mu      sync.Mutex
	steps   []client.SMTPStep
	ended   bool
	err     error
	changed chan struct{} // closed at the next change: a browser may ask anew while its former stream still waits
}

func (t *smtpTest) step(name string, took time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.steps = append(t.steps, client.SMTPStep{Name: name,
		Milliseconds: float64(took.Round(time.Microsecond)) / float64(time.Millisecond)})
	t.wake()
}

// end notes the outcome, with the steps that were not told: on an edge the authority makes the test.
func (t *smtpTest) end(steps []client.SMTPStep, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(steps) > len(t.steps) {
		t.steps = append(t.steps, steps[len(t.steps):]...)
	}
	t.ended, t.err = true, err
	t.wake()
}

// wake tells all streams. The caller holds mu.
func (t *smtpTest) wake() {
	close(t.changed)
	t.changed = make(chan struct{})
}

// smtpTestSteps sends the steps of the session's test as they happen, then how it has ended.
func (c *Console) smtpTestSteps(w http.ResponseWriter, r *http.Request, s *session) {
	s.mu.Lock()
	t := s.test
	s.mu.Unlock()
	if t == nil || t.id != r.PathValue("id") {
		w.WriteHeader(http.StatusNoContent) // the browser does not ask again
		return
	}
	flush := http.NewResponseController(w)
	w.Header().Set("Content-Type", "text/event-stream")
	for told := 0; ; {
		t.mu.Lock()
		steps, ended, err, changed := t.steps[told:], t.ended, t.err, t.changed
		t.mu.Unlock()
		for _, step := range steps {
			told++
			if !c.sendPart(w, "step", "smtptest", "step", step) {
				return
			}
		}
		if ended {
			v := smtpTestView{Passed: err == nil}
			if err != nil {
				v.Failed = failureOf(err)
			}
			c.sendPart(w, "result", "smtptest", "result", v)
			fmt.Fprint(w, "event: done\ndata: \n\n")
			_ = flush.Flush()
			return
		}
		if flush.Flush() != nil {
			return
		}
		select {
		case <-changed:
		case <-c.stopped.Done():
			return
		}
	}
}

// A templateView is a template with its preview.
type templateView struct {
	Project   catalog.Project // its ID alone if the rest is not known
	Template  catalog.Template
	Variables []variable
	Preview   *previewView
	Locale    string // that is shown, "" for the template's own texts
	To        string
	Sent      string
	Failed    *failure
}

type variable struct{ Name, Value string }

// A previewView is what a template renders to.
type previewView struct {
	client.Preview
	Samples map[string]string // stand in for variables that have no value
	Frame   string            // its id
	Failed  *failure
}

// templatePage shows a template rendered with the variables of the form.
func (c *Console) templatePage(w http.ResponseWriter, r *http.Request, s *session) error {
	v, err := c.templateOf(r, s)
	if err != nil {
		return err
	}
	return c.render(w, r, s, http.StatusOK, "template", "Template "+v.Template.Code, v)
}

func (c *Console) templateOf(r *http.Request, s *session) (*templateView, error) {
	v := &templateView{Project: catalog.Project{ID: idOf(r.FormValue("project"))}}
	ctx, api := r.Context(), c.api(s)
	var err error
	if v.Template, err = api.Template(ctx, v.Project.ID, idOf(r.FormValue("id"))); err != nil {
		return nil, err
	}
	if p, err := api.ProjectByID(ctx, v.Project.ID); err == nil {
		v.Project = p
	}
	values := map[string]string{}
	for name, value := range r.Form {
		if name, is := strings.CutPrefix(name, "var."); is && value[0] != "" {
			values[name] = value[0]
		}
	}
	parts, locale := partsOf(&v.Template, r.FormValue("locale"))
	v.Locale, parts.Variables = locale, values
	v.Preview = c.rendered(ctx, s, v.Project.ID, parts)
	if r.Method == http.MethodGet { // the form begins with the samples that the preview has
		maps.Copy(values, v.Preview.Samples)
	}
	for _, name := range asked(slices.Collect(maps.Keys(values)), v.Preview.Missing, v.Preview.Variables) {
		v.Variables = append(v.Variables, variable{name, values[name]})
	}
	return v, nil
}

// partsOf returns the texts of a template in one of its locales, and the tag; the template's own texts and "" if it has
// no such one.
func partsOf(t *catalog.Template, tag string) (*client.Parts, string) {
	if l := t.Locales.Find(tag); l != nil {
		return &client.Parts{SubjectTemplate: l.SubjectTemplate, BodyHTML: l.BodyHTML, BodyText: l.BodyText}, l.Tag
	}
	return &client.Parts{SubjectTemplate: t.SubjectTemplate, BodyHTML: t.BodyHTML, BodyText: t.BodyText}, ""
}

// asked returns the names of the variables that a caller may give, sorted: not the project's labels and its name.
func asked(lists ...[]string) []string {
	names := slices.DeleteFunc(slices.Concat(lists...), func(name string) bool {
		return strings.HasPrefix(name, catalog.LabelVariable) || name == catalog.ProjectNameVariable
	})
	slices.Sort(names)
	return slices.Compact(names)
}

// maxSampled bounds how often samples are added: with more of them, conditions may need more.
const maxSampled = 5

// rendered asks the API for a preview, and keeps what it was made of for the frame. Samples stand in for variables without a value,
// so that people see a mail and not its holes.
func (c *Console) rendered(ctx context.Context, s *session, project int64, parts *client.Parts) *previewView {
	samples, shown := map[string]string{}, parts
	p, err := c.api(s).Preview(ctx, project, parts)
	missing := p.Missing
	for n := 0; err == nil && len(asked(p.Missing)) > 0 && n < maxSampled; n++ {
		for _, name := range asked(p.Missing) {
			samples[name] = say.Sample(name)
		}
		filled := *parts
		filled.Variables = maps.Clone(samples)
		maps.Copy(filled.Variables, parts.Variables)
		p, err = c.api(s).Preview(ctx, project, &filled)
		shown = &filled
	}
	if err != nil {
		return &previewView{Failed: failureOf(err)}
	}
	for _, name := range slices.Sorted(maps.Keys(samples)) {
		if !slices.Contains(missing, name) {
			missing = append(missing, name)
		}
	}
	p.Missing = missing
	return &previewView{Preview: p, Samples: samples, Frame: c.keepParts(s, project, shown)}
}

// preview renders what stands in the form of a template, saved or not.
func (c *Console) preview(w http.ResponseWriter, r *http.Request, s *session) error {
	sent := func(name string) string { return strings.ReplaceAll(r.PostFormValue(name), "\r\n", "\n") }
	p := c.rendered(r.Context(), s, idOf(r.PostFormValue("project")), &client.Parts{
		SubjectTemplate: sent("subjectTemplate"), BodyHTML: sent("bodyHtml"), BodyText: sent("bodyText"),
		Variables: map[string]string{}})
	return c.render(w, r, s, http.StatusOK, "preview", "Preview", p)
}

// unframed are the elements that a framed mail does not have: those by which a browser opens connections that no policy
// stops (link rel=preconnect), or that change what the page is; and those whose content is text to one parser and markup
// to another, so that the former could stand in them unseen. Scripts do not run in a frame anyway.
var unframed = map[string]bool{
	"link": true, "base": true, "meta": true,
	"script": true, "noscript": true, "iframe": true, "noembed": true, "noframes": true, "xmp": true, "plaintext": true,
	"svg": true, "math": true,
}

// framed returns a mail as its frame shows it.
func framed(mail string) string {
	if mail == "" {
		return ""
	}
	doc, err := html.Parse(strings.NewReader(mail))
	if err != nil { // it is read from memory: only nesting without end
		return "<p>This mail cannot be shown: " + template.HTMLEscapeString(err.Error())
	}
	var gone []*html.Node
	for n := range doc.Descendants() {
		markup := n.Data == "style" && n.FirstChild != nil && strings.Contains(n.FirstChild.Data, "<") // no style has it
		if n.Type == html.ElementNode && (unframed[n.Data] || markup) {
			gone = append(gone, n)
		}
	}
	for _, n := range gone {
		n.Parent.RemoveChild(n)
	}
	var out strings.Builder
	if err := html.Render(&out, doc); err != nil {
		return "<p>This mail cannot be shown: " + template.HTMLEscapeString(err.Error())
	}
	return out.String()
}

// framePolicy lets a mail show itself, and nothing else: no script, no network, no form, no cookie, no way out of the
// frame. Mail has its styles in its elements.
const framePolicy = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'self'"

// darkStyle is what a mail program with a dark theme begins with: a mail that sets no colours of its own gets these.
const darkStyle = "<style>:root { color-scheme: dark } body { background: #1c1c1e; color: #f2f2f7 }</style>"

// framePage renders what a frame shows, "" if it has been forgotten. It asks the API as the page did, so a key that may
// not see the mail any more does not.
func (c *Console) framePage(ctx context.Context, s *session, f *frame) string {
	if f == nil {
		return ""
	}
	if f.parts == nil {
		mail, err := c.api(s).KeptMail(ctx, f.project, f.entry)
		if err != nil {
			return ""
		}
		return framed(mail.BodyHTML)
	}
	p, err := c.api(s).Preview(ctx, f.project, f.parts)
	if err != nil {
		return ""
	}
	return framed(p.BodyHTML)
}

func (c *Console) frame(w http.ResponseWriter, r *http.Request, s *session) {
	page := c.framePage(r.Context(), s, keptAs[frame](s, r.PathValue("id")))
	w.Header().Set("Content-Security-Policy", framePolicy)
	w.Header().Set("X-DNS-Prefetch-Control", "off")
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if page == "" {
		w.WriteHeader(http.StatusNotFound)
		page = "<!DOCTYPE html><title>Gone</title><p>This preview has been forgotten. Render it again."
	} else if r.FormValue("scheme") == "dark" {
		page = strings.Replace(page, "<head>", "<head>"+darkStyle, 1)
	}
	_, _ = w.Write([]byte(page))
}

// sendTest sends a mail of a template to one address.
func (c *Console) sendTest(w http.ResponseWriter, r *http.Request, s *session) error {
	v, err := c.templateOf(r, s)
	if err != nil {
		return err
	}
	values := map[string]string{}
	for _, x := range v.Variables {
		if x.Value != "" {
			values[x.Name] = x.Value
		}
	}
	v.To = strings.TrimSpace(r.PostFormValue("toEmail"))
	began := time.Now()
	sent, err := c.api(s).SendTest(r.Context(), v.Project.ID, &client.Test{Code: v.Template.Code, ToEmail: v.To,
		Locale: v.Locale, Variables: values})
	if err != nil {
		v.Failed = failureOf(err)
	} else if sent.Kept {
		v.Sent = "The mail is kept, and was not sent: the service runs with --mail-sink."
	} else if sent.Sent {
		v.Sent = "The server took the mail after " + time.Since(began).Round(time.Millisecond).String() + "."
	} else {
		v.Sent = "The mail is queued, and is tried again."
	}
	return c.render(w, r, s, http.StatusOK, "template", "Template "+v.Template.Code, v)
}

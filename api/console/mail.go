package console

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/html"

	"fingerpost/mailer"
	"fingerpost/resolver/catalog"
)

// A mailView is the mail of a project, and the state of the queue.
type mailView struct {
	Project              object // nil: none is chosen
	ID                   string
	Projects             []object // to choose from
	Query                string
	Status, To, Template string
	From, Until          string
	Rows                 []object
	Total, Page, Pages   int
	Link                 string
	Queue                *mailer.Counts
	Stopped              []stoppedRow
	Statuses             []string
	Templates            []object
	Problem              string
}

// A stoppedRow is a project whose mail has stopped.
type stoppedRow struct {
	mailer.Stopped
	Name, Field string
}

// mailFields name the setting that a person changes to mend a failure (the contract's table of SMTP failures).
var mailFields = map[string]string{
	"SMTP_AUTH_FAILED": "username, password", "SMTP_AUTH_REQUIRED": "username, password", "SMTP_HOST_NOT_FOUND": "host",
	"SMTP_CONNECTION_REFUSED": "host, port",
	"SMTP_CONNECTION_FAILED":  "host, port", "SMTP_TIMEOUT": "host, port", "SMTP_TLS_NOT_OFFERED": "tlsEnabled",
	"SMTP_TLS_FAILED":          "tlsEnabled, sslEnabled, port",
	"SMTP_CERTIFICATE_INVALID": "host", "SMTP_SENDER_REFUSED": "fromEmail", "SMTP_ADDRESS_NOT_ALLOWED": "host",
	"SMTP_NOT_CONFIGURED": "the SMTP config",
}

func (c *Console) mail(w http.ResponseWriter, r *http.Request, s *session) {
	q := r.URL.Query()
	v := mailView{ID: projectID(q.Get("project")), Query: q.Get("q"), Status: q.Get("status"),
		To: strings.TrimSpace(q.Get("to")), Template: strings.TrimSpace(q.Get("template")),
		From: q.Get("from"), Until: q.Get("until"), Page: number(q.Get("page"), 1), Statuses: catalog.MailStatuses}
	if v.ID == "" {
		a, err := c.ask(r.Context(), s, get(projectsPath, "q", v.Query, "page", "1", "limit", itoa(pageRows)))
		if err != nil {
			c.failed(w, r, s, err)
			return
		}
		v.Projects, v.Total = a.List(), a.Total
		c.queue(r, s, &v)
		c.render(w, r, s, http.StatusOK, "mail", "Mail", v)
		return
	}
	a, err := c.ask(r.Context(), s, get(projectsPath+"/"+v.ID))
	if err != nil {
		c.failed(w, r, s, err)
		return
	}
	v.Project = a.Object()
	filters := []string{"status", v.Status, "toEmail", v.To, "templateCode", v.Template, "from", v.From, "to", v.Until}
	a, err = c.ask(r.Context(), s, get(mailPath(v.ID, "/logs"), append(filters, "page", itoa(v.Page), "limit",
		itoa(pageRows))...))
	if f, is := errors.AsType[*failure](err); is {
		v.Problem = f.text()
	} else if err != nil {
		c.failed(w, r, s, err)
		return
	} else {
		v.Rows, v.Total, v.Pages = a.List(), a.Total, a.Pages
	}
	if a, err := c.ask(r.Context(), s, get(mailPath(v.ID, "/templates"))); err == nil {
		v.Templates = a.List()
	}
	v.Link = link(Prefix+"mail", "project", v.ID, "status", v.Status, "to", v.To, "template", v.Template, "from", v.From,
		"until", v.Until) + "&page="
	c.queue(r, s, &v)
	c.render(w, r, s, http.StatusOK, "mail", "Mail of "+text(v.Project["name"]), v)
}

// queue adds the state of the queue: all of it for a key that covers every project, else the projects that it covers.
func (c *Console) queue(r *http.Request, s *session, v *mailView) {
	if c.o.Mail == nil || c.o.Edge { // the authority sends
		return
	}
	if s.Key().Everything {
		counts := c.o.Mail.Counts()
		v.Queue = &counts
	}
	for _, x := range c.o.Mail.Stopped() {
		id := text(x.ProjectID)
		if v.ID != "" && v.ID != id || len(v.Stopped) >= pageRows {
			continue
		}
		a, err := c.ask(r.Context(), s, get(projectsPath+"/"+id))
		if err != nil {
			continue // not a project of this key
		}
		v.Stopped = append(v.Stopped, stoppedRow{x, text(a.Object()["name"]), mailFields[string(x.Code)]})
	}
}

// An entryView is a mail of the log.
type entryView struct {
	Project, Mail object
	Field         string
}

func (c *Console) mailEntry(w http.ResponseWriter, r *http.Request, s *session) {
	id := projectID(r.PathValue("project"))
	a, err := c.ask(r.Context(), s, get(mailPath(id, "/logs/"+r.PathValue("id"))))
	if err != nil {
		c.failed(w, r, s, err)
		return
	}
	v := entryView{Mail: a.Object(), Field: mailFields[text(a.Object()["errorCode"])]}
	if a, err := c.ask(r.Context(), s, get(projectsPath+"/"+id)); err == nil {
		v.Project = a.Object()
	}
	c.render(w, r, s, http.StatusOK, "entry", "Mail to "+visible(v.Mail["toEmail"]), v)
}

// A smtpTestView is a test of SMTP settings.
type smtpTestView struct {
	Form    *form
	To      string
	Running string // the id of a test whose steps are still to come
	Steps   []smtpStep
	Passed  bool
	Failed  *failure
}

type smtpStep struct{ Name, Milliseconds string }

// smtpForm is the form of the SMTP config of a project, or an empty one.
func (c *Console) smtpForm(r *http.Request, s *session, project string) (*form, error) {
	if projectID(project) == "" {
		k := editable["smtp-config"]
		f := &form{Kind: "smtp-config", Fields: slices.Clone(k.fields)}
		f.begin(k, nil)
		return f, nil
	}
	return c.showing(r, s, "smtp-config", project, "")
}

func (c *Console) smtpTestPage(w http.ResponseWriter, r *http.Request, s *session) {
	f, err := c.smtpForm(r, s, r.FormValue("project"))
	if err != nil {
		c.failed(w, r, s, err)
		return
	}
	c.render(w, r, s, http.StatusOK, "smtptest", "Test SMTP settings", smtpTestView{Form: f})
}

// smtpTest tries the settings of the form. With a script the steps are shown as they happen, else when it has ended.
func (c *Console) smtpTest(w http.ResponseWriter, r *http.Request, s *session) {
	f, err := c.smtpForm(r, s, r.PostFormValue("project"))
	if err != nil {
		c.failed(w, r, s, err)
		return
	}
	f.fill(r.PostForm)
	v := smtpTestView{Form: f, To: strings.TrimSpace(r.PostFormValue("toEmail"))}
	body, ok := f.whole() // nothing stored is used
	delete(body, "active")
	body["toEmail"] = v.To
	t := &smtpTest{id: random(), changed: make(chan struct{})}
	switch {
	case !ok:
		v.Failed = &failure{Message: "Some of the fields cannot be read:"}
		for _, x := range f.Fields {
			if x.Error != "" {
				v.Failed.Details = append(v.Failed.Details, detail{x.Name, x.Error})
			}
		}
	case isFragment(r) && c.o.WatchTest != nil:
		s.mu.Lock()
		s.test = t
		s.mu.Unlock()
		stop := c.o.WatchTest(t.id, t.step)
		go func() {
			defer stop()
			_, steps, err := c.trySMTP(c.stopped, s, t.id, body)
			t.end(steps, err)
		}()
		v.Running = t.id
	default:
		v.Passed, v.Steps, err = c.trySMTP(r.Context(), s, t.id, body)
		if v.Failed, _ = errors.AsType[*failure](err); err != nil && v.Failed == nil {
			c.failed(w, r, s, err)
			return
		}
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
	c.render(w, r, s, http.StatusOK, "smtptest", "Test SMTP settings", v)
}

// trySMTP has the API try settings. The steps are those that have ended, also of a test that fails.
func (c *Console) trySMTP(ctx context.Context, s *session, requestID string, body object) (passed bool,
	steps []smtpStep, err error) {
	a, err := c.ask(ctx, s, call{method: http.MethodPost, path: "/api/mail/projects/smtp-config/test", body: body,
		header: http.Header{"X-Request-Id": {requestID}}})
	if a != nil {
		for _, o := range asList(a.Object()["steps"]) {
			steps = append(steps, smtpStep{text(o["name"]), text(o["milliseconds"])})
		}
	}
	return err == nil, steps, err
}

// An smtpTest is a test that runs while a page waits for its steps. Its fields after mu are guarded by it.
type smtpTest struct {
	id string

	mu      sync.Mutex
	steps   []smtpStep
	ended   bool
	err     error
	changed chan struct{} // closed at the next change: a browser may ask anew while its former stream still waits
}

func (t *smtpTest) step(name string, took time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.steps = append(t.steps, smtpStep{name,
		strconv.FormatFloat(float64(took.Round(time.Microsecond))/float64(time.Millisecond), 'f', -1, 64)})
	t.wake()
}

// end notes the outcome, with the steps that were not told: on an edge the authority makes the test.
func (t *smtpTest) end(steps []smtpStep, err error) {
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
			if v.Failed, _ = errors.AsType[*failure](err); err != nil && v.Failed == nil {
				v.Failed = &failure{Message: err.Error()}
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
	Project   object
	ID, TID   string
	Template  object
	Variables []variable
	Preview   *previewView
	To        string
	Sent      string
	Failed    *failure
}

type variable struct{ Name, Value string }

// A previewView is what a template renders to.
type previewView struct {
	Subject, Text, HTML string
	Frame               string // its id
	Missing, Unused     string
	Failed              *failure
}

// templatePage shows a template rendered with the variables of the form.
func (c *Console) templatePage(w http.ResponseWriter, r *http.Request, s *session) {
	v, err := c.templateOf(r, s)
	if err != nil {
		c.failed(w, r, s, err)
		return
	}
	c.render(w, r, s, http.StatusOK, "template", "Template "+text(v.Template["code"]), v)
}

func (c *Console) templateOf(r *http.Request, s *session) (*templateView, error) {
	v := &templateView{ID: projectID(r.FormValue("project")), TID: projectID(r.FormValue("id"))}
	a, err := c.ask(r.Context(), s, get(mailPath(v.ID, "/templates/"+v.TID)))
	if err != nil {
		return nil, err
	}
	v.Template = a.Object()
	if a, err := c.ask(r.Context(), s, get(projectsPath+"/"+v.ID)); err == nil {
		v.Project = a.Object()
	}
	values := object{}
	for name, value := range r.Form {
		if name, is := strings.CutPrefix(name, "var."); is && value[0] != "" {
			values[name] = value[0]
		}
	}
	v.Preview = c.rendered(r, s, v.ID, object{"subjectTemplate": v.Template["subjectTemplate"],
		"bodyHtml": v.Template["bodyHtml"], "bodyText": v.Template["bodyText"]}, values)
	names := strings.Split(v.Preview.Missing, ", ")
	for name := range values {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if name != "" {
			v.Variables = append(v.Variables, variable{name, text(values[name])})
		}
	}
	return v, nil
}

// rendered asks the API for a preview, and keeps its HTML for the frame.
func (c *Console) rendered(r *http.Request, s *session, project string, parts, values object) *previewView {
	for name, value := range parts {
		if text(value) == "" {
			delete(parts, name)
		}
	}
	parts["variables"] = values
	a, err := c.ask(r.Context(), s, call{method: http.MethodPost, path: mailPath(project, "/templates/preview"),
		body: parts})
	if fail, is := errors.AsType[*failure](err); is {
		return &previewView{Failed: fail}
	}
	if err != nil {
		return &previewView{Failed: &failure{Message: err.Error()}}
	}
	o := a.Object()
	p := &previewView{Subject: text(o["subject"]), Text: text(o["bodyText"]), HTML: text(o["bodyHtml"]),
		Missing: text(o["missing"]), Unused: text(o["unused"])}
	p.Frame = s.keepFrame(framed(p.HTML))
	return p
}

// preview renders what stands in the form of a template, saved or not.
func (c *Console) preview(w http.ResponseWriter, r *http.Request, s *session) {
	parts := object{}
	for _, name := range []string{"subjectTemplate", "bodyHtml", "bodyText"} {
		parts[name] = strings.ReplaceAll(r.PostFormValue(name), "\r\n", "\n")
	}
	p := c.rendered(r, s, projectID(r.PostFormValue("project")), parts, object{})
	c.render(w, r, s, http.StatusOK, "preview", "Preview", p)
}

// maxFrames bounds the previews that a session keeps: there may be one in each of several tabs.
const maxFrames = 8

// A frame is the HTML of a preview.
type frame struct{ id, html string }

func (s *session) keepFrame(page string) (id string) {
	if page == "" {
		return ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.frames) >= maxFrames {
		s.frames = s.frames[1:]
	}
	id = random()
	s.frames = append(s.frames, frame{id, page})
	return id
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

func (c *Console) frame(w http.ResponseWriter, r *http.Request, s *session) {
	s.mu.Lock()
	page := ""
	for _, f := range s.frames {
		if f.id == r.PathValue("id") {
			page = f.html
		}
	}
	s.mu.Unlock()
	w.Header().Set("Content-Security-Policy", framePolicy)
	w.Header().Set("X-DNS-Prefetch-Control", "off")
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if page == "" {
		w.WriteHeader(http.StatusNotFound)
		page = "<!DOCTYPE html><title>Gone</title><p>This preview has been forgotten. Render it again."
	}
	_, _ = w.Write([]byte(page))
}

// sendTest sends a mail of a template to one address.
func (c *Console) sendTest(w http.ResponseWriter, r *http.Request, s *session) {
	v, err := c.templateOf(r, s)
	if err != nil {
		c.failed(w, r, s, err)
		return
	}
	values := object{}
	for _, x := range v.Variables {
		if x.Value != "" {
			values[x.Name] = x.Value
		}
	}
	v.To = strings.TrimSpace(r.PostFormValue("toEmail"))
	began := time.Now()
	a, err := c.ask(r.Context(), s, call{method: http.MethodPost, path: "/api/mail/send/test-template",
		body: object{"projectId": json.Number(v.ID), "toEmail": v.To, "templateCode": v.Template["code"],
			"variables": values}})
	if fail, is := errors.AsType[*failure](err); is {
		v.Failed = fail
	} else if err != nil {
		c.failed(w, r, s, err)
		return
	} else if a.Object()["sent"] == true {
		v.Sent = "The server took the mail after " + time.Since(began).Round(time.Millisecond).String() + "."
	} else {
		v.Sent = "The mail is queued, and is tried again."
	}
	c.render(w, r, s, http.StatusOK, "template", "Template "+text(v.Template["code"]), v)
}

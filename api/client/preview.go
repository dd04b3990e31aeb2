package client

import (
	"context"
	"net/http"
	"strconv"
)

// Parts are the texts of a template. An empty one is not there.
type Parts struct {
	SubjectTemplate string            `json:"subjectTemplate,omitempty"`
	BodyHTML        string            `json:"bodyHtml,omitempty"`
	BodyText        string            `json:"bodyText,omitempty"`
	Variables       map[string]string `json:"variables"`
}

// A Preview is what Parts render to.
type Preview struct {
	Subject, BodyHTML, BodyText string
	Missing, Unused             []string // variables
	Variables                   []string // that the template uses, those of conditions too
}

// Preview renders the texts of a template of a project, which need not be stored.
func (c *Client) Preview(ctx context.Context, project int64, parts *Parts) (p Preview, err error) {
	_, err = c.mail.do(ctx, request{method: http.MethodPost, path: mailPath(project, "/templates/preview"), body: parts,
		passing: true}, &p)
	return p, err
}

// A Sent is what became of a send.
type Sent struct {
	Sent bool // else it is queued, and tried again
	Kept bool // the server has kept the mail instead of sending it
}

// A Test is a mail of a template to one address.
type Test struct {
	Code, ToEmail string
	Locale        string // the language that is wanted, in BCP 47; "": the template's own texts
	Variables     map[string]string
}

// SendTest sends the mail of a template to one address.
func (c *Client) SendTest(ctx context.Context, project int64, t *Test) (answer Sent, err error) {
	body := map[string]any{"projectId": project, "toEmail": t.ToEmail, "templateCode": t.Code, "variables": t.Variables}
	if t.Locale != "" {
		body["locale"] = t.Locale
	}
	_, err = c.mail.call(ctx, http.MethodPost, "/api/mail/send/test-template", body, &answer)
	return answer, err
}

// A Mail is one that is sent: from a template, or with texts of its own. Empty fields are not there.
type Mail struct {
	Domain       string            `json:"domain"` // of the project that sends
	ToEmail      string            `json:"toEmail"`
	TemplateCode string            `json:"templateCode,omitempty"`
	Variables    map[string]string `json:"variables,omitempty"`
	Locale       string            `json:"locale,omitempty"` // of the template that is wanted; "": its own texts
	Subject      string            `json:"subject,omitempty"`
	BodyHTML     string            `json:"bodyHtml,omitempty"`
	BodyText     string            `json:"bodyText,omitempty"`
	AgainOf      int64             `json:"againOf,omitempty"` // the log entry that it repeats
}

// Send sends a mail, once for each value of once, and returns the id of its log entry. A mail that the server has refused
// for good is an *Error, and has an entry, too.
func (c *Client) Send(ctx context.Context, m *Mail, once string) (logID int64, err error) {
	path := "/api/mail/send/raw"
	if m.TemplateCode != "" {
		path = "/api/mail/send/template"
	}
	var answer struct{ LogID int64 }
	_, err = c.mail.do(ctx, request{method: http.MethodPost, path: path, body: m,
		header: http.Header{"Idempotency-Key": {once}}}, &answer)
	return answer.LogID, err
}

// An SMTPStep is a step of a test of SMTP settings that has ended.
type SMTPStep struct {
	Name         string
	Milliseconds float64
}

// Text is how long the step took, in milliseconds.
func (s SMTPStep) Text() string { return strconv.FormatFloat(s.Milliseconds, 'f', -1, 64) }

// TestSMTP tries SMTP settings by sending one mail. It stores nothing and uses nothing stored. fields are those of the
// API's reference. After a failure, too, it returns the steps, of which the last one is the one that failed.
func (c *Client) TestSMTP(ctx context.Context, requestID string, fields map[string]any) ([]SMTPStep, error) {
	return c.testSMTP(ctx, requestID, "/api/mail/projects/smtp-config/test", fields)
}

// TestStoredSMTP is TestSMTP with the settings that a project sends with, its password included.
func (c *Client) TestStoredSMTP(ctx context.Context, requestID string, project int64, to string) ([]SMTPStep, error) {
	return c.testSMTP(ctx, requestID, mailPath(project, "/smtp-config/test"), map[string]any{"toEmail": to})
}

func (c *Client) testSMTP(ctx context.Context, requestID, path string, fields map[string]any) ([]SMTPStep, error) {
	var answer struct{ Steps []SMTPStep }
	_, err := c.mail.do(ctx, request{method: http.MethodPost, path: path, body: fields, passing: true,
		header: http.Header{"X-Request-Id": {requestID}}}, &answer)
	return answer.Steps, err
}

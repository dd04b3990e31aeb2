package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"fingerpost/resolver/catalog"
)

// MaxLogPage is the most entries that one page of the mail log has.
const MaxLogPage = pageSize

// A MailEntry is one entry of the mail log.
type MailEntry struct {
	ID            int64   `json:"id"`
	ProjectID     int64   `json:"projectId"`
	ProviderType  string  `json:"providerType"`
	ToEmail       string  `json:"toEmail"`
	Subject       string  `json:"subject"`
	TemplateCode  *string `json:"templateCode"`
	Status        string  `json:"status"`
	ErrorMessage  *string `json:"errorMessage"`
	CreatedAt     string  `json:"createdAt"`
	SentAt        *string `json:"sentAt"`
	Attempts      int     `json:"attempts"`
	NextAttemptAt *string `json:"nextAttemptAt"`
	ErrorCode     *string `json:"errorCode"`
	SMTPCode      *int    `json:"smtpCode"`
	MessageID     string  `json:"messageId"`
	Uncertain     bool    `json:"uncertain"`
	ServiceName   string  `json:"serviceName"`
	WaitingFor    *string `json:"waitingFor"`
	AgainOf       *int64  `json:"againOf"` // the entry that it repeats
	Locale        *string `json:"locale"`  // of the template; nil for its own texts

	History []MailAttempt `json:"history,omitempty"` // of MailLogEntry alone
}

// A MailAttempt is how one attempt with a mail has ended.
type MailAttempt struct {
	Attempt   int     `json:"attempt"`
	At        string  `json:"at"`
	Stage     *string `json:"stage"` // how far it got
	ErrorCode *string `json:"errorCode"`
	SMTPCode  *int    `json:"smtpCode"`
	Message   *string `json:"message"`
}

// A LogQuery says which entries of a project's mail log are read. Empty fields do not filter.
type LogQuery struct {
	Template, To, Status string
	From                 time.Time
	OldestFirst          bool // else the newest entry comes first
	Page, Limit          int  // from 1; 1 … MaxLogPage
}

// MailPage reads one page of a project's mail log, the newest entry first. filters are those of the API's reference.
func (c *Client) MailPage(ctx context.Context, project int64, filters url.Values) (Page[MailEntry], error) {
	return readPage[MailEntry](ctx, c.mail, mailPath(project, "/logs"), filters)
}

// Mail reads one page of the newest mail of all projects that the key covers. filters are those of the API's reference.
// The page's SearchedTo, as the filter "to", reads on where it is not "".
func (c *Client) Mail(ctx context.Context, filters url.Values) (Page[MailEntry], error) {
	return readPage[MailEntry](ctx, c.mail, "/api/mail/logs", filters)
}

func (q *LogQuery) filters() url.Values {
	v := url.Values{"templateCode": {q.Template}, "toEmail": {q.To}, "status": {q.Status}}
	if !q.From.IsZero() {
		v.Set("from", catalog.Moment(q.From))
	}
	return v
}

// MailLog reads one page of a project's mail log. more reports whether there are further pages. A project without a
// mail log is an *Error with status 404.
func (c *Client) MailLog(ctx context.Context, project int64, q LogQuery) (entries []MailEntry, more bool, err error) {
	v := q.filters()
	v.Set("page", strconv.Itoa(q.Page))
	v.Set("limit", strconv.Itoa(q.Limit))
	if q.OldestFirst {
		v.Set("sort", "createdAt")
		v.Set("order", "asc")
	}
	p, err := c.MailPage(ctx, project, v)
	return p.Rows, q.Page < p.Pages && len(p.Rows) > 0, err
}

// MailLogEntry reads one entry of a project's mail log. One whose retention has ended is an *Error with status 404.
func (c *Client) MailLogEntry(ctx context.Context, project, id int64) (e MailEntry, err error) {
	_, err = c.mail.call(ctx, http.MethodGet, mailPath(project, "/logs/"+strconv.FormatInt(id, 10)), nil, &e)
	return e, err
}

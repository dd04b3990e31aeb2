package client

import (
	"context"
	"encoding/json"
	"net/url"
	"strconv"
	"time"

	"fingerpost/resolver/catalog"
)

// An AuditEntry is one entry of the audit trail.
type AuditEntry struct {
	ID         int64         `json:"id"`
	Time       string        `json:"time"`
	Generation int64         `json:"generation"`
	Action     string        `json:"action"`
	ProjectID  *int64        `json:"projectId"`
	Object     *string       `json:"object"`
	Changes    []AuditChange `json:"changes"`
	Door       string        `json:"door"`
	Actor      *string       `json:"actor"`
	Key        *string       `json:"key"`
	Subject    *string       `json:"subject"` // issuer|sub of a person who has signed in at a login
	RequestID  *string       `json:"requestId"`
	Commit     *string       `json:"commit"`
	Hash       string        `json:"hash"`
}

// An AuditChange is the change of one field. Before and After are JSON; both are null for a secret.
type AuditChange struct {
	Field  string          `json:"field"`
	Secret bool            `json:"secret,omitempty"`
	Before json.RawMessage `json:"before"`
	After  json.RawMessage `json:"after"`
}

// An AuditQuery says which entries of the audit trail are read. Empty fields do not filter.
type AuditQuery struct {
	Project       int64
	Actor, Action string
	From          time.Time
	OldestFirst   bool // else the newest entry comes first
	Page, Limit   int  // from 1; 1 … MaxLogPage
}

// AuditPage reads one page of the audit trail, the newest entry first. filters are those of the API's reference.
func (c *Client) AuditPage(ctx context.Context, filters url.Values) (Page[AuditEntry], error) {
	return readPage[AuditEntry](ctx, c.platform, "/api/platform/audit", filters)
}

// Audit reads one page of the audit trail. more reports whether there are further pages.
func (c *Client) Audit(ctx context.Context, q AuditQuery) (entries []AuditEntry, more bool, err error) {
	v := url.Values{"page": {strconv.Itoa(q.Page)}, "limit": {strconv.Itoa(q.Limit)}, "actor": {q.Actor},
		"action": {q.Action}}
	if q.Project != 0 {
		v.Set("projectId", strconv.FormatInt(q.Project, 10))
	}
	if !q.From.IsZero() {
		v.Set("from", catalog.Moment(q.From))
	}
	if q.OldestFirst {
		v.Set("order", "asc")
	}
	p, err := c.AuditPage(ctx, v)
	return p.Rows, q.Page < p.Pages && len(p.Rows) > 0, err
}

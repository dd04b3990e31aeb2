package api

import (
	"bytes"
	"net/mail"
	"strconv"
	"strings"
	"unicode/utf8"

	"fingerpost/api/web"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

// auditFields are the fields that sort the audit trail. Both give the same order.
var auditFields = []string{"id", "time"}

// listAudit answers GET /api/platform/audit: always paginated, and latest first by default. A key that is bound to
// projects sees their entries only.
func (s *Server) listAudit(r *request) error {
	raw := r.ctx.URI().QueryString()
	query, problems := parseAuditQuery(raw)
	page, err := web.ParsePaging(raw, auditFields, problems)
	if err != nil {
		return err
	}
	if err := r.permit(); err != nil {
		return err
	}
	if !r.key.EveryProject() {
		if query.Covers = r.key.Covers; query.ProjectID != 0 && !r.key.Covers(query.ProjectID) {
			return refuseProject
		}
	}
	page.Paged = true
	query.Page, query.Limit, query.Ascending = page.Page, page.Limit, page.Order == "asc"
	found, err := s.resolver.Audit(query)
	if err != nil {
		return err
	}
	rows := make([]*catalog.AuditEntry, len(found.Entries))
	for i := range found.Entries {
		rows[i] = &found.Entries[i]
	}
	r.succeedPage("audit trail found", web.AppendRows(rows, resolver.AppendAudit), page, int(found.Total))
	return nil
}

// parseAuditQuery reads the filters of the audit trail and reports every problem.
func parseAuditQuery(raw []byte) (f catalog.AuditQuery, _ catalog.Problems) {
	q := web.ParseQuery(raw, "projectId", "actor", "action", "from", "to", "requestId")
	if text, given := q.Values["projectId"]; given {
		n, err := strconv.ParseUint(text, 10, idBits)
		if f.ProjectID = int64(n); err != nil || n == 0 {
			q.Problems.Addf("projectId", "must be a positive decimal integer")
		}
	}
	q.Text("actor", &f.Actor)
	q.Text("action", &f.Action)
	if f.Action != "" && !catalog.IsAuditAction(f.Action) {
		q.Problems.Addf("action", "must be %s with .create, .update or .delete, or %s",
			strings.Join(catalog.AuditObjects, ", "), strings.Join(catalog.AuditOthers, ", "))
	}
	q.Text("requestId", &f.RequestID)
	q.Moment("from", &f.From)
	q.Moment("to", &f.To)
	return f, q.Problems
}

const (
	headerActor = "X-Actor"
	maxActorLen = 256 // bytes
)

// readActor reads who a write is made for. It is the request's own word, which the audit trail keeps next to the key.
func (r *request) readActor() error {
	values := r.ctx.Request.Header.PeekAll(headerActor)
	switch len(values) {
	case 0:
		return nil
	case 1:
	default:
		return web.InvalidField(headerActor, "must be given once")
	}
	value := bytes.Trim(values[0], " \t")
	text := string(value)
	switch _, err := mail.ParseAddress(text); {
	case len(value) > maxActorLen:
		return web.InvalidField(headerActor, "has more than 256 bytes")
	case !utf8.Valid(value) || strings.ContainsFunc(text, catalog.BreaksLine):
		return web.InvalidField(headerActor, "must be UTF-8 without control characters")
	case err != nil:
		return web.InvalidField(headerActor, "must be a name and an address, such as Ada Lovelace <ada@example.com>")
	}
	r.actor = text
	return nil
}

const (
	headerMessage = "X-Change-Message"
	maxMessageLen = 72 // characters: it is the first line of a commit
)

// readMessage reads what a write says about itself, for the git history.
func (r *request) readMessage() error {
	values := r.ctx.Request.Header.PeekAll(headerMessage)
	if len(values) == 0 {
		return nil
	}
	text := string(bytes.Trim(values[0], " \t"))
	switch {
	case len(values) > 1:
		return web.InvalidField(headerMessage, "must be given once")
	case text == "":
		return web.InvalidField(headerMessage, "must not be empty")
	case !utf8.ValidString(text) || strings.ContainsFunc(text, catalog.BreaksLine):
		return web.InvalidField(headerMessage, "must be UTF-8 without control characters")
	case utf8.RuneCountInString(text) > maxMessageLen:
		return web.InvalidField(headerMessage, "has more than 72 characters")
	}
	r.message = text
	return nil
}

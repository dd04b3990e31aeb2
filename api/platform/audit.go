package platform

import (
	"strconv"
	"strings"

	"fingerpost/api/web"
	"fingerpost/resolver/catalog"
	"fingerpost/resolver/rowjson"
)

// auditFields are the fields that sort the audit trail. Both give the same order.
var auditFields = []string{"id", "time"}

// listAudit answers GET /api/platform/audit: always paginated, and latest first by default. A key that is bound to
// projects sees their entries only.
func (a *API) listAudit(r *web.Request) error {
	raw := r.Ctx.URI().QueryString()
	query, problems := parseAuditQuery(raw)
	page, err := web.ParsePaging(raw, auditFields, problems)
	if err != nil {
		return err
	}
	if err := r.Permit(); err != nil {
		return err
	}
	if !r.Key.EveryProject() {
		if query.Covers = r.Key.Covers; query.ProjectID != 0 && !r.Key.Covers(query.ProjectID) {
			return web.RefuseProject
		}
	}
	page.Paged = true
	query.Page, query.Limit, query.Ascending = page.Page, page.Limit, page.Order == "asc"
	found, err := a.Trail.Audit(query)
	if err != nil {
		return err
	}
	rows := make([]*catalog.AuditEntry, len(found.Entries))
	for i := range found.Entries {
		rows[i] = &found.Entries[i]
	}
	r.SucceedPage("audit trail found", web.AppendRows(rows, rowjson.AppendAudit), page, int(found.Total))
	return nil
}

// parseAuditQuery reads the filters of the audit trail and reports every problem.
func parseAuditQuery(raw []byte) (f catalog.AuditQuery, _ catalog.Problems) {
	q := web.ParseQuery(raw, "projectId", "actor", "action", "from", "to", "requestId", "newest")
	if text, given := q.Values["projectId"]; given {
		n, err := strconv.ParseUint(text, 10, web.IDBits)
		if f.ProjectID = int64(n); err != nil || n == 0 {
			q.Problems.Addf("projectId", "must be a positive decimal integer")
		}
	}
	q.Text("actor", &f.Actor)
	q.Text("action", &f.Action)
	if f.Action != "" && !catalog.IsAuditAction(f.Action) {
		// Two problems: one message would be longer than answers have it.
		q.Problems.Addf("action", "must be %s with .create, .update or .delete, or a name of its own",
			strings.Join(catalog.AuditObjects, ", "))
		q.Problems.Addf("action", "names of their own are %s", strings.Join(catalog.AuditOthers, ", "))
	}
	q.Text("requestId", &f.RequestID)
	if text, given := q.Values["newest"]; given {
		n, err := strconv.ParseUint(text, 10, 63)
		if f.Newest = int64(n); err != nil || n == 0 {
			q.Problems.Addf("newest", "must be a positive decimal integer")
		}
	}
	q.Moment("from", &f.From)
	q.Moment("to", &f.To)
	return f, q.Problems
}

package mailapi

import (
	"slices"
	"strings"
	"time"

	"fingerpost/api/web"
	"fingerpost/resolver/catalog"
	"fingerpost/resolver/rowjson"
)

// mailLogFields are the fields that sort a list of log entries.
var mailLogFields = []string{"id", "projectId", "providerType", "toEmail", "subject", "templateCode", "status",
	"errorMessage",
	"createdAt", "sentAt", "attempts", "nextAttemptAt", "errorCode", "smtpCode", "messageId", "uncertain", "serviceName"}

// listMailLogs answers GET /projects/{projectId}/logs: always paginated, and latest first by default.
func (a *API) listMailLogs(r *web.Request) error {
	raw := r.Ctx.URI().QueryString()
	_, problems := r.ID("projectId")
	filter, more := parseMailFilter(raw)
	page, err := web.ParsePaging(raw, mailLogFields, append(problems, more...))
	if err != nil {
		return err
	}
	id, err := a.loggedProject(r)
	if err != nil {
		return err
	}
	page.Paged = true
	filter.Page, filter.Limit = page.Page, page.Limit
	if page.Sort != "createdAt" {
		filter.Sort = page.Sort
	}
	// The default order is descending by time, and ascending by any other field, as in every list.
	filter.Ascending = page.Order == "asc" || page.Order == "" && filter.Sort != ""
	rows, total, err := a.Log.MailLogs(id, filter)
	if err != nil {
		return err
	}
	list, stopped := make([]*catalog.MailLog, len(rows)), a.mailWaitsFor(id)
	for i := range rows {
		list[i] = withWait(&rows[i], stopped)
	}
	r.SucceedPage("mail log found", web.AppendRows(list, rowjson.AppendMailLog), page, total)
	return nil
}

// listAllMail answers GET /logs: the newest mail of all projects that the key covers. It never looks at a mail of another
// one, so neither rows nor counts tell of them.
func (a *API) listAllMail(r *web.Request) error {
	raw := r.Ctx.URI().QueryString()
	filter, problems := parseMailFilter(raw)
	page, err := web.ParsePaging(raw, []string{"createdAt"}, problems)
	if err == nil && page.Order == "asc" {
		err = web.InvalidField("order", "must be desc: the newest mail comes first")
	}
	if err != nil {
		return err
	}
	if err := r.Permit(); err != nil {
		return err
	}
	page.Paged = true
	filter.Page, filter.Limit = page.Page, page.Limit
	found, err := a.Log.MailAcross(r.Key.ProjectIDs(), filter)
	if err != nil {
		return err
	}
	list, stopped := make([]*catalog.MailLog, len(found.Entries)), map[int64]string{}
	for i := range found.Entries {
		l := &found.Entries[i]
		if _, asked := stopped[l.ProjectID]; !asked {
			stopped[l.ProjectID] = a.mailWaitsFor(l.ProjectID)
		}
		list[i] = withWait(l, stopped[l.ProjectID])
	}
	data := page.AppendMeta(web.AppendRows(list, rowjson.AppendMailLog), found.Total)
	data = append(data[:len(data)-1], `,"searchedTo":`...)
	if found.SearchedTo.IsZero() {
		data = append(data, "null}"...)
	} else {
		data = append(append(append(data, '"'), catalog.Moment(found.SearchedTo)...), `"}`...)
	}
	r.Succeed("mail found", data)
	return nil
}

// loggedProject is projectOf for the log, which outlives its project: a key that reaches every project may read the log
// of a deleted one.
func (a *API) loggedProject(r *web.Request, others ...catalog.Problem) (int64, error) {
	project, err := r.Project(a.Config, "projectId", others...)
	if err == nil {
		return project.ID, nil
	}
	if !catalog.IsNotFound(err) || !r.Key.EveryProject() {
		return 0, err
	}
	id, _ := r.ID("projectId")
	_, total, logErr := a.Log.MailLogs(id, catalog.MailQuery{Page: 1, Limit: 1})
	if logErr != nil {
		return 0, logErr
	}
	if total == 0 {
		return 0, err
	}
	return id, nil
}

// parseMailFilter reads the filters of a list of log entries and reports every problem.
func parseMailFilter(raw []byte) (f catalog.MailQuery, _ catalog.Problems) {
	q := web.ParseQuery(raw, "status", "templateCode", "toEmail", "from", "to", "q", "messageId")
	if status, given := q.Values["status"]; given {
		if f.Status = catalog.MailStatus(status); !slices.Contains(catalog.MailStatuses, status) {
			q.Problems.Addf("status", "must be one of %s", strings.Join(catalog.MailStatuses, ", "))
		}
	}
	q.Text("templateCode", &f.TemplateCode)
	q.Text("toEmail", &f.ToEmail)
	if q.Text("messageId", &f.MessageID); f.MessageID != "" {
		f.MessageID = "<" + strings.Trim(f.MessageID, "<>") + ">"
	}
	q.SearchText(&f.Text)
	q.Moment("from", &f.From)
	q.Moment("to", &f.To)
	return f, q.Problems
}

// getMailLog answers GET /projects/{projectId}/logs/{logId}.
func (a *API) getMailLog(r *web.Request) error {
	entry, err := a.logged(r)
	if err != nil {
		return err
	}
	withWait(&entry, a.mailWaitsFor(entry.ProjectID))
	r.SucceedTagged("mail log entry found", rowjson.AppendMailEntry(nil, &entry), rowjson.MailLogETag(&entry))
	return nil
}

// logged returns the log entry that a request names.
func (a *API) logged(r *web.Request) (catalog.MailLog, error) {
	id, problems := r.ID("logId")
	project, err := a.loggedProject(r, problems...)
	if err != nil {
		return catalog.MailLog{}, err
	}
	entry, found, err := a.Log.MailLog(project, id)
	if err == nil && !found {
		err = &catalog.Error{Code: catalog.CodeNotFound, Message: "no such log entry"}
	}
	return entry, err
}

// mailWaitsFor says what the queued mail of a project waits for, "" if only for its next attempt.
func (a *API) mailWaitsFor(project int64) string {
	if a.Mail == nil {
		return ""
	}
	return a.Mail.WaitingFor(project)
}

// withWait replaces the time of the next attempt of a queued mail by what it waits for. It returns its argument.
func withWait(l *catalog.MailLog, stopped string) *catalog.MailLog {
	if stopped != "" && !l.NextAttemptAt.IsZero() {
		l.WaitingFor, l.NextAttemptAt = stopped, time.Time{}
	}
	return l
}

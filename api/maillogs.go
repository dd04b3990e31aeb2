package api

import (
	"slices"
	"strings"
	"time"

	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

// mailLogFields are the fields by which log entries can be sorted.
var mailLogFields = []string{"id", "projectId", "providerType", "toEmail", "subject", "templateCode", "status", "errorMessage",
	"createdAt", "sentAt", "attempts", "nextAttemptAt", "errorCode", "smtpCode", "messageId", "uncertain", "serviceName"}

var mailStatuses = []string{string(catalog.MailPending), string(catalog.MailSending), string(catalog.MailSent),
	string(catalog.MailRetrying), string(catalog.MailFailed), string(catalog.MailExpired)}

// listMailLogs answers GET /projects/{projectId}/logs (api/README.md, Lists): always paginated, latest first unless asked
// otherwise.
func (s *Server) listMailLogs(r *request) error {
	raw := r.ctx.URI().QueryString()
	_, idErr := r.id("projectId")
	filter, filterErr := parseMailFilter(raw)
	page, err := parsePaging(raw, mailLogFields, idErr, filterErr)
	if err != nil {
		return err
	}
	given := parseQuery(raw, "sort", "order").values
	id, err := s.loggedProject(r)
	if err != nil {
		return err
	}
	page.paged = true
	filter.Page, filter.Limit = page.page, page.limit
	if sort, named := given["sort"]; named && sort != "createdAt" {
		filter.Sort = sort
	}
	// Time runs backwards in this list unless somebody turns it; other fields rise, as they do in every list.
	filter.Ascending = given["order"] == "asc" || given["order"] == "" && filter.Sort != ""
	rows, total, err := s.resolver.MailLogs(id, filter)
	if err != nil {
		return err
	}
	list := make([]*catalog.MailLog, len(rows))
	for i := range rows {
		list[i] = &rows[i]
	}
	s.succeedPage(r.ctx, "mail log found", appendRows(list, resolver.AppendMailLog), page, total)
	return nil
}

// loggedProject is projectOf for the log, which outlives its project (api/README.md, Projects): a key that reaches every project
// may read on after the deletion.
func (s *Server) loggedProject(r *request, earlier ...error) (int64, error) {
	project, err := s.projectOf(r, "projectId", earlier...)
	if err == nil {
		return project.ID, nil
	}
	if !isNotFound(err) || !r.key.EveryProject() {
		return 0, err
	}
	id, _ := r.id("projectId")
	_, total, logErr := s.resolver.MailLogs(id, catalog.MailQuery{Page: 1, Limit: 1})
	if logErr != nil {
		return 0, logErr
	}
	if total == 0 {
		return 0, err
	}
	return id, nil
}

// parseMailFilter reads the filters of a list of log entries and reports all that is wrong with them.
func parseMailFilter(raw []byte) (f catalog.MailQuery, err error) {
	q := parseQuery(raw, "status", "templateCode", "toEmail", "from", "to")
	problems := q.problems
	if status, given := q.values["status"]; given {
		if f.Status = catalog.MailStatus(status); !slices.Contains(mailStatuses, status) {
			problems.Addf("status", "must be one of %s", strings.Join(mailStatuses, ", "))
		}
	}
	text := func(name string, into *string) {
		v, given := q.values[name]
		if *into = v; given && v == "" {
			problems.Addf(name, "must not be empty; leave it out for all")
		}
	}
	text("templateCode", &f.TemplateCode)
	text("toEmail", &f.ToEmail)
	moment := func(name string, into *time.Time) {
		v, given := q.values[name]
		if !given {
			return
		}
		var ok bool
		if *into, ok = parseMoment(v); !ok {
			problems.Addf(name, "must be a time in UTC such as 2026-01-31T09:30:00")
		}
	}
	moment("from", &f.From)
	moment("to", &f.To)
	if len(problems) > 0 {
		return f, invalid(problems...)
	}
	return f, nil
}

// parseMoment reads a time as answers have it, with or without a fraction; a "Z" is taken too.
func parseMoment(v string) (time.Time, bool) {
	t, err := time.ParseInLocation("2006-01-02T15:04:05", strings.TrimSuffix(v, "Z"), time.UTC)
	return t, err == nil && t.Year() >= 1970
}

// getMailLog answers GET /projects/{projectId}/logs/{logId}.
func (s *Server) getMailLog(r *request) error {
	id, idErr := r.id("logId")
	project, err := s.loggedProject(r, idErr)
	if err != nil {
		return err
	}
	entry, found, err := s.resolver.MailLog(project, id)
	switch {
	case err != nil:
		return err
	case !found:
		return &catalog.Error{Code: catalog.CodeNotFound, Message: "no such log entry"}
	}
	s.succeedTagged(r.ctx, "mail log entry found", resolver.AppendMailLog(nil, &entry), resolver.MailLogETag(&entry))
	return nil
}

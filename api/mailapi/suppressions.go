package mailapi

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"
	"time"

	"fingerpost/api/web"
	"fingerpost/resolver/catalog"
	"fingerpost/resolver/rowjson"
)

// suppressionFields are the fields of an entry in a request.
var suppressionFields = []string{"address", "reason", "category", "note"}

const listField = "suppressions"

var refuseDry = web.InvalidField(web.DryRunParam, "is not for this call: it changes no file")

// listSuppressions answers GET /projects/{projectId}/suppressions: always paginated, by address.
func (a *API) listSuppressions(r *web.Request) error {
	raw := r.Ctx.URI().QueryString()
	_, problems := r.ID("projectId")
	q, more := parseSuppressionFilter(raw, append([]string{"q"}, web.PagingParams...)...)
	page, err := web.ParsePaging(raw, []string{"address"}, append(problems, more...))
	if err != nil {
		return err
	}
	project, err := r.Project(a.Config, "projectId")
	if err != nil {
		return err
	}
	page.Paged = true
	q.Page, q.Limit, q.Descending = page.Page, page.Limit, page.Order == "desc"
	list, total, err := a.Lists.SuppressionPage(project.ID, q)
	if err != nil {
		return err
	}
	rows := make([]*catalog.Suppression, len(list))
	for i := range list {
		rows[i] = &list[i]
	}
	r.SucceedPage("suppressions found", web.AppendRows(rows, rowjson.AppendSuppression), page, total)
	return nil
}

// parseSuppressionFilter reads which entries are meant. A misspelt filter would select more of them, so it is a problem.
func parseSuppressionFilter(raw []byte, others ...string) (s catalog.SuppressionQuery, _ catalog.Problems) {
	known := append([]string{"address", "reason", "category"}, others...)
	q := web.ParseQuery(raw, known...)
	q.RefuseOthers(raw, known)
	if q.Text("address", &s.Address); s.Address != "" {
		address, err := catalog.ParseAddress(s.Address)
		if err != nil {
			q.Problems.Addf("address", "%v", err)
		}
		s.Address = address
	}
	var reason string
	q.Text("reason", &reason)
	if s.Reason = catalog.SuppressionReason(reason); reason != "" && s.Reason.Strength() == 0 {
		q.Problems.Addf("reason", "must be one of %s", strings.Join(catalog.SuppressionReasons, ", "))
	}
	if q.Text("category", &s.Category); s.Category != "" && s.Category != catalog.NoCategory {
		if msg := catalog.CheckCategory(s.Category); msg != "" {
			q.Problems.Addf("category", "%s", msg)
		}
	}
	q.SearchText(&s.Text)
	return s, q.Problems
}

// suppress answers POST /projects/{projectId}/suppressions: one entry, or a list of them, all or none.
func (a *API) suppress(r *web.Request, project *catalog.Project) error {
	if r.Dry {
		return refuseDry
	}
	f, err := readForm(r, append([]string{listField}, suppressionFields...), "createdAt", "by")
	if err != nil {
		return err
	}
	author := r.Author()
	base := catalog.Suppression{CreatedAt: time.Now().UTC().Truncate(time.Microsecond), By: author.Actor}
	one := !f.Has(listField)
	var list []catalog.Suppression
	if one {
		list = []catalog.Suppression{f.suppression(f.Body, "", base)}
	} else {
		list = f.suppressions(base)
	}
	if err := f.Validated(nil); err != nil {
		return err
	}
	added, err := a.Lists.Suppress(project.ID, list, author, true)
	if err != nil {
		return err
	}
	status, message := http.StatusOK, "the suppression list has it already"
	if len(added) > 0 {
		status, message = http.StatusCreated, "suppressed"
	}
	if !one {
		r.Succeed(message, fmt.Appendf(nil, `{"added":%d,"present":%d}`, len(added), len(list)-len(added)))
		r.Ctx.Response.SetStatusCode(status)
		return nil
	}
	entry, err := a.suppressed(project.ID, &list[0])
	if err != nil {
		return err
	}
	r.Succeed(message, rowjson.AppendSuppression(nil, entry))
	r.Ctx.Response.SetStatusCode(status)
	return nil
}

// suppressed returns the entry as the list has it: one that was there keeps its note and time.
func (a *API) suppressed(project int64, s *catalog.Suppression) (*catalog.Suppression, error) {
	there, _, err := a.Lists.SuppressionPage(project, catalog.SuppressionQuery{Address: s.Address, Page: 1,
		Limit: catalog.MaxSuppressionsAtOnce})
	if err != nil {
		return nil, err
	}
	for i := range there {
		if there[i].Key() == s.Key() {
			return &there[i], nil
		}
	}
	return s, nil // somebody has removed it at once
}

// suppressions reads a list of entries and reports every problem, with its index.
func (f *form) suppressions(base catalog.Suppression) (list []catalog.Suppression) {
	for _, name := range suppressionFields {
		if f.Has(name) {
			f.Fail(name, "must not be given together with "+listField+": it belongs to one of them")
		}
	}
	rows, isList := f.Body.Values[listField].([]any)
	if !isList || len(rows) == 0 || len(rows) > catalog.MaxSuppressionsAtOnce {
		f.Fail(listField, fmt.Sprintf("must be a list of 1 to %d objects", catalog.MaxSuppressionsAtOnce))
		return nil
	}
	for i, row := range rows {
		at := web.Element(listField, i)
		o, isObject := row.(*web.Object)
		if !isObject {
			f.Fail(at, "must be an object")
			continue
		}
		list = append(list, f.suppression(o, at+".", base))
	}
	return list
}

// suppression reads an entry. path begins the names of its fields in problems.
func (f *form) suppression(o *web.Object, path string, base catalog.Suppression) catalog.Suppression {
	s := base
	text := func(name string, to *string) {
		value, given := o.Values[name]
		if *to, _ = value.(string); given && value != nil {
			if _, isText := value.(string); !isText {
				f.Fail(path+name, "must be a string")
			}
		}
	}
	var reason string
	text("address", &s.Address)
	text("reason", &reason)
	text("category", &s.Category)
	text("note", &s.Note)
	s.Reason = catalog.SuppressionReason(cmp.Or(reason, string(catalog.SuppressManual)))
	if value := o.Values["address"]; value == nil {
		f.Fail(path+"address", "is required")
	}
	for _, p := range s.Validate() {
		f.Fail(path+p.Path, p.Message)
	}
	return s
}

// release answers DELETE /projects/{projectId}/suppressions: the entries of an address, or some of them.
func (a *API) release(r *web.Request) error {
	if r.Dry {
		return refuseDry
	}
	q, problems := parseSuppressionFilter(r.Ctx.URI().QueryString(), web.DryRunParam)
	if q.Address == "" && len(problems) == 0 {
		problems.Addf("address", "is required: the address that may get mail again")
	}
	project, err := r.Project(a.Config, "projectId", problems...)
	if err != nil {
		return err
	}
	removed, err := a.Lists.Release(project.ID, q, r.Author())
	if err != nil {
		return err
	}
	if len(removed) == 0 {
		return catalog.NotFound("suppression")
	}
	r.Succeed("suppression removed", fmt.Appendf(nil, `{"removed":%d}`, len(removed)))
	return nil
}

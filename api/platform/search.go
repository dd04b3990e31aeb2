package platform

import (
	"slices"
	"strings"
	"unicode/utf8"

	"fingerpost/api/web"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
	"fingerpost/resolver/rowjson"
)

// labelParam begins the names of the parameters that filter by a label.
const labelParam = "label."

// A filter is what a list of projects or domains is searched for.
type filter struct {
	resolver.Search
	given bool // the request has a filter
}

// parseProjectFilter reads q, status and label.<name>.
func parseProjectFilter(raw []byte) (f filter, problems catalog.Problems) {
	labels := labelParams(raw)
	if len(labels) > catalog.MaxLabels {
		problems.Addf("label", "no project has more than %d labels", catalog.MaxLabels)
		labels = nil
	}
	q := web.ParseQuery(raw, append(labels, "q", "status")...)
	f.given = q.SearchText(&f.Text)
	if status, given := q.Values["status"]; given {
		if f.Status, f.given = status, true; !slices.Contains(catalog.Statuses, status) {
			q.Problems.Addf("status", "must be one of %s", strings.Join(catalog.Statuses, ", "))
		}
	}
	for _, name := range labels {
		if value, given := q.Values[name]; given {
			f.given = true
			f.readLabel(name, value, &q.Problems)
		}
	}
	return f, append(problems, q.Problems...)
}

// parseDomainFilter reads q.
func parseDomainFilter(raw []byte) (f filter, problems catalog.Problems) {
	q := web.ParseQuery(raw, "q")
	f.given = q.SearchText(&f.Text)
	return f, append(problems, q.Problems...)
}

// labelParams lists the parameters that filter by a label, each once.
func labelParams(raw []byte) (names []string) {
	web.EachParam(raw, func(rawName, _ []byte) {
		name, ok := web.Unescape(rawName)
		if !ok || !strings.HasPrefix(string(name), labelParam) || len(names) > catalog.MaxLabels {
			return
		}
		if !slices.Contains(names, string(name)) {
			names = append(names, string(name))
		}
	})
	return names
}

// readLabel reads the parameter label.<name>: the value must be equal.
func (f *filter) readLabel(param, value string, problems *catalog.Problems) {
	name := strings.TrimPrefix(param, labelParam)
	f.Labels = append(f.Labels, catalog.Label{Name: name, Value: value})
	if !utf8.ValidString(param + value) {
		problems.Addf(strings.ToValidUTF8(param, "\uFFFD"), "must be valid UTF-8")
		return
	}
	for _, message := range []string{catalog.CheckLabelName(name), catalog.CheckLabelValue(value)} {
		if message != "" {
			problems.Addf(param, "%s", message)
		}
	}
}

// searchQuery returns the resolver's form of the paging of a search. An order without a field is that of the ids, as in
// other lists; with neither, the best rows come first.
func searchQuery(p web.Paging, projects []int64) resolver.Query {
	q := p.Query(projects)
	if q.Sort == "" && p.Order != "" {
		q.Sort = "id"
	}
	return q
}

// streamed reports whether all rows of a search are asked for, in its own order.
func streamed(p web.Paging) bool { return !p.Paged && p.Sort == "" && p.Order == "" }

// streamFoundProjects answers GET /projects with a filter and without paging.
func (a *API) streamFoundProjects(r *web.Request, by resolver.Search) error {
	rows, err := a.Lists.FoundProjects(by, r.Key.ProjectIDs())
	if err != nil {
		return err
	}
	return a.stream(r, "projects found", rows, appendProject)
}

// listAllDomains answers GET /domains: those of all projects that the key covers.
func (a *API) listAllDomains(r *web.Request) error {
	raw := r.Ctx.URI().QueryString()
	f, problems := parseDomainFilter(raw)
	standing, bad := parseStandingFilter(raw)
	page, err := web.ParsePaging(raw, domainFields, append(problems, bad...))
	if err != nil {
		return err
	}
	if err := r.Permit(); err != nil {
		return err
	}
	if len(standing) > 0 {
		if f.IDs, err = a.selected(standing); err != nil {
			return err
		}
	}
	const message = "domains found"
	if streamed(page) {
		rows, err := a.Lists.FoundDomains(f.Search, r.Key.ProjectIDs())
		if err != nil {
			return err
		}
		return a.stream(r, message, rows, appendDomain)
	}
	rows, total, err := a.Lists.FindDomains(f.Search, searchQuery(page, r.Key.ProjectIDs()))
	if err != nil {
		return err
	}
	r.SucceedPage(message, web.AppendRows(rows, rowjson.AppendDomain), page, total)
	return nil
}

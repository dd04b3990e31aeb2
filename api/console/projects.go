package console

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"fingerpost/api/client"
	"fingerpost/configsrc/hclfile"
	"fingerpost/mailer"
	"fingerpost/resolver/catalog"
)

// A projectsView is a page of projects.
type projectsView struct {
	Query, Status, Label string
	Sort                 string // the field of the order, "-" before it for descending; "": by relevance or by id
	Rows                 []*projectRow
	Total, Page, Pages   int
	Counts               []statusCount
	Columns              []column
	Whole                bool   // the key sees the problems of all files
	Link                 string // of another page, without its number
	Problem              string
}

// mostFound is how many projects a search finds at most, the best ones.
const mostFound = 1000

// More reports whether a number of projects that a search has found may be smaller than that of those that match.
func (v projectsView) More(found int) bool { return v.Query != "" && found >= mostFound }

// A projectRow is a project with what a person looks for in the list.
type projectRow struct {
	client.ProjectSummary
	Mail     mailWord
	Problems int // errors in its file
}

// fewLabels is how many labels a row of the list shows; the others are behind "+2".
const fewLabels = 2

// FewLabels are the labels that the row shows.
func (p *projectRow) FewLabels() []string { l := p.labelTexts(); return l[:min(len(l), fewLabels)] }

// MoreLabels are the others.
func (p *projectRow) MoreLabels() []string { l := p.labelTexts(); return l[min(len(l), fewLabels):] }

func (p *projectRow) labelTexts() (texts []string) {
	for _, l := range p.Labels {
		texts = append(texts, l.Name+"="+l.Value)
	}
	return texts
}

// A mailWord says in a word how a project's mail is. Kind is that of a badge.
type mailWord struct{ Kind, Text string }

// A column is a heading of the list.
type column struct {
	Title string
	Link  string // sorts by it; "": cannot be sorted by
	Order string // the present order for aria-sort: "ascending", "descending" or ""
}

type statusCount struct {
	Status string // "": all
	N      int
	Link   string
}

const (
	pageRows = 25
	// maxSorted bounds the projects that a visit sorts: the API reads all rows for an order other than by id, which takes
	// the time of a page at this number. With more, people search.
	maxSorted = 5000
)

// sorts are the columns that the API can sort by, and their fields.
var sorts = []struct{ title, field string }{
	{"Name", "name"}, {"Slug", "slug"}, {"Primary domain", ""}, {"Status", "status"}, {"Labels", ""}, {"Mail", ""},
	{"Problems", ""}, {"Changed", "updatedAt"},
}

func (c *Console) listProjects(w http.ResponseWriter, r *http.Request, s *session) error {
	v := projectsView{Query: strings.TrimSpace(r.FormValue("q")), Status: r.FormValue("status"),
		Label: strings.TrimSpace(r.FormValue("label")), Page: number(r.FormValue("page"), 1), Whole: c.problemsOf(s).Whole}
	label := ""
	name, value, named := strings.Cut(v.Label, "=")
	if v.Label != "" && !named {
		v.Problem = "A label filter looks like plan=gold."
	} else if named {
		label = "label." + strings.TrimSpace(name)
	}
	api := c.api(s)
	filters := func(status, sort string, page, limit int) url.Values {
		field, descending := strings.CutPrefix(sort, "-")
		q := query("q", v.Query, "status", status, "page", itoa(page), "limit", itoa(limit), "sort", field)
		if descending {
			q.Set("order", "desc")
		}
		if label != "" {
			q.Set(label, strings.TrimSpace(value))
		}
		return q
	}
	for _, status := range append([]string{""}, catalog.Statuses...) {
		count := statusCount{Status: status, Link: link(Prefix+"projects", "q", v.Query, "label", v.Label, "status", status)}
		if page, err := api.ProjectPage(r.Context(), filters(status, "", 1, 1)); err == nil {
			count.N = page.Total
		}
		if v.Counts = append(v.Counts, count); status == v.Status {
			v.Total = count.N
		}
	}
	v.order(r.FormValue("sort"))
	found, err := api.ProjectSummaries(r.Context(), filters(v.Status, v.Sort, v.Page, pageRows))
	if client.Status(err, http.StatusBadRequest) {
		f := failureOf(err)
		v.Problem = f.Message
		for _, d := range f.Details {
			v.Problem = d.Field + " " + d.Message
		}
	} else if err != nil {
		return err
	}
	v.Total, v.Pages = found.Total, found.Pages
	v.Rows = c.projectRows(s, found.Rows)
	v.Link = pages("projects", "q", v.Query, "status", v.Status, "label", v.Label, "sort", v.Sort)
	return c.render(w, r, s, http.StatusOK, "projects", "Projects", v)
}

// order chooses the order of the list, and makes its headings. Without a wish, what is found by a search comes by
// relevance, and all else by name. With too many projects only the order of the API is left.
func (v *projectsView) order(wish string) {
	few := v.Total <= maxSorted
	field, _ := strings.CutPrefix(wish, "-")
	for _, s := range sorts {
		known := s.field != "" && few
		if known && s.field == field {
			v.Sort = wish
		}
	}
	if v.Sort == "" && v.Query == "" && few {
		v.Sort = "name"
	}
	for _, s := range sorts {
		h := column{Title: s.title}
		if s.title == "Problems" && !v.Whole {
			continue
		}
		if few && s.field != "" {
			to := s.field
			switch v.Sort {
			case s.field:
				h.Order, to = "ascending", "-"+s.field
			case "-" + s.field:
				h.Order = "descending"
			}
			h.Link = link(Prefix+"projects", "q", v.Query, "status", v.Status, "label", v.Label, "sort", to)
		}
		v.Columns = append(v.Columns, h)
	}
}

// projectRows adds what the list shows of each project that the API does not tell.
func (c *Console) projectRows(s *session, projects []client.ProjectSummary) (rows []*projectRow) {
	files := c.problemsOf(s)
	stopped := c.stoppedProjects()
	for i := range projects {
		row := &projectRow{ProjectSummary: projects[i]}
		row.Mail = mailWords[row.ProjectSummary.Mail]
		if stopped[row.ID] != nil {
			row.Mail = mailWord{"bad", "stopped"}
		}
		if files.Whole {
			row.Problems = errorsIn(files.Status.Problems, row.File)
		}
		rows = append(rows, row)
	}
	return rows
}

// stoppedProjects returns the projects whose mail has stopped. On an edge nothing is known: its authority sends.
func (c *Console) stoppedProjects() map[int64]*mailer.Stopped {
	all := map[int64]*mailer.Stopped{}
	if c.o.Mail != nil && !c.o.Edge {
		for _, x := range c.o.Mail.Stopped() {
			all[x.ProjectID] = &x
		}
	}
	return all
}

// mailWords are the words for what the API says of a project's mail.
var mailWords = map[string]mailWord{"ON": {"good", "on"}, "OFF": {"", "off"}, "NO_SERVER": {"warn", "no server"}}

// errorsIn counts the errors of a file.
func errorsIn(all hclfile.Diagnostics, file string) (n int) {
	for _, d := range all {
		if d.Severity == hclfile.Error && isFile(d.File, file) {
			n++
		}
	}
	return n
}

// isFile reports whether a problem's file, as messages name it, is the one that the API names below the config folder.
func isFile(shown, file string) bool {
	return file != "" && (shown == file || strings.HasSuffix(shown, "/"+file))
}

// firstError is the first error of a file, nil if it has none.
func firstError(all hclfile.Diagnostics, file string) *hclfile.Diagnostic {
	i := slices.IndexFunc(all, func(d hclfile.Diagnostic) bool {
		return d.Severity == hclfile.Error && isFile(d.File, file)
	})
	if i < 0 {
		return nil
	}
	return &all[i]
}

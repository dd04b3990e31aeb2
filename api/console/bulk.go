package console

import (
	"encoding/csv"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"fingerpost/api/client"
	"fingerpost/resolver/catalog"
)

// maxBulk is the most projects that are changed or exported at once, as in the API.
const maxBulk = 1000

// bulk answers the form below the list of projects: it shows the diff of a change of all that are ticked, or sends them
// as a table.
func (c *Console) bulk(w http.ResponseWriter, r *http.Request, s *session) error {
	if r.PostFormValue("do") == "export" {
		rows, err := c.found(r, s)
		if err != nil {
			return err
		}
		return writeTable(w, rows)
	}
	if !c.may(s).Edit {
		return c.refuseForm(s.Key(), "project", 1)
	}
	set := client.ProjectsSet{Projects: r.PostForm["slug"], Status: r.PostFormValue("status")}
	if r.PostFormValue("all") != "" {
		rows, err := c.found(r, s)
		if err != nil {
			return err
		}
		set.Projects = nil
		for _, p := range rows {
			set.Projects = append(set.Projects, p.Slug)
		}
	}
	var err error
	if set.Labels, err = labelLines(r.PostFormValue("labels")); err != nil {
		return err
	}
	switch {
	case len(set.Projects) == 0:
		return bulkRefused("No project is ticked.")
	case set.Status == "" && len(set.Labels) == 0:
		return bulkRefused("Nothing was changed: choose a status, or write a label.")
	}
	d := &draft{Title: titleOf(set.Projects), Back: Prefix + "projects", kind: "project", projects: set.Projects,
		edit: *set.Edit()}
	if err := c.prepare(r.Context(), s, d); err != nil {
		return err
	}
	if d.Diff == "" {
		return bulkRefused("Nothing was changed: the projects have this status and these labels already.")
	}
	return seeOther(w, r, d.page())
}

// titleOf names the projects of a bulk change.
func titleOf(slugs []string) string {
	if len(slugs) == 1 {
		return slugs[0]
	}
	return fmt.Sprintf("%d projects", len(slugs))
}

func bulkRefused(message string) *failure {
	return &failure{Status: http.StatusBadRequest, Message: message}
}

// found returns the projects that the form's search finds, or those that are ticked.
func (c *Console) found(r *http.Request, s *session) (rows []client.ProjectSummary, err error) {
	if r.PostFormValue("all") == "" {
		return c.ticked(r, s)
	}
	q := query("q", strings.TrimSpace(r.PostFormValue("q")), "status", r.PostFormValue("found"), "limit", itoa(bulkPage))
	if name, value, named := strings.Cut(r.PostFormValue("label"), "="); named {
		q.Set("label."+strings.TrimSpace(name), strings.TrimSpace(value))
	}
	for page := 1; ; page++ {
		q.Set("page", itoa(page))
		found, err := c.api(s).ProjectSummaries(r.Context(), q)
		if err != nil {
			return nil, err
		}
		rows = append(rows, found.Rows...)
		switch {
		case found.Total > maxBulk:
			return nil, bulkRefused(fmt.Sprintf("At most %d projects at once. Search for fewer.", maxBulk))
		case page >= found.Pages:
			return rows, nil
		}
	}
}

// maxTicked is the most ticked projects that are exported: those of a page. Each costs a search.
const maxTicked = pageRows

// ticked finds the projects that are ticked, with what the list shows of them.
func (c *Console) ticked(r *http.Request, s *session) (rows []client.ProjectSummary, err error) {
	slugs := r.PostForm["slug"]
	if len(slugs) > maxTicked {
		return nil, bulkRefused(fmt.Sprintf("At most %d ticked projects are exported. Search, and take all that were found.",
			maxTicked))
	}
	for _, slug := range slugs {
		found, err := c.api(s).ProjectSummaries(r.Context(), query("q", slug, "page", "1", "limit", itoa(bulkPage)))
		if err != nil {
			return nil, err
		}
		is := func(p client.ProjectSummary) bool { return p.Slug == slug }
		at := slices.IndexFunc(found.Rows, is)
		if at < 0 { // a table that lacks a row would be taken for the whole
			return nil, bulkRefused("The project " + slug + " was not found. Search again.")
		}
		rows = append(rows, found.Rows[at])
	}
	return rows, nil
}

// bulkPage is how many projects are read at a time.
const bulkPage = 100

// labelLines reads labels, one name=value a line; -name removes one.
func labelLines(text string) (map[string]*string, error) {
	labels := map[string]*string{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		name, removes := strings.CutPrefix(line, "-")
		left, value, named := strings.Cut(line, "=")
		switch {
		case line == "":
		case named:
			value = strings.TrimSpace(value)
			labels[strings.TrimSpace(left)] = &value
		case removes:
			labels[strings.TrimSpace(name)] = nil
		default:
			return nil, bulkRefused(fmt.Sprintf("The label %q is neither name=value nor -name, which removes one.", line))
		}
	}
	return labels, nil
}

// writeTable sends projects in the form that "fingerpost import --csv" reads.
func writeTable(w http.ResponseWriter, rows []client.ProjectSummary) error {
	var names []string
	for _, p := range rows {
		for _, l := range p.Labels {
			if !slices.Contains(names, l.Name) {
				names = append(names, l.Name)
			}
		}
	}
	slices.Sort(names)
	w.Header().Set("Content-Type", "text/csv; charset=utf-8")
	w.Header().Set("Content-Disposition", `attachment; filename="projects.csv"`)
	table := csv.NewWriter(w)
	_ = table.Write(append([]string{"slug", "name", "status", "domain"}, names...)) // errors: see Flush
	for _, p := range rows {
		line := []string{p.Slug, inert(p.Name), p.Status, inert(p.PrimaryDomain)}
		for _, name := range names {
			i := slices.IndexFunc(p.Labels, func(l catalog.Label) bool { return l.Name == name })
			if i < 0 {
				line = append(line, "")
				continue
			}
			line = append(line, inert(p.Labels[i].Value))
		}
		_ = table.Write(line)
	}
	table.Flush()
	return nil // with an error the person has gone
}

// inert keeps a spreadsheet from taking a text for a formula, which could send what stands beside it to somebody.
func inert(text string) string {
	if text != "" && strings.ContainsRune("=+-@\t\r", rune(text[0])) {
		return "'" + text
	}
	return text
}

package console

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/net/idna"

	"fingerpost/api/client"
	"fingerpost/api/console/form"
	"fingerpost/api/console/say"
	"fingerpost/resolver/catalog"
)

// A lookUpView is what is known of a domain.
type lookUpView struct {
	Asked      string             // what was typed or pasted
	Domain     string             // that it has
	Failed     *failure           // of a refusal
	Message    string             // why it is refused
	Answer     *client.Resolution // nil: refused
	Exact      bool
	Records    []recordRow
	Cached     string // "yes", "no" or "": not known
	Groups     []valueGroup
	Flat, JSON string
	Change     *told // the last one; nil: none
	Example    string
	Miss       *missView  // what to do where no project has the domain
	Box        *boxAnswer // what the text is next to a domain, or instead of one; nil: a domain alone
	Origin     string     // of this server, for the link to share
	API        string     // of the API, for the command
}

// A missView helps where no project has a domain.
type missView struct {
	Near     []string
	Word     string // to search for in projects
	To       string // a search for the project to add it to
	Projects []catalog.Project
	Like     []catalog.Project // that have the text somewhere
	Mails    []mailRow
}

// A recordRow is a name under which a domain could be found.
type recordRow struct {
	Name     string
	Record   *catalog.Domain  // nil: there is none
	Project  *catalog.Project // nil: not known
	Decides  bool
	Shadowed bool // it would match if the deciding one were not there
}

// A valueGroup is a table of values with their origins.
type valueGroup struct {
	Title string
	Rows  []valueRow
}

type valueRow struct {
	Name, Value, Origin string
	InFile              bool // Origin is a line of a file
	Link                string
	line                int
}

// linkLines makes links of the origins that are lines of a project's own block, which its page shows.
func linkLines(groups []valueGroup, page string) {
	for i := range groups {
		for j := range groups[i].Rows {
			if row := &groups[i].Rows[j]; row.InFile {
				row.Link = page + "#L" + itoa(row.line)
			}
		}
	}
}

// lookUp says which project a domain leads to, and why.
func (c *Console) lookUp(w http.ResponseWriter, r *http.Request, s *session) error {
	asked := r.FormValue("domain")
	v := lookUpView{Asked: asked, Domain: form.Host(asked), Origin: origin(r), API: c.apiURL(r)}
	api := c.api(s)
	if strings.TrimSpace(asked) == "" {
		v.Example = example(r.Context(), api)
		return c.render(w, r, s, http.StatusOK, "lookup", "Look-up", v)
	}
	if v.Box = c.recognize(r.Context(), s, asked); v.Box.leads(w, r) {
		return nil
	}
	if v.Box != nil && v.Box.Address == nil {
		return c.render(w, r, s, http.StatusOK, "lookup", "Look-up: "+strings.TrimSpace(asked), v)
	}
	if c.o.Cached != nil {
		v.Cached = say.Text(c.o.Cached(v.Domain)) // before the question puts it there
	}
	if a, err := api.Resolve(r.Context(), v.Domain); err != nil {
		v.Failed, v.Cached = hidden(failureOf(err)), ""
		if v.Message = v.Failed.Message; len(v.Failed.Details) > 0 {
			v.Message = v.Failed.Details[0].Message
		}
	} else {
		v.Answer, v.JSON = &a, indented(a.Data)
	}
	nowhere := v.Failed != nil && (v.Failed.Code == catalog.CodeNotFound || v.Failed.Code == catalog.CodeValidation)
	if nowhere && v.Box == nil {
		if v.Box = c.named(r.Context(), s, asked); v.Box.leads(w, r) {
			return nil
		}
	}
	switch {
	case v.Box != nil && v.Box.Project != nil:
	case nowhere && v.Box != nil && v.Box.Address != nil && v.Box.Address.Total > 0:
		v.Failed = nil // the recipient's own domain: that no project has it is no news
	case v.Answer != nil:
		v.candidates(r.Context(), api)
		c.explain(r.Context(), s, &v)
	case nowhere:
		v.candidates(r.Context(), api)
		v.missed(r.Context(), api, c.may(s).Edit && v.Failed.Code == catalog.CodeNotFound, r.FormValue("to"))
		switch {
		case v.Box == nil:
			v.Miss.near(r.Context(), c, s, asked)
		case v.Box.Address != nil: // no mail to it: perhaps its domain is misspelt
			name, _, _ := strings.Cut(v.Box.Address.Address, "@")
			v.Miss.near(r.Context(), c, s, name+"@")
		}
	default:
		v.candidates(r.Context(), api)
	}
	return c.render(w, r, s, http.StatusOK, "lookup", "Look-up: "+cmp.Or(v.Domain, asked), v)
}

// hidden makes the refusal of a domain of a project that the key does not reach that of a domain that nobody has: a key
// learns nothing of the others' projects.
func hidden(f *failure) *failure {
	if f.Code == catalog.CodeForbidden && f.Requires == "" {
		return &failure{Status: http.StatusNotFound, Code: catalog.CodeNotFound, Message: "no project for this domain"}
	}
	return f
}

// origin is the address of this server as the browser has it, as far as the server knows.
func origin(r *http.Request) string {
	if r.TLS != nil {
		return "https://" + r.Host
	}
	return "http://" + r.Host
}

// apiURL is the address of the API for the browser of a request.
func (c *Console) apiURL(r *http.Request) string {
	if c.o.APIURL == nil {
		return origin(r)
	}
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = strings.Trim(r.Host, "[]")
	}
	return c.o.APIURL(host)
}

const (
	maxNear = 5  // names that are shown
	maxAdds = 8  // projects to choose from
	nearOf  = 50 // names of a search that are looked at
)

// missed looks for names near to one that nobody has, and for the project that it may be added to.
func (v *lookUpView) missed(ctx context.Context, api *client.Client, adds bool, to string) {
	m := &missView{To: strings.TrimSpace(to)}
	v.Miss = m
	var names []string
	owners := map[string]int64{}
	for _, piece := range append(form.Pieces(v.Domain), "") { // "": of few domains, all are looked at
		page, err := api.DomainPage(ctx, query("q", piece, "limit", itoa(nearOf)))
		if err != nil {
			continue
		}
		for i := range page.Rows {
			names = append(names, page.Rows[i].Name)
			owners[page.Rows[i].Name] = page.Rows[i].ProjectID
		}
	}
	m.Near = form.Near(v.Domain, names, maxNear)
	if labels := strings.Split(v.Domain, "."); len(labels) > 1 {
		m.Word = labels[len(labels)-2]
	}
	if !adds {
		return
	}
	if m.To != "" {
		if page, err := api.ProjectPage(ctx, query("q", m.To, "page", "1", "limit", itoa(maxAdds))); err == nil {
			m.Projects = page.Rows
		}
		return
	}
	for _, n := range m.Near {
		id := owners[n]
		if slices.ContainsFunc(m.Projects, func(p catalog.Project) bool { return p.ID == id }) {
			continue
		}
		if p, err := api.ProjectByID(ctx, id); err == nil {
			m.Projects = append(m.Projects, p)
		}
	}
}

// example returns a domain that can be looked up, "" if there is none.
func example(ctx context.Context, api *client.Client) string {
	if page, err := api.DomainPage(ctx, query("page", "1", "limit", "10")); err == nil {
		for _, d := range page.Rows {
			if d.Active && !d.Wildcard() {
				return d.Name
			}
		}
	}
	return ""
}

// maxCandidates bounds the names above a domain that are looked for.
const maxCandidates = 12

// candidates looks for all records that could match: the name, and the wildcards above it, the longest first.
func (v *lookUpView) candidates(ctx context.Context, api *client.Client) {
	name := v.Domain
	if ascii, err := idna.Lookup.ToASCII(name); err == nil {
		name = ascii
	}
	if v.Failed != nil && v.Failed.Code == catalog.CodeValidation || name == "" {
		return
	}
	names := []string{name}
	for rest := name; len(names) < maxCandidates; {
		_, above, found := strings.Cut(rest, ".")
		if !found {
			break
		}
		names, rest = append(names, "*."+above), above
	}
	decided := false
	for _, n := range names {
		row := recordRow{Name: n}
		if page, err := api.DomainPage(ctx, query("q", n, "limit", "20")); err == nil {
			for i := range page.Rows {
				if page.Rows[i].Name == n {
					row.Record = &page.Rows[i]
				}
			}
		}
		if row.Record != nil {
			if p, err := api.ProjectByID(ctx, row.Record.ProjectID); err == nil {
				row.Project = &p
			}
			row.Decides, row.Shadowed = !decided, decided
			decided = true
		}
		v.Records = append(v.Records, row)
	}
	v.Exact = v.Answer != nil && v.Answer.Matched == name
}

// explain adds where each value comes from, the other form, and the last change.
func (c *Console) explain(ctx context.Context, s *session, v *lookUpView) {
	api := c.api(s)
	if flat, err := api.ResolveFlat(ctx, v.Domain); err == nil {
		v.Flat = secretInFlat.ReplaceAllString(indented(flat), `$1"(secret)"`)
	}
	if x, err := explained(ctx, api, v.Answer.ID); err == nil {
		v.Groups = groupsOf(x)
		linkLines(v.Groups, projectPage(v.Answer.ID))
	}
	if page, err := api.AuditPage(ctx, query("projectId", v.Answer.ID, "limit", "1")); err == nil && len(page.Rows) > 0 {
		v.Change = &c.tell(ctx, s, page.Rows)[0]
	}
}

// secretInFlat finds the secret in the flat answer: people share their screens.
var secretInFlat = regexp.MustCompile(`("jwtSecret": )"(?:[^"\\]|\\.)*"`)

// explained reads a project in full, with the origin of each value.
func explained(ctx context.Context, api *client.Client, project int64) (*catalog.Explained, error) {
	document, err := api.Explain(ctx, project)
	if err != nil {
		return nil, err
	}
	return client.ReadExplained(document)
}

// groupsOf puts the values of a project into tables, each with its origin.
func groupsOf(x *catalog.Explained) (groups []valueGroup) {
	table := func(title string, fields []catalog.Field, from catalog.Origins) {
		g := valueGroup{Title: title}
		for _, f := range fields {
			row := valueRow{Name: f.Name, Value: form.TextOf(f)}
			switch f.Value.(type) {
			case *catalog.Secret:
				row.Value = "(secret)"
			case *[]catalog.Label, *[]string:
				row.Value = strings.ReplaceAll(row.Value, "\n", ", ")
			}
			if o, told := from[f.Name]; told {
				row.Origin, row.InFile, row.line = form.Inherited("defaults", o), o.File != "" && !o.Defaults, o.Line
			}
			g.Rows = append(g.Rows, row)
		}
		groups = append(groups, g)
	}
	p := &x.Config.Project
	id, uuid := int(p.ID), p.UUID.String()
	table("Project", append(form.NameFirst(p.AllFields()), catalog.Field{Name: "id", Value: &id},
		catalog.Field{Name: "uuid", Value: &uuid}), x.Project)
	table("Service settings", x.Config.Service.Fields(), x.Service)
	table("Auth settings", x.Config.Auth.Fields(), x.Auth)
	if x.Config.SMTP != nil {
		table("SMTP config", x.Config.SMTP.Fields(), x.SMTP)
	}
	return groups
}

// indented returns JSON on lines that people can read.
func indented(raw json.RawMessage) string {
	var out bytes.Buffer
	_ = json.Indent(&out, raw, "", "  ")
	return out.String()
}

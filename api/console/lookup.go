package console

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"golang.org/x/net/idna"

	"fingerpost/resolver/catalog"
)

// A lookUpView is what is known of a domain.
type lookUpView struct {
	Domain     string
	Code       string // of a refusal
	Message    string
	Answer     object // of resolve
	Exact      bool
	Records    []recordRow
	Cached     string // "yes", "no" or "": not known
	Full       object
	Groups     []valueGroup
	Flat, JSON string
	Change     object // the last one, of the audit trail
	Example    string
}

// A recordRow is a name under which a domain could be found.
type recordRow struct {
	Name     string
	Record   object // nil: there is none
	Project  object
	Decides  bool
	Shadowed bool // it would match if the deciding one were not there
}

// A valueGroup is a table of values with their origins.
type valueGroup struct {
	Title string
	Rows  []valueRow
}

type valueRow struct{ Name, Value, Origin, Kind string }

const (
	resolvePath  = "/api/platform/projects/resolve"
	projectsPath = "/api/platform/projects"
	domainsPath  = "/api/platform/domains"
	auditPath    = "/api/platform/audit"
	keysPath     = "/api/platform/keys"
)

// lookUp answers the start page: which project a domain leads to, and why.
func (c *Console) lookUp(w http.ResponseWriter, r *http.Request, s *session) {
	v := lookUpView{Domain: strings.TrimSpace(r.FormValue("domain"))}
	if v.Domain == "" {
		if a, err := c.ask(r.Context(), s, get(domainsPath, "page", "1", "limit", "10")); err == nil {
			for _, d := range a.List() {
				if name := text(d["domain"]); d["active"] == true && !strings.HasPrefix(name, "*.") {
					v.Example = name
					break
				}
			}
		}
		c.render(w, r, s, http.StatusOK, "lookup", "Look-up", v)
		return
	}
	if c.o.Cached != nil {
		v.Cached = text(c.o.Cached(v.Domain)) // before the question puts it there
	}
	a, err := c.ask(r.Context(), s, get(resolvePath, "domain", v.Domain))
	if f, is := errors.AsType[*failure](err); is {
		if v.Code, v.Message, v.Cached = f.Code, f.Message, ""; len(f.Details) > 0 {
			v.Message = f.Details[0].Message
		}
	} else if err != nil {
		c.failed(w, r, s, err)
		return
	} else {
		v.Answer = a.Object()
		v.JSON = indented(a.Data)
	}
	c.candidates(r, s, &v)
	if v.Answer != nil {
		c.explain(r, s, &v)
	}
	c.render(w, r, s, http.StatusOK, "lookup", "Look-up: "+v.Domain, v)
}

// maxCandidates bounds the names above a domain that are looked for.
const maxCandidates = 12

// candidates looks for all records that could match: the name, and the wildcards above it, the longest first.
func (c *Console) candidates(r *http.Request, s *session, v *lookUpView) {
	name := strings.ToLower(strings.TrimSuffix(v.Domain, "."))
	if host, _, found := strings.Cut(name, ":"); found {
		name = host
	}
	if ascii, err := idna.Lookup.ToASCII(name); err == nil {
		name = ascii
	}
	if v.Code == "VALIDATION_ERROR" || name == "" {
		return
	}
	matched := text(asObject(v.Answer["matchedDomain"])["domain"])
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
		if a, err := c.ask(r.Context(), s, get(domainsPath, "q", n, "limit", "20")); err == nil {
			for _, d := range a.List() {
				if text(d["domain"]) == n {
					row.Record = d
				}
			}
		}
		if row.Record != nil {
			if a, err := c.ask(r.Context(), s, get(projectsPath+"/"+text(row.Record["projectId"]))); err == nil {
				row.Project = a.Object()
			}
			row.Decides, row.Shadowed = !decided, decided
			decided = true
		}
		v.Records = append(v.Records, row)
	}
	v.Exact = matched == name
}

// explain adds where each value comes from, the other form, and the last change.
func (c *Console) explain(r *http.Request, s *session, v *lookUpView) {
	id := text(asObject(v.Answer["project"])["id"])
	if a, err := c.ask(r.Context(), s, get(resolvePath, "domain", v.Domain, "form", "flat")); err == nil {
		if flat := asObject(a.Object()["authSettings"]); flat["jwtSecret"] != nil {
			flat["jwtSecret"] = "(secret)" // people share their screens
		}
		v.Flat = indented(a.Data)
	}
	if a, err := c.ask(r.Context(), s, get(projectsPath+"/"+id, "view", "full")); err == nil {
		v.Full = a.Object()
		v.Groups = groupsOf(v.Full)
	}
	if a, err := c.ask(r.Context(), s, get(auditPath, "projectId", id, "limit", "1")); err == nil && len(a.List()) > 0 {
		v.Change = a.List()[0]
	}
}

// groupsOf puts the values of view=full into tables, each with its origin.
func groupsOf(full object) (groups []valueGroup) {
	origin := asObject(full["origin"])
	defaults := asObject(origin["defaults"])
	table := func(title, part string, values, from object, fields ...string) {
		g := valueGroup{Title: title}
		for _, name := range fields {
			value, has := values[name]
			if !has && from[name] == nil {
				continue
			}
			row := valueRow{Name: name, Value: text(value)}
			if name == "labels" {
				labels := field{control: control{Field: catalog.Field{Name: name}, Type: "labels"}}
				row.Value = strings.ReplaceAll(shown(labels, values), "\n", ", ")
			}
			if !has {
				row.Value = "(secret)"
			}
			row.Origin, row.Kind = place(from[name])
			if row.Kind == "defaults" {
				if at, kind := place(asObject(defaults[part])[name]); kind == "file" {
					row.Origin = "defaults, " + at
				}
			}
			g.Rows = append(g.Rows, row)
		}
		if len(g.Rows) > 0 {
			groups = append(groups, g)
		}
	}
	table("Project", "", full, origin, "name", "slug", "status", "description", "labels", "id", "uuid")
	table("Service settings", "serviceSettings", asObject(full["serviceSettings"]), asObject(origin["serviceSettings"]),
		catalog.FieldNames(new(catalog.ServiceSettings).Fields())...)
	table("Auth settings", "authSettings", asObject(full["authSettings"]), asObject(origin["authSettings"]),
		catalog.FieldNames(new(catalog.AuthSettings).Fields())...)
	table("SMTP config", "smtpConfig", asObject(full["smtpConfig"]), asObject(origin["smtpConfig"]),
		catalog.FieldNames(new(catalog.SMTPConfig).Fields())...)
	return groups
}

// place returns an origin as people read it: a file with its line, "defaults" or "built in".
func place(v any) (where, kind string) {
	switch v := v.(type) {
	case object:
		return text(v["file"]) + ":" + text(v["line"]), "file"
	case string:
		if v == "built-in" {
			return "built in", v
		}
		return v, v
	}
	return "", ""
}

func indented(v any) string {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	_ = e.Encode(v)
	return out.String()
}

// A projectsView is a page of projects.
type projectsView struct {
	Query, Status, Label string
	Rows                 []object
	Total, Page, Pages   int
	Counts               []statusCount
	Link                 string // of another page, without its number
	Problem              string
}

type statusCount struct {
	Status string // "": all
	N      int
	Link   string
}

const pageRows = 25

func (c *Console) listProjects(w http.ResponseWriter, r *http.Request, s *session) {
	v := projectsView{Query: strings.TrimSpace(r.FormValue("q")), Status: r.FormValue("status"),
		Label: strings.TrimSpace(r.FormValue("label")), Page: number(r.FormValue("page"), 1)}
	label := ""
	name, value, named := strings.Cut(v.Label, "=")
	if v.Label != "" && !named {
		v.Problem = "A label filter looks like plan=gold."
	} else if named {
		label = "label." + strings.TrimSpace(name)
	}
	filters := func(status string) []string {
		f := []string{"q", v.Query, "status", status}
		if label != "" {
			f = append(f, label, strings.TrimSpace(value))
		}
		return f
	}
	a, err := c.ask(r.Context(), s, get(projectsPath, append(filters(v.Status), "page", itoa(v.Page), "limit",
		itoa(pageRows))...))
	if f, is := errors.AsType[*failure](err); is && f.Status == http.StatusBadRequest {
		v.Problem = f.Message
		for _, d := range f.Details {
			v.Problem = d.Field + " " + d.Message
		}
	} else if err != nil {
		c.failed(w, r, s, err)
		return
	} else {
		v.Rows, v.Total, v.Pages = a.List(), a.Total, a.Pages
	}
	for _, status := range append([]string{""}, catalog.Statuses...) {
		count := statusCount{Status: status, Link: link(Prefix+"projects", "q", v.Query, "label", v.Label, "status", status)}
		if a, err := c.ask(r.Context(), s, get(projectsPath, append(filters(status), "page", "1", "limit",
			"1")...)); err == nil {
			count.N = a.Total
		}
		v.Counts = append(v.Counts, count)
	}
	q := url.Values{}
	for name, value := range map[string]string{"q": v.Query, "status": v.Status, "label": v.Label} {
		if value != "" {
			q.Set(name, value)
		}
	}
	v.Link = Prefix + "projects?" + q.Encode() + "&page="
	c.render(w, r, s, http.StatusOK, "projects", "Projects", v)
}

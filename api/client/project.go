package client

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"fingerpost/resolver/catalog"
	"fingerpost/resolver/hostname"
)

// A Project is a project as the server has it, with its effective settings.
type Project struct {
	catalog.ProjectConfig
	// Flat: the settings include those that only the flat form of resolve returns.
	Flat bool
	// Full: the labels of the project, and the certificates and proofs of its domains, are known.
	Full bool
	// Mail: SMTP config and templates are known. Without it they are empty.
	Mail bool
	// JWTSecret: the server has a secret. Its value is not kept.
	JWTSecret bool
	Untold    Untold
	// Shared are the default templates, which the server lists with each project.
	Shared []catalog.Template
	// Odd lists, for people, what could not be understood.
	Odd []string
}

// Untold are the fields of templates that a server does not return, by code: a service may have no call for a
// template's bodies, and no maxAge and locales.
type Untold map[string][]string

// Bodies reports whether the server does not return the template's bodies.
func (u Untold) Bodies(code string) bool { return slices.Contains(u[code], "bodyHtml") }

// Bodiless counts the templates whose bodies the server does not return.
func (u Untold) Bodiless() (n int) {
	for code := range u {
		if u.Bodies(code) {
			n++
		}
	}
	return n
}

const projectsPath = "/api/platform/projects"

func projectPath(id int64, rest string) string {
	return projectsPath + "/" + strconv.FormatInt(id, 10) + rest
}

// Projects lists all that the key may see.
func (c *Client) Projects(ctx context.Context) ([]catalog.Project, error) {
	rows, err := c.list(ctx, projectsPath)
	if err != nil {
		return nil, err
	}
	projects, err := eachRow(rows, row.project)
	if err != nil {
		return nil, fmt.Errorf("GET %s: %w", projectsPath, err)
	}
	return projects, nil
}

// ProjectPage reads one page of the projects that the key may see. filters are those of the API's reference.
func (c *Client) ProjectPage(ctx context.Context, filters url.Values) (Page[catalog.Project], error) {
	return rowPage(ctx, c.platform, projectsPath, filters, row.project)
}

// A ProjectSummary is a project, with its labels, and what a list shows of it.
type ProjectSummary struct {
	catalog.Project
	PrimaryDomain string // the first one where none is primary; "": there is none
	Domains       int
	Mail          string // "ON", "OFF" or "NO_SERVER"
	File          string // that declares it, below the config folder; "": not known
}

// ProjectSummaries is ProjectPage with more about each project.
func (c *Client) ProjectSummaries(ctx context.Context, filters url.Values) (Page[ProjectSummary], error) {
	filters = maps.Clone(filters)
	filters.Set("view", "summary")
	return rowPage(ctx, c.platform, projectsPath, filters, row.summary)
}

// ProjectByID finds one project, without its labels.
func (c *Client) ProjectByID(ctx context.Context, id int64) (catalog.Project, error) {
	var x row
	if _, err := c.platform.view(ctx, projectPath(id, ""), &x); err != nil {
		return catalog.Project{}, err
	}
	return x.project()
}

// DomainPage reads one page of the domains of all projects. filters are those of the API's reference.
func (c *Client) DomainPage(ctx context.Context, filters url.Values) (Page[catalog.Domain], error) {
	return rowPage(ctx, c.platform, "/api/platform/domains", filters, row.domain)
}

// A Block is a project's block as it stands in its file, without its secrets.
type Block struct {
	File string // below the config folder
	Line int    // of the first line
	Text string // whole lines
}

// Block reads a project's block.
func (c *Client) Block(ctx context.Context, project int64) (b Block, err error) {
	_, err = c.platform.view(ctx, projectPath(project, "/block"), &b)
	return b, err
}

// ProjectBySlug finds one project. One that does not exist is an *Error with status 404.
func (c *Client) ProjectBySlug(ctx context.Context, slug string) (catalog.Project, error) {
	var x row
	path := projectsPath + "/by-slug/" + url.PathEscape(slug)
	if _, err := c.platform.view(ctx, path, &x); err != nil {
		return catalog.Project{}, err
	}
	if x.number("id") <= 0 { // a service may leave the id out here; its list has it
		all, err := c.Projects(ctx)
		if i := slices.IndexFunc(all, func(p catalog.Project) bool { return p.Slug == slug }); i >= 0 {
			return all[i], nil
		}
		if err != nil {
			return catalog.Project{}, err
		}
	}
	p, err := x.project()
	if err != nil {
		err = fmt.Errorf("GET %s: %w", path, err)
	}
	return p, err
}

// Project reads everything that belongs to a project from Projects.
func (c *Client) Project(ctx context.Context, p *catalog.Project) (*Project, error) {
	f := &Project{Untold: Untold{}}
	f.Project = *p
	f.Service, f.Auth = catalog.NewServiceSettings(), catalog.NewAuthSettings()
	rows, err := c.list(ctx, projectPath(p.ID, "/domains"))
	if err != nil {
		return nil, err
	}
	for _, x := range rows {
		d, err := x.domain()
		if err != nil {
			return nil, fmt.Errorf("GET %s: %w", projectPath(p.ID, "/domains"), err)
		}
		d.ProjectID = p.ID
		if name, err := hostname.ParseDomain(d.Name); err != nil {
			f.Odd = append(f.Odd, fmt.Sprintf("domain %s %v", Printable(strconv.Quote(d.Name)), err))
		} else {
			d.Name = name
		}
		f.Domains = append(f.Domains, d)
	}
	if err := c.settings(ctx, p.ID, "/service-settings", f.Service.Fields(), serviceFields); err != nil {
		return nil, err
	}
	if err := c.settings(ctx, p.ID, "/auth-settings", f.Auth.Fields(), authFields); err != nil {
		return nil, err
	}
	if err := c.full(ctx, f); err != nil { // first: it tells which domains are answered
		return nil, err
	}
	if err := c.flat(ctx, f); err != nil {
		return nil, err
	}
	return f, c.mailOf(ctx, f)
}

func (c *Client) settings(ctx context.Context, project int64, rest string, fields []catalog.Field,
	names []string) error {
	var x row
	path := projectPath(project, rest)
	if _, err := c.platform.call(ctx, http.MethodGet, path, nil, &x); err != nil {
		return err
	}
	if err := x.fill(fields, names); err != nil {
		return fmt.Errorf("GET %s: %w", path, err)
	}
	return nil
}

// flat adds what only the flat form of resolve returns. That form shows a project through its active and verified domains only, and
// not while the project is suspended.
func (c *Client) flat(ctx context.Context, f *Project) error {
	if c.nestedOnly.Load() || f.Project.Status == catalog.StatusSuspended {
		return nil
	}
	for i := range f.Domains {
		d := &f.Domains[i]
		if d.NotVerified(nil) != 0 || d.Wildcard() {
			continue
		}
		var x struct {
			Project                       row
			AuthSettings, ServiceSettings row
		}
		path := projectsPath + "/resolve?form=flat&domain=" + d.Name
		_, err := c.platform.callAgain(ctx, http.MethodGet, path, nil, &x, http.StatusTooManyRequests)
		var refused *Error
		switch {
		case errors.As(err, &refused) && refused.Code == catalog.CodeDomainNotVerified: // another domain may be
			continue
		case Status(err, http.StatusServiceUnavailable): // also where the server cannot open the project's secret
			return nil
		case Status(err, http.StatusBadRequest):
			c.nestedOnly.Store(true)
			return nil
		case unproven(err):
			continue // another one may be proven
		case Status(err, http.StatusForbidden, http.StatusNotFound):
			return nil
		case err != nil:
			return err
		}
		if _, isFlat := x.AuthSettings["jwtExpiresIn"]; !isFlat {
			c.nestedOnly.Store(true)
			return nil
		}
		if x.Project.text("slug") != f.Project.Slug {
			return nil
		}
		f.Flat, f.JWTSecret = true, x.AuthSettings.text("jwtSecret") != ""
		if err = x.AuthSettings.fill(f.Auth.Fields(), FlatFields(catalog.KindAuthSettings)); err == nil {
			err = x.ServiceSettings.fill(f.Service.Fields(), FlatFields(catalog.KindServiceSettings))
		}
		return err
	}
	return nil
}

// unproven reports whether the server does not answer for a domain because of its proof.
func unproven(err error) bool {
	e, is := errors.AsType[*Error](err)
	return is && e.Code == catalog.CodeDomainNotVerified
}

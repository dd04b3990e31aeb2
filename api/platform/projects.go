package platform

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"fingerpost/api/web"
	"fingerpost/configsrc/names"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
	"fingerpost/resolver/hostname"
	"fingerpost/resolver/rowjson"
)

// projectFields are the fields that sort a list of projects.
var projectFields = []string{"id", "uuid", "name", "slug", "description", "status", "createdAt", "updatedAt"}

// listProjects answers GET /projects. A key that is bound to some projects sees those only.
func (a *API) listProjects(r *web.Request) error {
	raw := r.Ctx.URI().QueryString()
	f, problems := parseProjectFilter(raw)
	summaries, bad := parseSummaryView(raw)
	page, err := web.ParsePaging(raw, projectFields, append(problems, bad...))
	if err != nil {
		return err
	}
	if err := r.Permit(); err != nil {
		return err
	}
	var rows []*catalog.Project
	var total int
	switch ids := r.Key.ProjectIDs(); {
	case f.given && streamed(page):
		return a.streamFoundProjects(r, f.Search)
	case f.given:
		rows, total, err = a.Lists.FindProjects(f.Search, searchQuery(page, ids))
	case !page.Paged && (page.Sort == "" || page.Sort == "id") && r.Key.EveryProject():
		return a.streamProjects(r, page.Order == "desc")
	default:
		rows, total, err = a.Lists.Projects(page.Query(ids))
	}
	if err != nil {
		return err
	}
	return a.succeedProjects(r, rows, total, page, summaries)
}

// parseSummaryView reads view, which is for pages only: a whole list is streamed without reading more of each project.
func parseSummaryView(raw []byte) (summaries bool, problems catalog.Problems) {
	q := web.ParseQuery(raw, "view")
	view, given := q.Values["view"]
	paged := len(web.ParseQuery(raw, "page", "limit").Values) > 0
	switch {
	case len(q.Problems) > 0 || !given:
	case view != "summary":
		q.Problems.Addf("view", `must be "summary", or left out for the projects alone`)
	case !paged:
		q.Problems.Addf("view", "is for one page: give page or limit")
	}
	return given, q.Problems
}

// succeedProjects answers with a page of projects.
func (a *API) succeedProjects(r *web.Request, rows []*catalog.Project, total int, page web.Paging,
	summaries bool) error {
	const message = "projects found"
	if !summaries {
		r.SucceedPage(message, web.AppendRows(rows, rowjson.AppendProject), page, total)
		return nil
	}
	list, err := a.Lists.Summaries(rows)
	if err != nil {
		return err
	}
	if a.Explainer != nil {
		for _, s := range list {
			s.File, _ = a.Explainer.FileOf(s.UUID)
		}
	}
	r.SucceedPage(message, web.AppendRows(list, rowjson.AppendSummary), page, total)
	return nil
}

func (a *API) getProjectBySlug(r *web.Request) error {
	if err := r.Permit(); err != nil {
		return err
	}
	slug, _ := r.Ctx.UserValue("slug").(string) // not unescaped: a slug has nothing to escape
	project, err := a.State.ProjectBySlug(slug)
	switch {
	case err == nil && !r.Key.Covers(project.ID), catalog.IsNotFound(err) && !r.Key.Names(slug):
		return web.RefuseProject
	case err != nil:
		return r.HideMissing(err)
	}
	a.succeedProject(r, project)
	return nil
}

func (a *API) succeedProject(r *web.Request, p *catalog.Project) {
	r.SucceedTagged("project found", rowjson.AppendProject(nil, p), rowjson.ProjectETag(p))
}

// projectNames are the fields of a project in a request.
var projectNames = catalog.RequestNames(new(catalog.Project).AllFields())

// newProjectNames are the fields of a new project in a request: it is a draft, whatever its status is to be.
var newProjectNames = append(slices.DeleteFunc(slices.Clone(projectNames),
	func(name string) bool { return name == "status" }), domainsField)

// ownerField has the owner of a project.
const ownerField = "owner"

// domainsField has the names of a new project's domains.
const domainsField = "domains"

// maxNewDomains is the most domains that one request creates.
const maxNewDomains = 100

// createProject answers POST /projects.
func (a *API) createProject(r *web.Request) error {
	if err := permitCreate(r); err != nil {
		return err
	}
	f, err := r.ReadForm(newProjectNames, "status")
	if err != nil {
		return err
	}
	made := catalog.ProjectConfig{Project: catalog.Project{UUID: catalog.NewUUID(), Status: catalog.StatusDraft}}
	p := &made.Project
	f.Require("name", "is required")
	f.Fill(p.AllFields(), newProjectNames...)
	switch {
	case f.Has("slug"):
	case f.Bad["name"] || strings.TrimSpace(p.Name) == "":
		f.Bad["slug"] = true // it is made from the name, which is the problem
	default:
		if p.Slug = catalog.SlugOf(p.Name); p.Slug == "" {
			f.Fail("slug", "cannot be made from this name: give one")
		}
	}
	made.Domains = readNewDomains(f, p.UUID)
	if err := f.Validated(p.Validate()); err != nil {
		return err
	}
	if p.Owner == nil {
		p.Owner = ownerOf(r.Key)
	}
	if err := settleOwner(r, ownerOf(r.Key), p); err != nil {
		return err
	}
	if err := a.namesFree(p.Slug, made.Domains); err != nil {
		return err
	}
	if err := a.mayClaim(r, made.Domains); err != nil {
		return err
	}
	p.ID = catalog.DeriveID(catalog.KindProject, p.UUID)
	if err := a.Writer.Write(r, &catalog.Edit{NewProject: &made}); err != nil {
		return err
	}
	now, err := a.State.ProjectByID(p.ID)
	if err != nil {
		return err
	}
	r.SucceedCreated("project created", rowjson.AppendProject(nil, now), projectLocation(now.ID))
	r.Ctx.Response.Header.SetCanonical(web.HeaderETag, []byte(rowjson.ProjectETag(now)))
	return nil
}

// permitCreate reports whether the request's key may create projects: with write on every project, or with create, which
// gives them its owner.
func permitCreate(r *web.Request) error {
	switch k := r.Key; {
	case k.Owner == "":
		if err := r.Permit(); err != nil {
			return err
		}
		if !k.EveryProject() {
			return web.RefuseProject
		}
	case k.Allow&catalog.MayCreate == 0:
		return web.RefuseAllow(catalog.MayCreate)
	case r.Propose != "":
		return &catalog.Error{Code: catalog.CodeForbidden,
			Message: "a key with an owner creates projects at once, without a proposal"}
	}
	return nil
}

func ownerOf(k *resolver.Key) *string {
	if k.Owner == "" {
		return nil
	}
	return &k.Owner
}

// settleOwner decides what the request makes of the owner of a project, whose present one is was. Only a key for every
// project says something about it; others may send back what is, or their own.
func settleOwner(r *web.Request, was *string, p *catalog.Project) error {
	same := func(o *string) bool { return o == p.Owner || o != nil && p.Owner != nil && *o == *p.Owner }
	switch {
	case r.Key.EveryProject():
		return nil
	case same(was), same(ownerOf(r.Key)):
		p.Owner = was
		return nil
	}
	e := &catalog.Error{Code: catalog.CodeForbidden, Message: "only a key for every project gives a project another owner"}
	e.Problems.Addf(ownerField, "is changed by a key for every project")
	return e
}

// mayClaim tells every domain of a new project that the request's key may not declare. The commit checks them again.
func (a *API) mayClaim(r *web.Request, domains []catalog.Domain) error {
	var refused *catalog.Error
	for i := range domains {
		var e *catalog.Error
		switch err := names.MayClaim(a.State, web.CoverageOf(r.Key), 0, domains[i].Name); {
		case err == nil:
			continue
		case !errors.As(err, &e) || e.Code != catalog.CodeDomainNotAllowed:
			return err
		}
		if refused == nil {
			refused = &catalog.Error{Code: e.Code, Message: e.Message}
		}
		for _, p := range e.Problems {
			refused.Problems.Addf(newDomainField(i), "%s", p.Message)
		}
	}
	if refused == nil {
		return nil
	}
	return refused
}

// newDomainField is how answers name a domain of a new project.
func newDomainField(i int) string { return fmt.Sprintf("%s[%d]", domainsField, i) }

// readNewDomains reads the domains of a new project. The first one is primary.
func readNewDomains(f *web.Form, project catalog.UUID) (domains []catalog.Domain) {
	if !f.Has(domainsField) {
		return nil
	}
	list, ok := f.Body.Values[domainsField].([]any)
	if !ok || len(list) > maxNewDomains {
		f.Fail(domainsField, fmt.Sprintf("must be a list of at most %d host names", maxNewDomains))
		return nil
	}
	for i, value := range list {
		at := newDomainField(i)
		text, isText := value.(string)
		name, err := hostname.ParseDomain(text)
		switch {
		case !isText:
			f.Fail(at, "must be a string")
		case err != nil:
			f.Fail(at, err.Error())
		case slices.ContainsFunc(domains, func(d catalog.Domain) bool { return d.Name == name }):
			f.Fail(at, "is in the list already")
		default:
			domains = append(domains, catalog.Domain{UUID: catalog.DeriveDomainUUID(project, name), Name: name,
				Primary: i == 0, Active: true})
		}
	}
	return domains
}

// namesFree returns a conflict if a project has the slug, or one of the domains.
func (a *API) namesFree(slug string, domains []catalog.Domain) error {
	var taken catalog.Problems
	_, err := a.State.ProjectBySlug(slug)
	switch {
	case err == nil:
		taken.Addf("slug", "is taken by another project")
	case !catalog.IsNotFound(err):
		return err
	}
	for i := range domains {
		switch _, err := a.State.DomainNamed(domains[i].Name); {
		case err == nil:
			taken.Addf(newDomainField(i), "belongs to a project already")
		case !catalog.IsNotFound(err):
			return err
		}
	}
	switch {
	case taken == nil:
		return nil
	case taken[0].Path == "slug":
		return &catalog.Error{Code: catalog.CodeConflict, Message: "there is a project with this slug already",
			Problems: taken}
	}
	return &catalog.Error{Code: catalog.CodeConflict, Message: "a project has this domain already", Problems: taken}
}

// updateProject answers PUT /projects/{id}. See web/write.go for the steps.
func (a *API) updateProject(r *web.Request, project *catalog.Project) error {
	f, err := r.ReadForm(projectNames)
	if err != nil {
		return err
	}
	apply := func(p *catalog.Project) error {
		slug, owner := p.Slug, p.Owner
		f.Fill(p.AllFields(), projectNames...)
		if err := f.Validated(p.Validate()); err != nil {
			return err
		}
		if err := settleOwner(r, owner, p); err != nil {
			return err
		}
		if p.Slug != slug && !r.Key.EveryProject() {
			return refuseRename
		}
		return nil
	}
	trial := *project
	if err := apply(&trial); err != nil {
		return err
	}
	if err := r.Matches(rowjson.ProjectETag(project)); err != nil {
		return err
	}
	if trial.Slug != project.Slug {
		if err := a.namesFree(trial.Slug, nil); err != nil {
			return err
		}
	}
	err = a.Writer.Update(r, project, func(p *catalog.ProjectConfig) error {
		if err := r.Matches(rowjson.ProjectETag(&p.Project)); err != nil {
			return err
		}
		return apply(&p.Project)
	})
	if err != nil {
		return err
	}
	now, err := a.State.ProjectByID(project.ID)
	if err != nil {
		return err
	}
	r.SucceedWritten("project updated", rowjson.AppendProject(nil, now), rowjson.ProjectETag(now))
	return nil
}

// deleteProject answers DELETE /projects/{id}.
func (a *API) deleteProject(r *web.Request, project *catalog.Project) error {
	if err := r.Matches(rowjson.ProjectETag(project)); err != nil {
		return err
	}
	unchanged := func(p *catalog.ProjectConfig) error { return r.Matches(rowjson.ProjectETag(&p.Project)) }
	err := a.Writer.Write(r, &catalog.Edit{Project: &catalog.ProjectEdit{UUID: project.UUID, Change: unchanged,
		Remove: true}})
	if err != nil {
		return err
	}
	r.Succeed("project deleted", []byte("null"))
	return nil
}

func projectLocation(id int64) string { return "/api/platform/projects/" + strconv.FormatInt(id, 10) }

var (
	refuseRename = &catalog.Error{Code: catalog.CodeForbidden,
		Message: "a project gets another slug only by a key with write on every project: other keys may be prepared for " +
			"the new slug"}
)

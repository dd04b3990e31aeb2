package platform

import (
	"errors"
	"slices"
	"strconv"
	"time"

	"fingerpost/api/web"
	"fingerpost/configsrc/names"
	"fingerpost/resolver/catalog"
	"fingerpost/resolver/hostname"
	"fingerpost/resolver/rowjson"
)

// domainFields are the fields that sort a list of domains.
var domainFields = []string{"id", "projectId", "domain", "primary", "active", "createdAt", "updatedAt"}

func (a *API) listDomains(r *web.Request) error {
	return web.ListOwned(r, a.State, "id", domainFields, "domains found", a.State.Domains, rowjson.AppendDomain)
}

func (a *API) getDomain(r *web.Request, _ *catalog.Project, d *catalog.Domain) error {
	r.SucceedTagged("domain found", rowjson.AppendDomainRecord(nil, d), rowjson.DomainETag(d))
	return nil
}

// domainNames are the fields of a domain in a request.
var domainNames = catalog.RequestNames(new(catalog.Domain).AllFields())

// readDomain reads the body into d and makes the name canonical. What it makes of the proof is settleProof's part.
func readDomain(f *web.Form, d *catalog.Domain) error {
	present := ""
	if d.Verified != nil {
		present = *d.Verified
	}
	f.Fill(d.AllFields(), domainNames...)
	if f.Has("domain") && !f.Bad["domain"] {
		name, err := hostname.ParseDomain(d.Name)
		if err != nil {
			f.Fail("domain", err.Error())
		}
		d.Name = name
	}
	// A client may send back what it has read, also a day that a clock wrote that was ahead.
	if f.Has("verified") && !f.Bad["verified"] && d.Verified != nil && *d.Verified != present {
		if msg := catalog.CheckVerified(*d.Verified, time.Now().UTC().Format(time.DateOnly)); msg != "" {
			f.Fail("verified", msg)
		}
	}
	return f.Validated(nil)
}

// settleProof decides whether a domain that is to be d keeps the proof that it had as was. Only a key for every project
// may set "verified"; if its request omits it, a renamed domain loses its proof. names.SettleProofs decides it for new
// names in the writes of other keys.
func settleProof(r *web.Request, f *web.Form, was, d *catalog.Domain) error {
	same := was.Verified == d.Verified || was.Verified != nil && d.Verified != nil && *was.Verified == *d.Verified
	switch {
	case r.Key.EveryProject():
		if was.Name != d.Name && !f.Has("verified") {
			d.Verified = nil
		}
	case !same:
		e := &catalog.Error{Code: catalog.CodeForbidden,
			Message: "only a key for every project says that a domain is verified"}
		e.Problems.Addf("verified", "is changed by a key for every project, or by the proof")
		return e
	}
	return nil
}

// putDomain replaces or adds a domain of a project. If d is primary, no other domain stays primary.
func putDomain(p *catalog.ProjectConfig, d catalog.Domain) error {
	at := -1
	for i := range p.Domains {
		other := &p.Domains[i]
		switch {
		case other.UUID == d.UUID:
			at = i
		case other.Name == d.Name:
			return domainTaken()
		case d.Primary:
			other.Primary = false
		}
	}
	if at < 0 {
		p.Domains = append(p.Domains, d)
	} else {
		p.Domains[at] = d
	}
	return nil
}

func domainTaken() error {
	e := &catalog.Error{Code: catalog.CodeConflict, Message: "this domain is declared already"}
	e.Problems.Addf("domain", "belongs to a project already")
	return e
}

// createDomain answers POST /projects/{id}/domains.
func (a *API) createDomain(r *web.Request, project *catalog.Project) error {
	f, err := r.ReadForm(domainNames)
	if err != nil {
		return err
	}
	d := catalog.Domain{Active: true}
	f.Require("domain", "is required: a host name, or a wildcard such as *.acme.example")
	if err := readDomain(f, &d); err != nil {
		return err
	}
	if err := settleProof(r, f, &catalog.Domain{}, &d); err != nil {
		return err
	}
	add := func(p *catalog.ProjectConfig) error {
		d.UUID = catalog.DeriveDomainUUID(p.Project.UUID, d.Name)
		if slices.ContainsFunc(p.Domains, func(o catalog.Domain) bool { return o.UUID == d.UUID && o.Name != d.Name }) {
			d.UUID = catalog.NewUUID() // the derived UUID belongs to a domain that was renamed
		} else if slices.ContainsFunc(p.Domains, func(o catalog.Domain) bool { return o.Name == d.Name }) {
			return domainTaken()
		}
		return putDomain(p, d)
	}
	err = a.Writer.Update(r, project, add)
	if e := (*catalog.Error)(nil); errors.As(err, &e) && e.Code == catalog.CodeConflict {
		err = a.takeOver(r, project, d.Name, add, e)
	}
	if err != nil {
		return err
	}
	made, err := a.State.Domain(project.ID, catalog.DeriveID(catalog.KindDomain, d.UUID))
	if err != nil {
		return err
	}
	r.SucceedCreated("domain created", rowjson.AppendDomainRecord(nil, made),
		projectLocation(project.ID)+"/domains/"+strconv.FormatInt(made.ID, 10))
	r.Ctx.Response.Header.SetCanonical(web.HeaderETag, []byte(rowjson.DomainETag(made)))
	return nil
}

// presentDomain returns a domain as the file declares it now, and checks If-Match against it.
func presentDomain(r *web.Request, p *catalog.ProjectConfig, uuid catalog.UUID) (*catalog.Domain, error) {
	at := slices.IndexFunc(p.Domains, func(d catalog.Domain) bool { return d.UUID == uuid })
	if at < 0 {
		return nil, &catalog.Error{Code: catalog.CodeNotFound, Message: "no such domain"}
	}
	return &p.Domains[at], r.Matches(rowjson.DomainETag(&p.Domains[at]))
}

// updateDomain answers PUT /projects/{projectId}/domains/{domainId}.
func (a *API) updateDomain(r *web.Request, project *catalog.Project, domain *catalog.Domain) error {
	f, err := r.ReadForm(domainNames)
	if err != nil {
		return err
	}
	trial := *domain
	if err := readDomain(f, &trial); err != nil {
		return err
	}
	// A missing permission is reported before a failed If-Match. The commit checks it again.
	if err := settleProof(r, f, domain, &trial); err != nil {
		return err
	}
	if !r.Key.EveryProject() {
		if err := names.MayClaim(a.State, r.Key.Covers, project.ID, trial.Name); err != nil {
			return err
		}
	}
	if err := r.Matches(rowjson.DomainETag(domain)); err != nil {
		return err
	}
	err = a.Writer.Update(r, project, func(p *catalog.ProjectConfig) error {
		now, err := presentDomain(r, p, domain.UUID)
		if err != nil {
			return err
		}
		d := *now
		if err := readDomain(f, &d); err != nil {
			return err
		}
		if err := settleProof(r, f, now, &d); err != nil {
			return err
		}
		return putDomain(p, d)
	})
	if err != nil {
		return err
	}
	now, err := a.State.Domain(project.ID, domain.ID)
	if err != nil {
		return err
	}
	r.SucceedWritten("domain updated", rowjson.AppendDomainRecord(nil, now), rowjson.DomainETag(now))
	return nil
}

// deleteDomain answers DELETE /projects/{projectId}/domains/{domainId}.
func (a *API) deleteDomain(r *web.Request, project *catalog.Project, domain *catalog.Domain) error {
	if err := r.Matches(rowjson.DomainETag(domain)); err != nil {
		return err
	}
	err := a.Writer.Update(r, project, func(p *catalog.ProjectConfig) error {
		if _, err := presentDomain(r, p, domain.UUID); err != nil {
			return err
		}
		p.Domains = slices.DeleteFunc(p.Domains, func(d catalog.Domain) bool { return d.UUID == domain.UUID })
		return nil
	})
	if err != nil {
		return err
	}
	r.Succeed("domain deleted", []byte("null"))
	return nil
}

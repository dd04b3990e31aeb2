package configsrc

import (
	"reflect"
	"slices"

	"fingerpost/configsrc/hclfile"
	"fingerpost/resolver/catalog"
)

// rest reports whether got equals the previous content, apart from the edited project.
func (e *edit) rest(got *catalog.Declared) bool {
	if len(got.Projects) != len(e.declared.Projects) {
		return false
	}
	for i := range got.Projects {
		if i != e.at && !reflect.DeepEqual(got.Projects[i], e.declared.Projects[i]) {
			return false
		}
	}
	return e.others(got)
}

// without reports whether got equals the previous content without the edited project.
func (e *edit) without(got *catalog.Declared) bool {
	left := slices.Delete(slices.Clone(e.declared.Projects), e.at, e.at+1)
	return len(left) == len(got.Projects) && (len(left) == 0 || reflect.DeepEqual(left, got.Projects)) && e.others(got)
}

// others compares everything outside projects.
func (e *edit) others(got *catalog.Declared) bool {
	a, b := *e.declared, *got
	a.Projects, b.Projects = nil, nil
	a.Keys = e.moves.keys(a.Keys)
	return reflect.DeepEqual(a, b)
}

// sayEqual reports whether a decoded project equals want, whose settings are those in force.
func sayEqual(got, want *catalog.ProjectConfig, defaults *catalog.Defaults) bool {
	now := inForce(got, defaults)
	return reflect.DeepEqual(now.Project, want.Project) &&
		now.Service.Same(&want.Service) &&
		now.Auth.Same(&want.Auth) &&
		sameDomains(now.Domains, want.Domains) &&
		reflect.DeepEqual(now.SMTP, want.SMTP) &&
		sameTemplates(now.Templates, want.Templates)
}

// sameTemplates compares regardless of order.
func sameTemplates(a, b []catalog.Template) bool {
	if len(a) != len(b) {
		return false
	}
	byCode := make(map[string]catalog.Template, len(a))
	for _, t := range a {
		byCode[t.Code] = t
	}
	for _, t := range b {
		if have, ok := byCode[t.Code]; !ok || have != t {
			return false
		}
		delete(byCode, t.Code)
	}
	return true
}

// sameDomains compares regardless of order. A domain that is new in b has no id yet.
func sameDomains(a, b []catalog.Domain) bool {
	if len(a) != len(b) {
		return false
	}
	byUUID := make(map[catalog.UUID]catalog.Domain, len(a))
	for _, d := range a {
		byUUID[d.UUID] = d
	}
	for _, d := range b {
		have, ok := byUUID[d.UUID]
		if !ok || have.Name != d.Name || have.Primary != d.Primary || have.Active != d.Active || d.ID != 0 && have.ID != d.ID {
			return false
		}
		delete(byUUID, d.UUID)
	}
	return true
}

// normalize brings texts into the form in which a file returns them.
func normalize(p *catalog.ProjectConfig) {
	p.Project.Name = hclfile.NormalText(p.Project.Name)
	if d := p.Project.Description; d != nil {
		text := hclfile.NormalText(*d)
		p.Project.Description = &text
	}
}

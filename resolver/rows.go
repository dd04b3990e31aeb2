package resolver

import "fingerpost/resolver/catalog"

// AppendProject appends a project as the API shows it to dst.
func AppendProject(dst []byte, p *catalog.Project) []byte {
	e := encoder{b: dst}
	e.project(p)
	return e.b
}

// AppendDomain appends a domain record as the API shows it to dst.
func AppendDomain(dst []byte, d *catalog.Domain) []byte {
	e := encoder{b: dst}
	e.domain(d)
	return e.b
}

// AppendServiceSettings appends the service settings of a project to dst, without what only the flat resolve form has.
func AppendServiceSettings(dst []byte, project int64, s *catalog.ServiceSettings) []byte {
	e := encoder{b: dst}
	e.serviceSettings(project, s)
	return e.b
}

// AppendAuthSettings appends the auth settings of a project to dst, without what only the flat resolve form has.
func AppendAuthSettings(dst []byte, project int64, a *catalog.AuthSettings) []byte {
	e := encoder{b: dst}
	e.authSettings(project, a)
	return e.b
}

// ProjectETag is the strong, quoted ETag of a project as AppendProject shows it, whatever its times are.
func ProjectETag(p *catalog.Project) string {
	var e encoder
	e.project(p)
	return string(e.appendETag(nil))
}

// DomainETag is the ETag of a domain record.
func DomainETag(d *catalog.Domain) string {
	var e encoder
	e.domain(d)
	return string(e.appendETag(nil))
}

// ServiceSettingsETag is the ETag of a project's service settings.
func ServiceSettingsETag(project int64, s *catalog.ServiceSettings) string {
	var e encoder
	e.serviceSettings(project, s)
	return string(e.appendETag(nil))
}

// AuthSettingsETag is the ETag of a project's auth settings.
func AuthSettingsETag(project int64, a *catalog.AuthSettings) string {
	var e encoder
	e.authSettings(project, a)
	return string(e.appendETag(nil))
}

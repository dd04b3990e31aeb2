package rowjson

import (
	"slices"

	"fingerpost/resolver/catalog"
)

// AppendExplained appends a project in full to dst, in the API's form: its labels, domains, settings and SMTP config in
// force, and the origin of each value (api/platform/README.md, Where values come from). It holds no secret. Zero times
// are null.
func AppendExplained(dst []byte, x *catalog.Explained) []byte {
	c := &x.Config
	p := &c.Project
	domains := make([]raw, len(c.Domains))
	for i := range c.Domains {
		domains[i] = fullDomain(&c.Domains[i])
	}
	var smtp any
	if c.SMTP != nil {
		shown := *c.SMTP
		shown.Port = c.SMTP.EffectivePort()
		smtp = record(p.ID, shown.ID, shown.Fields())
	}
	row := append([]any{
		"id", p.ID,
		"uuid", p.UUID,
		"name", p.Name,
		"slug", p.Slug,
		"description", p.Description,
		"status", p.Status,
		"createdAt", nullIf(p.CreatedAt.IsZero(), p.CreatedAt),
		"updatedAt", nullIf(p.UpdatedAt.IsZero(), p.UpdatedAt),
	}, ownMembers(p.Fields())...)
	return AppendObject(dst, append(row,
		"domains", domains,
		"serviceSettings", record(p.ID, c.Service.ID, c.Service.Fields()),
		"authSettings", record(p.ID, c.Auth.ID, c.Auth.Fields()),
		"smtpConfig", smtp,
		"origin", origins(x))...)
}

// ExplainedETag returns the ETag of what AppendExplained has made.
func ExplainedETag(text []byte) string { return ETag(WithoutTimes(append([]byte(nil), text...))) }

func fullDomain(d *catalog.Domain) raw {
	return object(
		"id", d.ID,
		"projectId", d.ProjectID,
		"domain", d.Name,
		"primary", d.Primary,
		"active", d.Active,
		"certificates", d.MayHaveCertificates(),
		"verified", d.Verified,
		"createdAt", nullIf(d.CreatedAt.IsZero(), d.CreatedAt),
		"updatedAt", nullIf(d.UpdatedAt.IsZero(), d.UpdatedAt))
}

// record is a record of a project with all its fields but the secrets. An inherited record has no id.
func record(project, id int64, fields []catalog.Field) raw {
	o := []any{"id", nullIf(id == 0, id), "projectId", project}
	for _, f := range fields {
		switch v := f.Value.(type) {
		case *bool:
			o = append(o, f.Name, *v)
		case **bool:
			if *v == nil {
				o = append(o, f.Name, nil)
			} else {
				o = append(o, f.Name, **v)
			}
		case *int:
			o = append(o, f.Name, *v)
		case *string:
			o = append(o, f.Name, *v)
		case **string:
			o = append(o, f.Name, *v)
		case *[]string:
			o = append(o, f.Name, nullIf(*v == nil && f.Unset != "", *v))
		}
	}
	return object(o...)
}

// origins returns the origins in the shape of the values. A value of the defaults block is "defaults"; the last member
// says where in the files it is.
func origins(x *catalog.Explained) raw {
	c := &x.Config
	service, auth, smtp := c.Service.Fields(), c.Auth.Fields(), new(catalog.SMTPConfig).Fields()
	domains := make([]raw, len(x.Domains))
	for i, o := range x.Domains {
		domains[i] = object(originsOf(o, namesOf(c.Domains[i].Fields(), "id", "domain", "certificates"))...)
	}
	return object(append(originsOf(x.Project, namesOf(c.Project.Fields(), "id", "uuid", "slug", "labels")),
		"domains", domains,
		"serviceSettings", part(x.Service, service, originsOf),
		"authSettings", part(x.Auth, auth, originsOf),
		"smtpConfig", part(x.SMTP, smtp, originsOf),
		"defaults", object(
			"serviceSettings", part(x.Service, service, placesOf),
			"authSettings", part(x.Auth, auth, placesOf),
			"smtpConfig", part(x.SMTP, smtp, placesOf)))...)
}

// namesOf returns names and those of the fields, each once.
func namesOf(fields []catalog.Field, names ...string) []string {
	for _, f := range fields {
		if !slices.Contains(names, f.Name) {
			names = append(names, f.Name)
		}
	}
	return names
}

// part is what of makes of one record's origins, null if there are none.
func part(from catalog.Origins, fields []catalog.Field, of func(catalog.Origins, []string) []any) any {
	if from == nil {
		return nil
	}
	return object(of(from, namesOf(fields))...)
}

// originsOf returns the members of an object of origins.
func originsOf(from catalog.Origins, names []string) (members []any) {
	for _, name := range names {
		members = append(members, name, originOf(from[name]))
	}
	return members
}

// placesOf is originsOf for the places of the values that the defaults block has.
func placesOf(from catalog.Origins, names []string) (members []any) {
	for _, name := range names {
		if place := from[name]; place.Defaults {
			place.Defaults = false
			members = append(members, name, originOf(place))
		}
	}
	return members
}

func originOf(o catalog.Origin) any {
	switch {
	case o.Defaults:
		return "defaults"
	case o.File == "":
		return "built-in"
	}
	return object("file", o.File, "line", o.Line)
}

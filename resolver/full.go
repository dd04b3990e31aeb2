package resolver

import (
	"slices"
	"strconv"

	"fingerpost/resolver/catalog"
)

// AppendExplained appends a project in full to dst, in the API's form: its labels, domains, settings and SMTP config in
// force, and the origin of each value (api/README.md, Where values come from). It holds no secret. Zero times are null.
func AppendExplained(dst []byte, x *catalog.Explained) []byte {
	c := &x.Config
	p := &c.Project
	dst = appendObject(dst,
		"id", p.ID,
		"uuid", p.UUID,
		"name", p.Name,
		"slug", p.Slug,
		"description", p.Description,
		"status", p.Status,
		"createdAt", nullIf(p.CreatedAt.IsZero(), p.CreatedAt),
		"updatedAt", nullIf(p.UpdatedAt.IsZero(), p.UpdatedAt))
	dst = AppendLabels(append(dst[:len(dst)-1], `,"labels":`...), p.Labels)
	dst = append(dst, `,"domains":[`...)
	for i := range c.Domains {
		dst = appendFullDomain(appendComma(dst, i), &c.Domains[i])
	}
	dst = append(dst, `],"serviceSettings":`...)
	dst = appendFields(dst, p.ID, c.Service.ID, c.Service.Fields())
	dst = append(dst, `,"authSettings":`...)
	dst = appendFields(dst, p.ID, c.Auth.ID, c.Auth.Fields())
	dst = append(dst, `,"smtpConfig":`...)
	if smtp := c.SMTP; smtp == nil {
		dst = append(dst, "null"...)
	} else {
		shown := *smtp
		shown.Port = smtp.EffectivePort()
		dst = appendFields(dst, p.ID, shown.ID, shown.Fields())
	}
	dst = appendOrigins(append(dst, `,"origin":`...), x)
	return append(dst, '}')
}

// ExplainedETag returns the ETag of what AppendExplained has made.
func ExplainedETag(text []byte) string { return etag(withoutTimes(append([]byte(nil), text...))) }

func appendFullDomain(dst []byte, d *catalog.Domain) []byte {
	return appendObject(dst,
		"id", d.ID,
		"projectId", d.ProjectID,
		"domain", d.Name,
		"primary", d.Primary,
		"active", d.Active,
		"certificates", d.MayHaveCertificates(),
		"createdAt", nullIf(d.CreatedAt.IsZero(), d.CreatedAt),
		"updatedAt", nullIf(d.UpdatedAt.IsZero(), d.UpdatedAt))
}

// appendFields appends a record of a project with all its fields but the secrets. An inherited record has no id.
func appendFields(dst []byte, project, id int64, fields []catalog.Field) []byte {
	values := []any{"id", nullIf(id == 0, id), "projectId", project}
	for _, f := range fields {
		switch v := f.Value.(type) {
		case *bool:
			values = append(values, f.Name, *v)
		case *int:
			values = append(values, f.Name, *v)
		case *string:
			values = append(values, f.Name, *v)
		case **string:
			values = append(values, f.Name, *v)
		}
	}
	return appendObject(dst, values...)
}

// appendOrigins appends the origins in the shape of the values. A value of the defaults block is "defaults"; the last
// member says where in the files it is.
func appendOrigins(dst []byte, x *catalog.Explained) []byte {
	c := &x.Config
	dst = append(dst, '{')
	for i, name := range namesOf(c.Project.Fields(), "id", "uuid", "slug", "labels") {
		dst = appendOrigin(append(appendName(dst, i, name), ':'), x.Project[name])
	}
	dst = append(dst, `,"domains":[`...)
	for i, o := range x.Domains {
		dst = append(appendComma(dst, i), '{')
		for k, name := range namesOf(c.Domains[i].Fields(), "id", "domain", "certificates") {
			dst = appendOrigin(append(appendName(dst, k, name), ':'), o[name])
		}
		dst = append(dst, '}')
	}
	dst = append(dst, `],"serviceSettings":`...)
	dst = appendPart(dst, c.Service.Fields(), x.Service, false)
	dst = appendPart(append(dst, `,"authSettings":`...), c.Auth.Fields(), x.Auth, false)
	dst = appendPart(append(dst, `,"smtpConfig":`...), new(catalog.SMTPConfig).Fields(), x.SMTP, false)
	dst = append(dst, `,"defaults":{"serviceSettings":`...)
	dst = appendPart(dst, c.Service.Fields(), x.Service, true)
	dst = appendPart(append(dst, `,"authSettings":`...), c.Auth.Fields(), x.Auth, true)
	dst = appendPart(append(dst, `,"smtpConfig":`...), new(catalog.SMTPConfig).Fields(), x.SMTP, true)
	return append(dst, "}}"...)
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

// appendPart appends the origins of one record, or the places of those in the defaults block. Nil origins are null.
func appendPart(dst []byte, fields []catalog.Field, origins catalog.Origins, inDefaults bool) []byte {
	if origins == nil {
		return append(dst, "null"...)
	}
	dst = append(dst, '{')
	n := 0
	for _, f := range fields {
		o := origins[f.Name]
		if inDefaults {
			if !o.Defaults {
				continue
			}
			o.Defaults = false
		}
		dst = appendOrigin(append(appendName(dst, n, f.Name), ':'), o)
		n++
	}
	return append(dst, '}')
}

func appendOrigin(dst []byte, o catalog.Origin) []byte {
	switch {
	case o.Defaults:
		return append(dst, `"defaults"`...)
	case o.File == "":
		return append(dst, `"built-in"`...)
	}
	dst = AppendString(append(dst, `{"file":`...), o.File)
	dst = strconv.AppendInt(append(dst, `,"line":`...), int64(o.Line), 10)
	return append(dst, '}')
}

// appendName appends the name of an object's member i.
func appendName(dst []byte, i int, name string) []byte {
	return AppendString(appendComma(dst, i), name)
}

func appendComma(dst []byte, i int) []byte {
	if i > 0 {
		dst = append(dst, ',')
	}
	return dst
}

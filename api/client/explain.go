package client

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"fingerpost/resolver/catalog"
)

// ReadExplained reads what Explain has returned. What cannot be read is as if the server did not have it. Secrets are
// never there; where one is given, it has an origin.
func ReadExplained(document json.RawMessage) (*catalog.Explained, error) {
	var values row
	if err := json.Unmarshal(document, &values); err != nil {
		return nil, fmt.Errorf("read the explanation: %w", err)
	}
	origin := values.object("origin")
	places := origin.object("defaults")
	part := func(name string, fields []catalog.Field) catalog.Origins {
		values.object(name).readFields(fields)
		return origin.object(name).origins(places.object(name))
	}
	x := &catalog.Explained{Project: origin.origins(nil)}
	c := &x.Config
	c.Project.ID = values.number("id")
	c.Project.UUID, _ = catalog.ParseUUID(values.text("uuid"))
	values.readFields(c.Project.AllFields())
	from := origin.objects("domains")
	for i, v := range values.objects("domains") {
		d := catalog.Domain{ID: v.number("id"), ProjectID: c.Project.ID}
		v.readFields(d.AllFields())
		if c.Domains = append(c.Domains, d); i < len(from) {
			x.Domains = append(x.Domains, from[i].origins(nil))
		}
	}
	x.Service = part("serviceSettings", c.Service.Fields())
	x.Auth = part("authSettings", c.Auth.Fields())
	if values.object("smtpConfig") != nil {
		c.SMTP = new(catalog.SMTPConfig)
		x.SMTP = part("smtpConfig", c.SMTP.Fields())
	}
	return x, nil
}

// object returns a field that is an object, nil if it is none.
func (r row) object(name string) row { return objectOf(r[name]) }

func objectOf(raw json.RawMessage) (o row) {
	if json.Unmarshal(raw, &o) != nil {
		return nil
	}
	return o
}

// objects returns a field that is a list of objects; one that is none is nil.
func (r row) objects(name string) (list []row) {
	var all []json.RawMessage
	_ = json.Unmarshal(r[name], &all)
	for _, raw := range all {
		list = append(list, objectOf(raw))
	}
	return list
}

// readFields reads the fields that are there and can be read.
func (r row) readFields(fields []catalog.Field) {
	for _, f := range fields {
		if raw, there := r[f.Name]; there {
			_ = decode(raw, f.Value)
		}
	}
}

// origins reads the origins of a part. places are the lines in the defaults block of the values from there.
func (r row) origins(places row) catalog.Origins {
	if r == nil {
		return nil
	}
	all := make(catalog.Origins, len(r))
	for name, raw := range r {
		o := catalog.Origin{Defaults: string(raw) == `"defaults"`}
		if o.Defaults {
			raw = places[name]
		}
		var at struct {
			File string
			Line int
		}
		_ = json.Unmarshal(raw, &at) // "built-in" has no place
		o.File, o.Line = at.File, at.Line
		all[name] = o
	}
	return all
}

// An ExplainedRow is a value of a project and where it comes from, for people: Name is that of the files, and no text
// can control a terminal.
type ExplainedRow struct{ Name, Value, Origin string }

// ExplainedRows returns the rows of what Explain has returned: the project's own values, the matched domain, the
// settings and the SMTP config.
func ExplainedRows(document json.RawMessage, matched string) ([]ExplainedRow, error) {
	x, err := ReadExplained(document)
	if err != nil {
		return nil, err
	}
	c := &x.Config
	id, uuid := int(c.Project.ID), c.Project.UUID.String()
	rows := rowsOf("", append(c.Project.AllFields(), catalog.Field{Name: "id", Value: &id},
		catalog.Field{Name: "uuid", Value: &uuid}), x.Project)
	for i := range x.Domains {
		if d := &c.Domains[i]; d.Name == matched {
			rows = append(rows, rowsOf("domain.", d.AllFields(), x.Domains[i])...)
		}
	}
	rows = append(rows, rowsOf("service_settings.", c.Service.Fields(), x.Service)...)
	rows = append(rows, rowsOf("auth_settings.", c.Auth.Fields(), x.Auth)...)
	if c.SMTP == nil {
		return append(rows, ExplainedRow{"smtp_config", "none", ""}), nil
	}
	return append(rows, rowsOf("smtp_config.", c.SMTP.Fields(), x.SMTP)...), nil
}

// rowsOf returns a row for each field. A secret is not shown, only whether there is one.
func rowsOf(prefix string, fields []catalog.Field, origins catalog.Origins) (rows []ExplainedRow) {
	for _, f := range fields {
		o := origins[f.Name]
		value := shown(f.Plain())
		if _, is := f.Value.(*catalog.Secret); is {
			if value = "none"; o != (catalog.Origin{}) {
				value = "(secret)"
			}
		}
		rows = append(rows, ExplainedRow{prefix + catalog.Snake(f.Name), value, originText(o)})
	}
	return rows
}

// maxExplained bounds the characters of a value.
const maxExplained = 48

// shown returns a value on one line.
func shown(v any) string {
	switch v := v.(type) {
	case nil:
		return "none"
	case string:
		if r := []rune(v); len(r) > maxExplained {
			v = string(r[:maxExplained]) + "…"
		}
		return strconv.Quote(v)
	case []string:
		texts := make([]string, len(v))
		for i, s := range v {
			if texts[i] = shown(s); isFile(s) {
				texts[i] = Printable(s)
			}
		}
		return "[" + strings.Join(texts, ", ") + "]"
	case []catalog.Label:
		pairs := make([]string, len(v))
		for i, l := range v {
			pairs[i] = Printable(l.Name) + " = " + shown(l.Value)
		}
		return "{" + strings.Join(pairs, ", ") + "}"
	}
	return fmt.Sprint(v)
}

func isFile(text string) bool { _, is := catalog.FilePath(text); return is }

// originText writes an origin.
func originText(o catalog.Origin) string {
	at := Printable(fmt.Sprintf("%s:%d", o.File, o.Line))
	switch {
	case o.Defaults && o.File != "":
		return "defaults (" + at + ")"
	case o.Defaults:
		return "defaults"
	case o.File == "":
		return "built-in"
	}
	return at
}

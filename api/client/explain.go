package client

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"fingerpost/resolver/catalog"
)

// An ExplainedRow is a value of a project and where it comes from, for people: Name is that of the files, and no text
// can control a terminal.
type ExplainedRow struct{ Name, Value, Origin string }

// explanation decodes what view=full answers.
type explanation struct {
	values, origins, places map[string]any
}

// ExplainedRows returns the rows of what Explain has returned: the project's own values, the matched domain, the
// settings and the SMTP config.
func ExplainedRows(document json.RawMessage, matched string) ([]ExplainedRow, error) {
	decoder := json.NewDecoder(strings.NewReader(string(document)))
	decoder.UseNumber() // ids are larger than what a float64 shows in full
	x := explanation{}
	if err := decoder.Decode(&x.values); err != nil {
		return nil, fmt.Errorf("read the explanation: %w", err)
	}
	x.origins = jsonObject(x.values["origin"])
	x.places = jsonObject(x.origins["defaults"])
	rows := x.rows("", x.values, x.origins, nil,
		append(catalog.FieldNames(new(catalog.Project).AuditFields()), "id", "uuid")...)
	rows = append(rows, x.domain(matched)...)
	rows = append(rows, x.part("service_settings", "serviceSettings", new(catalog.ServiceSettings).Fields())...)
	rows = append(rows, x.part("auth_settings", "authSettings", new(catalog.AuthSettings).Fields())...)
	return append(rows, x.part("smtp_config", "smtpConfig", new(catalog.SMTPConfig).Fields())...), nil
}

// domain returns the rows of the matched domain.
func (x *explanation) domain(matched string) []ExplainedRow {
	domains, _ := x.values["domains"].([]any)
	origins, _ := x.origins["domains"].([]any)
	for i, d := range domains {
		if d := jsonObject(d); d["domain"] == matched && i < len(origins) {
			return x.rows("domain.", d, jsonObject(origins[i]), nil,
				catalog.FieldNames(new(catalog.Domain).AuditFields())...)
		}
	}
	return nil
}

// part returns the rows of settings or of the SMTP config.
func (x *explanation) part(block, field string, fields []catalog.Field) []ExplainedRow {
	values := jsonObject(x.values[field])
	if values == nil {
		return []ExplainedRow{{block, "none", ""}}
	}
	return x.rows(block+".", values, jsonObject(x.origins[field]), jsonObject(x.places[field]),
		catalog.FieldNames(fields)...)
}

// rows returns a row for each named value that the document has, or has the origin of: a secret.
func (x *explanation) rows(prefix string, values, origins, places map[string]any,
	names ...string) (rows []ExplainedRow) {
	for _, name := range names {
		value, known := values[name]
		origin, told := origins[name]
		if !known && !told {
			continue
		}
		r := ExplainedRow{prefix + catalog.Snake(name), shown(value), originText(origin, places[name])}
		if !known && r.Origin != "built-in" {
			r.Value = "(secret)"
		}
		rows = append(rows, r)
	}
	return rows
}

// jsonObject returns nil for what is no object.
func jsonObject(v any) map[string]any {
	m, _ := v.(map[string]any)
	return m
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
	case map[string]any:
		var pairs []string
		for _, name := range slices.Sorted(maps.Keys(v)) {
			pairs = append(pairs, Printable(name)+" = "+shown(v[name]))
		}
		return "{" + strings.Join(pairs, ", ") + "}"
	}
	return Printable(fmt.Sprint(v))
}

// originText writes an origin. place is the line in the defaults block of a value that comes from there.
func originText(origin, place any) string {
	at := func(v any) string {
		m := jsonObject(v)
		file, _ := m["file"].(string)
		return Printable(fmt.Sprintf("%s:%v", file, m["line"]))
	}
	switch o := origin.(type) {
	case string:
		if jsonObject(place) != nil {
			return o + " (" + at(place) + ")"
		}
		return Printable(o)
	case map[string]any:
		return at(o)
	}
	return ""
}

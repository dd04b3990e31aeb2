package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"fingerpost/api/client"
	"fingerpost/configsrc"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

// explainFiles adds to an answer from the files where the project's values come from.
func explainFiles(checked *configsrc.Checked, answer func(string) (resolution, error)) func(string) (resolution,
	error) {
	return func(domain string) (resolution, error) {
		r, err := answer(domain)
		if x := checked.Explain(r.Project); err == nil && x != nil {
			r.Explain = resolver.AppendExplained(nil, x)
		}
		return r, err
	}
}

// explainServer adds to a server's answer where the project's values come from.
func explainServer(ctx context.Context, c *client.Client, answer func(string) (resolution,
	error)) func(string) (resolution, error) {
	return func(domain string) (resolution, error) {
		r, err := answer(domain)
		if err != nil || !r.Found {
			return r, err
		}
		r.Explain, err = c.Explain(ctx, r.id)
		var refused *client.Error
		switch {
		case errors.As(err, &refused) && client.Status(err, http.StatusForbidden):
			return r, fmt.Errorf("--explain needs a key with read: %w", err)
		case errors.Is(err, client.ErrUnexplained):
			return r, no("%s does not tell where values come from: without --url, --explain answers from the files", c.URL())
		}
		return r, err
	}
}

// An explainedRow is a line of an explanation: the names are those of the files.
type explainedRow struct{ name, value, origin string }

// explanation decodes what view=full answers.
type explanation struct {
	values, origins, places map[string]any
}

// writeExplained writes the project's own values, the matched domain, the settings and the SMTP config, aligned.
func writeExplained(w io.Writer, document json.RawMessage, matched string) error {
	decoder := json.NewDecoder(strings.NewReader(string(document)))
	decoder.UseNumber() // ids are larger than what a float64 shows in full
	x := explanation{}
	if err := decoder.Decode(&x.values); err != nil {
		return fmt.Errorf("read the explanation: %w", err)
	}
	x.origins = jsonObject(x.values["origin"])
	x.places = jsonObject(x.origins["defaults"])
	rows := x.rows("", x.values, x.origins, nil,
		append(catalog.FieldNames(new(catalog.Project).AuditFields()), "id", "uuid")...)
	rows = append(rows, x.domain(matched)...)
	rows = append(rows, x.part("service_settings", "serviceSettings", new(catalog.ServiceSettings).Fields())...)
	rows = append(rows, x.part("auth_settings", "authSettings", new(catalog.AuthSettings).Fields())...)
	rows = append(rows, x.part("smtp_config", "smtpConfig", new(catalog.SMTPConfig).Fields())...)
	var name, value int
	for _, r := range rows {
		name, value = max(name, len(r.name)), max(value, utf8.RuneCountInString(r.value))
	}
	for _, r := range rows {
		gap := strings.Repeat(" ", value-utf8.RuneCountInString(r.value))
		line := fmt.Sprintf("    %-*s  %s%s  %s", name, r.name, r.value, gap, r.origin)
		if _, err := fmt.Fprintln(w, strings.TrimRight(line, " ")); err != nil {
			return err
		}
	}
	return nil
}

// domain returns the rows of the matched domain.
func (x *explanation) domain(matched string) []explainedRow {
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
func (x *explanation) part(block, field string, fields []catalog.Field) []explainedRow {
	values := jsonObject(x.values[field])
	if values == nil {
		return []explainedRow{{block, "none", ""}}
	}
	return x.rows(block+".", values, jsonObject(x.origins[field]), jsonObject(x.places[field]),
		catalog.FieldNames(fields)...)
}

// rows returns a row for each named value that the document has, or has the origin of: a secret.
func (x *explanation) rows(prefix string, values, origins, places map[string]any,
	names ...string) (rows []explainedRow) {
	for _, name := range names {
		value, known := values[name]
		origin, told := origins[name]
		if !known && !told {
			continue
		}
		r := explainedRow{prefix + catalog.Snake(name), shown(value), originText(origin, places[name])}
		if !known && r.origin != "built-in" {
			r.value = "(secret)"
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
			pairs = append(pairs, client.Printable(name)+" = "+shown(v[name]))
		}
		return "{" + strings.Join(pairs, ", ") + "}"
	}
	return client.Printable(fmt.Sprint(v))
}

// originText writes an origin. place is the line in the defaults block of a value that comes from there.
func originText(origin, place any) string {
	at := func(v any) string {
		m := jsonObject(v)
		file, _ := m["file"].(string)
		return client.Printable(fmt.Sprintf("%s:%v", file, m["line"]))
	}
	switch o := origin.(type) {
	case string:
		if jsonObject(place) != nil {
			return o + " (" + at(place) + ")"
		}
		return client.Printable(o)
	case map[string]any:
		return at(o)
	}
	return ""
}

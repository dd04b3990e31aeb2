package client

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"fingerpost/resolver/catalog"
)

// The fields that each API returns and accepts, besides id, uuid and owner. Other fields of the files are not in the
// API.
var (
	projectFields  = Fields(catalog.KindProject)
	domainFields   = Fields(catalog.KindDomain)
	serviceFields  = Fields(catalog.KindServiceSettings)
	authFields     = Fields(catalog.KindAuthSettings)
	smtpFields     = Fields(catalog.KindSMTPConfig)
	templateFields = Fields(catalog.KindTemplate)
)

// Fields names the fields that every service with the API returns and accepts of an object, besides id, uuid and owner.
func Fields(kind catalog.Kind) []string {
	return fieldsThat(kind, func(f *catalog.Field) bool { return !f.FileOnly && !f.Own })
}

// OwnFields names the fields that an answer with view=full has in addition. Other services ignore them.
func OwnFields(kind catalog.Kind) []string {
	return fieldsThat(kind, func(f *catalog.Field) bool { return f.Own })
}

// FlatFields names the settings that only the flat form of resolve returns. No call accepts them.
func FlatFields(kind catalog.Kind) []string {
	return fieldsThat(kind, func(f *catalog.Field) bool { return f.FileOnly && !f.Own && kind.Lasts() })
}

// fieldsThat names the fields of a kind's table, without secrets: no API returns them.
func fieldsThat(kind catalog.Kind, is func(f *catalog.Field) bool) (names []string) {
	for _, f := range catalog.NewFields(kind) {
		if _, secret := f.Value.(*catalog.Secret); !secret && is(&f) {
			names = append(names, f.Name)
		}
	}
	return names
}

// A row is one object as JSON.
type row map[string]json.RawMessage

// fill reads the named fields that are present. Null leaves a field that is not nullable as it is.
func (r row) fill(fields []catalog.Field, names []string) error {
	for _, f := range fields {
		raw, there := r[f.Name]
		if !there || !slices.Contains(names, f.Name) {
			continue
		}
		if err := decode(raw, f.Value); err != nil {
			return fmt.Errorf("field %s of the answer: %w", f.Name, err)
		}
	}
	return nil
}

// decode reads the value of a field.
func decode(raw json.RawMessage, into any) error {
	labels, is := into.(*[]catalog.Label)
	if !is {
		return json.Unmarshal(raw, into)
	}
	var values map[string]string
	if err := json.Unmarshal(raw, &values); err != nil {
		return err
	}
	*labels = nil
	for name, value := range values {
		*labels = append(*labels, catalog.Label{Name: name, Value: value})
	}
	catalog.SortLabels(*labels)
	return nil
}

// number reads an id, which one form of the API writes as a string.
func (r row) number(name string) int64 {
	n, err := strconv.ParseInt(strings.Trim(string(r[name]), `"`), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

func (r row) text(name string) (s string) {
	if json.Unmarshal(r[name], &s) != nil {
		return ""
	}
	return s
}

// time reads a time, zero if there is none.
func (r row) time(name string) time.Time {
	t, _ := catalog.ParseMoment(r.text(name))
	return t
}

func (r row) domain() (catalog.Domain, error) {
	d := catalog.Domain{ID: r.number("id"), ProjectID: r.number("projectId"), Active: true}
	return d, r.fill(d.AllFields(), domainFields)
}

// eachRow reads the rows of a list.
func eachRow[T any](rows []row, read func(row) (T, error)) ([]T, error) {
	list := make([]T, len(rows))
	for i, x := range rows {
		var err error
		if list[i], err = read(x); err != nil {
			return nil, err
		}
	}
	return list, nil
}

func (r row) summary() (s ProjectSummary, err error) {
	if s.Project, err = r.project(); err == nil {
		err = r.fill(s.Project.AllFields(), []string{"labels"})
	}
	s.PrimaryDomain, s.Domains = r.text("primaryDomain"), int(r.number("domainCount"))
	s.Mail, s.File = r.text("mail"), r.text("file")
	return s, err
}

func (r row) project() (catalog.Project, error) {
	p := catalog.Project{ID: r.number("id"), Status: catalog.StatusDraft, CreatedAt: r.time("createdAt"),
		UpdatedAt: r.time("updatedAt")}
	p.UUID, _ = catalog.ParseUUID(r.text("uuid"))
	err := r.fill(p.AllFields(), projectFields)
	p.Status = strings.ToUpper(p.Status) // one form of the API has it in lower case
	if err == nil && p.ID <= 0 {
		err = fmt.Errorf("project %q of the answer has no id", Printable(p.Slug))
	}
	return p, err
}

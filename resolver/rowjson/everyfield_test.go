package rowjson_test

import (
	"bytes"
	"testing"

	"fingerpost/resolver/catalog"
	"fingerpost/resolver/rowjson"
)

// alter gives a field another value. It reports false for a secret, which no answer shows.
func alter(t *testing.T, f *catalog.Field) bool {
	t.Helper()
	no, text := false, "altered"
	switch v := f.Value.(type) {
	case *bool:
		*v = !*v
	case **bool:
		*v = &no
	case *int:
		*v++
	case *string:
		*v += "x"
	case **string:
		*v = &text
	case *[]string:
		*v = append(*v, "altered")
	case *[]catalog.Label:
		*v = []catalog.Label{{Name: "altered", Value: "x"}}
	case *catalog.Locales:
		*v = catalog.Locales{{Tag: "de"}}
	case *catalog.Secret:
		return false
	default:
		t.Fatalf("%s has a value of the type %T: alter cannot change it", f.Name, v)
	}
	return true
}

// TestEveryFieldIsShown: an answer's ETag covers each field that a request can set, or else If-Match would miss the change
// of another client, and view=full shows each field but the secrets, or else an import would lose it.
func TestEveryFieldIsShown(t *testing.T) {
	t.Parallel()
	fresh := func() *catalog.ProjectConfig {
		return &catalog.ProjectConfig{Service: catalog.NewServiceSettings(), Auth: catalog.NewAuthSettings(),
			Domains: make([]catalog.Domain, 1), SMTP: new(catalog.SMTPConfig), Templates: make([]catalog.Template, 1)}
	}
	full := func(c *catalog.ProjectConfig) []byte {
		return rowjson.AppendExplained(nil, &catalog.Explained{Config: *c, Domains: make([]catalog.Origins, 1)})
	}
	for kind, part := range map[catalog.Kind]struct {
		fields func(c *catalog.ProjectConfig) []catalog.Field
		tag    func(c *catalog.ProjectConfig) string
		full   bool // view=full has the part
	}{
		catalog.KindProject: {func(c *catalog.ProjectConfig) []catalog.Field { return c.Project.AllFields() },
			func(c *catalog.ProjectConfig) string { return rowjson.ProjectETag(&c.Project) }, true},
		catalog.KindDomain: {func(c *catalog.ProjectConfig) []catalog.Field { return c.Domains[0].AllFields() },
			func(c *catalog.ProjectConfig) string { return rowjson.DomainETag(&c.Domains[0]) }, true},
		catalog.KindServiceSettings: {func(c *catalog.ProjectConfig) []catalog.Field { return c.Service.Fields() },
			func(c *catalog.ProjectConfig) string { return rowjson.ServiceSettingsETag(1, &c.Service) }, true},
		catalog.KindAuthSettings: {func(c *catalog.ProjectConfig) []catalog.Field { return c.Auth.Fields() },
			func(c *catalog.ProjectConfig) string { return rowjson.AuthSettingsETag(1, &c.Auth) }, true},
		catalog.KindSMTPConfig: {func(c *catalog.ProjectConfig) []catalog.Field { return c.SMTP.Fields() },
			func(c *catalog.ProjectConfig) string { return rowjson.SMTPConfigETag(1, c.SMTP) }, true},
		catalog.KindTemplate: {func(c *catalog.ProjectConfig) []catalog.Field { return c.Templates[0].AllFields() },
			func(c *catalog.ProjectConfig) string { return rowjson.TemplateETag(&c.Templates[0]) }, false},
	} {
		was := fresh()
		for i, f := range part.fields(was) {
			is := fresh()
			if !alter(t, &part.fields(is)[i]) {
				continue
			}
			if !f.FileOnly && part.tag(is) == part.tag(was) {
				t.Errorf("the ETag of a %s does not cover %s: see rows.go", kind, f.Name)
			}
			if part.full && bytes.Equal(full(is), full(was)) {
				t.Errorf("AppendExplained does not show %s of a %s: see full.go", f.Name, kind)
			}
		}
	}
}

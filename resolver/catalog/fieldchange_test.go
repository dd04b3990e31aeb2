package catalog_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"fingerpost/resolver/catalog"
)

// change gives a field a value that it does not have.
func change(v reflect.Value) {
	switch v.Interface().(type) {
	case time.Time:
		v.Set(reflect.ValueOf(time.Unix(1, 0)))
	case catalog.Secret:
		v.Set(reflect.ValueOf(catalog.Secret{Source: catalog.SecretEnv, Ref: "X"}))
	case catalog.Permission:
		v.Set(reflect.ValueOf(catalog.MayRead))
	case []catalog.Label:
		v.Set(reflect.ValueOf([]catalog.Label{{Name: "plan", Value: "gold"}}))
	case catalog.Locales:
		v.Set(reflect.ValueOf(catalog.Locales{{Tag: "de", SubjectTemplate: "x"}}))
	case []catalog.Secret:
		v.Set(reflect.ValueOf([]catalog.Secret{{Source: catalog.SecretEnv, Ref: "X"}}))
	case []string:
		v.Set(reflect.ValueOf([]string{"x"}))
	default:
		if v.Kind() == reflect.Pointer {
			v.Set(reflect.New(v.Type().Elem()))
			change(v.Elem())
			return
		}
		switch v.Kind() {
		case reflect.Bool:
			v.SetBool(!v.Bool())
		case reflect.Int, reflect.Int64:
			v.SetInt(v.Int() + 7)
		case reflect.Uint32:
			v.SetUint(v.Uint() ^ 1)
		case reflect.Uint8:
			v.SetUint(v.Uint() + 1)
		case reflect.Array:
			change(v.Index(0))
		case reflect.String:
			v.SetString(v.String() + "x")
		default:
			panic("a field of type " + v.Type().String())
		}
	}
}

func TestFieldChanges(t *testing.T) {
	t.Parallel()
	secret := func(source catalog.SecretSource, ref string) *catalog.Secret {
		return &catalog.Secret{Source: source, Ref: ref}
	}
	field := func(v any) []catalog.Field { return []catalog.Field{{Name: "f", Value: v}} }
	text := func(s string) *string { return &s }
	long := strings.Repeat("é", catalog.MaxAuditText)
	for name, c := range map[string]struct {
		before, after []catalog.Field
		want          []catalog.FieldChange
	}{
		"equal":      {field(text("a")), field(text("a")), nil},
		"created":    {nil, field(text("a")), []catalog.FieldChange{{Field: "f", After: "a"}}},
		"empty":      {nil, field(text("")), nil},
		"removed":    {field(text("a")), nil, []catalog.FieldChange{{Field: "f", Before: "a"}}},
		"sealed":     {field(secret(catalog.SecretSealed, "a")), field(secret(catalog.SecretSealed, "b")), []catalog.FieldChange{{Field: "f", Secret: true}}},
		"plain":      {field(secret(catalog.SecretEnv, "a")), field(secret(catalog.SecretPlain, "b")), []catalog.FieldChange{{Field: "f", Secret: true}}},
		"expression": {nil, field(secret(catalog.SecretEnv, "A")), []catalog.FieldChange{{Field: "f", After: `env("A")`}}},
		"file":       {field(secret(catalog.SecretFile, "a")), field(new(catalog.Secret)), []catalog.FieldChange{{Field: "f", Before: `file("a")`}}},
		"one of a list": {field([]catalog.Secret{*secret(catalog.SecretEnv, "A")}), field([]catalog.Secret(nil)),
			[]catalog.FieldChange{{Field: "f", Before: `env("A")`}}},
		"list of places": {nil, field([]catalog.Secret{*secret(catalog.SecretEnv, "A"), *secret(catalog.SecretFile, "b")}),
			[]catalog.FieldChange{{Field: "f", After: []string{`env("A")`, `file("b")`}}}},
		"list of secrets": {field([]catalog.Secret{*secret(catalog.SecretEnv, "A")}),
			field([]catalog.Secret{*secret(catalog.SecretEnv, "A"), *secret(catalog.SecretPlain, "b")}),
			[]catalog.FieldChange{{Field: "f", Secret: true}}},
		"no list":      {field([]string{"a"}), field([]string(nil)), []catalog.FieldChange{{Field: "f", Before: []string{"a"}}}},
		"an empty one": {field([]string{"a"}), field([]string{}), []catalog.FieldChange{{Field: "f", Before: []string{"a"}, After: []string{}}}},
		"labels": {nil, field(&[]catalog.Label{{Name: "plan", Value: "gold"}}),
			[]catalog.FieldChange{{Field: "f", After: map[string]string{"plan": "gold"}}}},
	} {
		if got := catalog.FieldChanges(c.before, c.after); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
	got := catalog.AuditChanges(nil, field(&long))[0].After.(string)
	if !strings.HasPrefix(got, long[:catalog.MaxAuditText]+"… (2048 bytes, SHA-256 ") || len(got) > catalog.MaxAuditText+120 {
		t.Errorf("a long text: %q", got)
	}
	defaults := catalog.Defaults{Service: &catalog.ServiceSettings{AuditRetentionDays: 30, Said: catalog.FieldSet(0).With(5)}}
	if got := catalog.FieldChanges(nil, defaults.AllFields()); !reflect.DeepEqual(got,
		[]catalog.FieldChange{{Field: "serviceSettings.auditRetentionDays", After: int64(30)}}) {
		t.Errorf("defaults: %v", got)
	}
	relay := catalog.Defaults{SMTP: &catalog.SMTPConfig{Host: "relay.example"}}
	if got := catalog.FieldChanges(nil, relay.AllFields()); len(got) == 0 || got[0].Field != "smtpConfig.host" {
		t.Errorf("the relay of the defaults: %v", got)
	}
	a, b := catalog.Key{Hash: [32]byte{1}}, catalog.Key{Hash: [32]byte{2}}
	if got := catalog.FieldChanges(a.AllFields(), b.AllFields()); !reflect.DeepEqual(got, []catalog.FieldChange{{Field: "key", Secret: true}}) {
		t.Errorf("a new key text: %v", got)
	}
}

package catalog_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"fingerpost/resolver/catalog"
)

// say sets the named fields to values other than the built-in ones, and marks them as set.
func say(t *testing.T, fields []catalog.Field, said *catalog.FieldSet, names ...string) {
	t.Helper()
	for _, name := range names {
		i := slices.IndexFunc(fields, func(f catalog.Field) bool { return f.Name == name })
		if i < 0 {
			t.Fatalf("there is no field %q", name)
		}
		*said = said.With(i)
		switch v := fields[i].Value.(type) {
		case *bool:
			*v = !*v
		case *int:
			*v += 7
		case *string:
			*v = "said-" + name
		case **string:
			text := "said-" + name
			*v = &text
		case *[]string:
			*v = []string{"said-" + name}
		case *catalog.Secret:
			*v = catalog.Secret{Source: catalog.SecretEnv, Ref: name}
		default:
			t.Fatalf("field %q has the type %T", name, v)
		}
	}
}

func names(fields []catalog.Field) []string {
	var out []string
	for _, f := range fields {
		out = append(out, f.Name)
	}
	return out
}

// value dereferences pointers, so that two fields of two values can be compared.
func value(f catalog.Field) any {
	switch v := f.Value.(type) {
	case *bool:
		return *v
	case *int:
		return *v
	case *string:
		return *v
	case **string:
		if *v == nil {
			return nil
		}
		return **v
	case *[]string:
		return strings.Join(*v, " ")
	case *catalog.Secret:
		return *v
	}
	return f.Value
}

// TestAuthOver goes through every field: the project's value wins, then that of defaults, then the built-in one.
func TestAuthOver(t *testing.T) {
	builtin := catalog.NewAuthSettings()
	for i, name := range names(builtin.Fields()) {
		own, defaults := catalog.NewAuthSettings(), catalog.NewAuthSettings()
		say(t, defaults.Fields(), &defaults.Said, name)
		wantDefault := value(defaults.Fields()[i])

		got := own.Over(&defaults)
		if value(got.Fields()[i]) != wantDefault {
			t.Errorf("%s: %v in force, defaults say %v", name, value(got.Fields()[i]), wantDefault)
		}
		for j, other := range builtin.Fields() {
			if j != i && value(got.Fields()[j]) != value(other) {
				t.Errorf("%s changed by a default for %s", other.Name, name)
			}
		}
		if value(own.Fields()[i]) != value(builtin.Fields()[i]) || own.Said != 0 {
			t.Errorf("%s: Over changed its receiver", name)
		}

		// A field that is set wins, even with the built-in value.
		own.Said = own.Said.With(i)
		if got := own.Over(&defaults); value(got.Fields()[i]) != value(builtin.Fields()[i]) {
			t.Errorf("%s: %v in force, the project says %v", name, value(got.Fields()[i]), value(builtin.Fields()[i]))
		}
		// A value in defaults that is not marked as set is ignored.
		own.Said, defaults.Said = 0, 0
		if got := own.Over(&defaults); value(got.Fields()[i]) != value(builtin.Fields()[i]) {
			t.Errorf("%s: an unsaid default is in force", name)
		}
	}
	if got := builtin.Over(nil); !reflect.DeepEqual(got, builtin) {
		t.Errorf("Over(nil) = %+v", got)
	}
}

func TestServiceOver(t *testing.T) {
	builtin := catalog.NewServiceSettings()
	for i, name := range names(builtin.Fields()) {
		own, defaults := catalog.NewServiceSettings(), catalog.NewServiceSettings()
		say(t, defaults.Fields(), &defaults.Said, name)
		got := own.Over(&defaults)
		if value(got.Fields()[i]) != value(defaults.Fields()[i]) {
			t.Errorf("%s: the default is not in force", name)
		}
		own.Said = own.Said.With(i)
		got = own.Over(&defaults)
		if value(got.Fields()[i]) != value(builtin.Fields()[i]) {
			t.Errorf("%s: the project's own value is not in force", name)
		}
	}
	if got := builtin.Over(nil); got != builtin {
		t.Errorf("Over(nil) = %+v", got)
	}
	if got := builtin.Over(&catalog.ServiceSettings{}); got != builtin {
		t.Errorf("Over(defaults that say nothing) = %+v", got)
	}
}

// TestBuiltIn holds the values of api/README.md, Projects and Resolve.
func TestBuiltIn(t *testing.T) {
	want := catalog.AuthSettings{
		RegistrationMode: "OPEN",
		Token: catalog.TokenSettings{
			JWTEnabled: true, JWTExpiresIn: "15m", RefreshTokenEnabled: true, RefreshTokenExpiresIn: "30d", SessionTimeout: 3600,
		},
		Password: catalog.PasswordRules{MinLength: 8},
		Rules:    catalog.TokenRules{Algorithms: []string{"HS256"}},
	}
	auth, service := catalog.NewAuthSettings(), catalog.NewServiceSettings()
	if !reflect.DeepEqual(auth, want) {
		t.Errorf("NewAuthSettings = %+v, want %+v", auth, want)
	}
	if service != (catalog.ServiceSettings{AuditRetentionDays: 90}) {
		t.Errorf("NewServiceSettings = %+v", service)
	}
	if ps := append(auth.Validate(), service.Validate()...); len(ps) > 0 {
		t.Errorf("the built-in values are invalid: %v", ps)
	}
}

func TestAuthValidate(t *testing.T) {
	f := func(change func(a *catalog.AuthSettings), want ...string) {
		t.Helper()
		a := catalog.NewAuthSettings()
		change(&a)
		if got := paths(a.Validate()); !slices.Equal(got, want) {
			t.Errorf("Validate(%+v): problems on %q, want %q", a, got, want)
		}
	}
	f(func(a *catalog.AuthSettings) { a.RegistrationMode = "INVITE_ONLY" })
	f(func(a *catalog.AuthSettings) { a.RegistrationMode = "open" }, "registrationMode")
	f(func(a *catalog.AuthSettings) { a.RegistrationMode = "" }, "registrationMode")
	for _, good := range []string{"1s", "15m", "24h", "30d", "4w", "999999s"} {
		f(func(a *catalog.AuthSettings) { a.Token.JWTExpiresIn, a.Token.RefreshTokenExpiresIn = good, good })
	}
	for _, bad := range []string{"", "15", "m", "0m", "015m", "-1m", "1.5h", "15 m", "15m\n", "15M", "1h30m", "1000000s", "15min"} {
		f(func(a *catalog.AuthSettings) { a.Token.JWTExpiresIn = bad }, "jwtExpiresIn")
		f(func(a *catalog.AuthSettings) { a.Token.RefreshTokenExpiresIn = bad }, "refreshTokenExpiresIn")
	}
	f(func(a *catalog.AuthSettings) { a.Token.SessionTimeout = 0 }, "sessionTimeout")
	f(func(a *catalog.AuthSettings) { a.Token.SessionTimeout = 31536001 }, "sessionTimeout")
	f(func(a *catalog.AuthSettings) { a.Password.MinLength = -1 }, "passwordMinLength")
	f(func(a *catalog.AuthSettings) { a.Password.MinLength = 1025 }, "passwordMinLength")
	f(func(a *catalog.AuthSettings) { *a = catalog.AuthSettings{} },
		"registrationMode", "jwtExpiresIn", "refreshTokenExpiresIn", "sessionTimeout", "passwordMinLength")
}

func TestServiceValidate(t *testing.T) {
	f := func(days int, provider *string, want ...string) {
		t.Helper()
		s := catalog.NewServiceSettings()
		s.AuditRetentionDays, s.SMSProvider = days, provider
		if got := paths(s.Validate()); !slices.Equal(got, want) {
			t.Errorf("days %d: problems on %q, want %q", days, got, want)
		}
	}
	empty, none, long := "", "none", strings.Repeat("a", 65)
	f(1, nil)
	f(36500, &none)
	f(0, nil, "auditRetentionDays")
	f(36501, &empty, "auditRetentionDays", "smsProvider")
	f(90, &long, "smsProvider")
}

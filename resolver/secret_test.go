package resolver_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

// A lock is a fake opener that counts how often each secret is opened.
type lock struct {
	mu     sync.Mutex
	values map[string]string // by Ref; other secrets cannot be opened
	opened map[string]int
}

func (l *lock) open(s catalog.Secret, _ string) (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.opened == nil {
		l.opened = map[string]int{}
	}
	l.opened[s.Ref]++
	if v, ok := l.values[s.Ref]; ok {
		return v, nil
	}
	return "", errors.New("the environment variable " + s.Ref + " is not set")
}

func (l *lock) count(ref string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.opened[ref]
}

func withSecret(slug string, source catalog.SecretSource, ref string, domains ...string) catalog.ProjectConfig {
	p := block(slug, domains...)
	p.Service.AuthEnabled, p.Service.Said = true, catalog.FieldSet(0).With(0)
	p.Auth.Token.JWTSecret = catalog.Secret{Source: source, Ref: ref}
	return p
}

// A secret that cannot be opened is null in the flat form: everything else is there, and SecretProblems names it.
func TestFlatWithoutItsSecret(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		opener func(catalog.Secret, string) (string, error)
		want   string
	}{
		"no opener": {nil, "secrets cannot be opened on this node"},
		"unset":     {new(lock).open, "the environment variable UNSET is not set"},
		"empty":     {(&lock{values: map[string]string{"UNSET": ""}}).open, "the jwt_secret is empty"},
	} {
		var log bytes.Buffer
		r := open(t, resolver.Options{OpenSecret: c.opener, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		off := withSecret("acme", catalog.SecretEnv, "UNSET", "acme.example")
		off.Service.AuthEnabled = false
		apply(t, r, file("acme.hcl", off, block("none", "none.example")))
		for range 2 {
			for _, domain := range []string{"acme.example", "none.example"} {
				a, err := r.Resolve([]byte(domain), resolver.FlatSecrets)
				if err != nil || !strings.Contains(string(a.Data), `"jwtSecret":null`) {
					t.Fatalf("%s, %s: %v, want the answer with jwtSecret null", name, domain, err)
				}
			}
		}
		got := r.SecretProblems()
		if len(got) != 1 || got[0].Slug != "acme" || got[0].Message != c.want || got[0].Warning {
			t.Errorf("%s: problems %+v, want one of acme: %s", name, got, c.want)
		}
		if n := strings.Count(log.String(), c.want); n != 1 {
			t.Errorf("%s: the log names it %d times, want once: %s", name, n, log.String())
		}
	}
}

// tokenSecret asks for the secret of a domain's project.
func tokenSecret(t *testing.T, r *resolver.Resolver, domain string) (string, catalog.Code) {
	t.Helper()
	secret, err := r.TokenSecret(resolve(t, r, domain, resolver.Tokens))
	if err != nil {
		return "", code(err)
	}
	return string(secret), ""
}

func TestTokenSecret(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("s", 32)
	l := &lock{values: map[string]string{"ACME": long, "SHORT": "short", "NEW": long + "new"}}
	r := open(t, resolver.Options{OpenSecret: l.open})
	disabled := withSecret("disabled", catalog.SecretEnv, "ACME", "disabled.example")
	disabled.Auth.Token.JWTEnabled = false
	quiet := withSecret("quiet", catalog.SecretNone, "", "quiet.example")
	quiet.Service.AuthEnabled = false
	projects := []catalog.ProjectConfig{
		withSecret("acme", catalog.SecretEnv, "ACME", "acme.example", "*.acme.example"), withSecret("globex", catalog.SecretEnv, "SHORT", "globex.example"),
		withSecret("plain", catalog.SecretPlain, "SHORT", "plain.example"), withSecret("unset", catalog.SecretEnv, "UNSET", "unset.example"),
		withSecret("none", catalog.SecretNone, "", "none.example"), disabled, quiet,
	}
	apply(t, r, file("all.hcl", projects...))
	check := func(domain, secret string, code catalog.Code) {
		t.Helper()
		if s, c := tokenSecret(t, r, domain); s != secret || c != code {
			t.Errorf("%s: %q %s, want %q %s", domain, s, c, secret, code)
		}
	}
	for range 3 {
		check("acme.example", long, "")
		check("a.b.acme.example", long, "")
		check("globex.example", "short", "")
		check("plain.example", "short", "")
		check("unset.example", "", catalog.CodeUnavailable)
		check("none.example", "", catalog.CodeUnavailable)
		check("quiet.example", "", catalog.CodeUnavailable)
		check("disabled.example", "", catalog.CodeAuthDisabled)
	}
	if n := l.count("ACME"); n != 1 {
		t.Errorf("the secret of acme was opened %d times, want once", n)
	}
	var problems []string
	for _, p := range r.SecretProblems() {
		word := p.Slug + ": " + p.Message
		if p.Warning {
			word = "warning: " + word
		}
		problems = append(problems, word)
	}
	want := []string{
		"warning: globex: is shorter than 32 bytes: one token is enough to try out short secrets; use 32 random bytes",
		"none: no jwt_secret is given",
		"unset: the environment variable UNSET is not set",
	}
	if strings.Join(problems, "\n") != strings.Join(want, "\n") {
		t.Errorf("problems:\n%s\nwant\n%s", strings.Join(problems, "\n"), strings.Join(want, "\n"))
	}

	// An unrelated change keeps the opened secret; a change of the secret takes effect at once.
	projects[0].Project.Name = "Renamed"
	apply(t, r, file("all.hcl", projects...))
	check("acme.example", long, "")
	if n := l.count("ACME"); n != 1 {
		t.Errorf("after a change of the name the secret was opened %d times, want once", n)
	}
	projects[0].Auth.Token.JWTSecret.Ref = "NEW"
	apply(t, r, file("all.hcl", projects...))
	check("acme.example", long+"new", "")
	check("x.acme.example", long+"new", "")

	// A removed project has no problem any more.
	apply(t, r, file("all.hcl", projects[0]))
	if got := r.SecretProblems(); len(got) != 0 {
		t.Errorf("problems of projects that are gone: %+v", got)
	}

	// SIGHUP: the variable may have another value.
	l.mu.Lock()
	l.values["NEW"] = long
	l.mu.Unlock()
	check("acme.example", long+"new", "")
	r.ForgetSecrets()
	check("acme.example", long, "")
}

// The defaults block can also supply secrets.
func TestTokenSecretFromDefaults(t *testing.T) {
	t.Parallel()
	l := &lock{values: map[string]string{"A": "first", "B": "second"}}
	r := open(t, resolver.Options{OpenSecret: l.open})
	apply(t, r, file("a.hcl", block("a", "a.example")))
	for _, ref := range []string{"A", "B"} {
		auth := catalog.NewAuthSettings()
		auth.Token.JWTSecret = catalog.Secret{Source: catalog.SecretEnv, Ref: ref}
		for i, f := range auth.Fields() {
			if f.Name == "jwtSecret" {
				auth.Said = auth.Said.With(i)
			}
		}
		d := file("defaults.hcl")
		d.Declared.Defaults = &catalog.Defaults{Auth: &auth}
		apply(t, r, d)
		if s, c := tokenSecret(t, r, "a.example"); s != l.values[ref] {
			t.Errorf("defaults say %s: %q %s", ref, s, c)
		}
	}
}

// A file is read again after a while, because it can be replaced without a change of its declaration; not at each
// request.
func TestTokenSecretFromAFile(t *testing.T) {
	t.Parallel()
	now := noon
	l := &lock{values: map[string]string{"jwt.txt": "first"}}
	r := open(t, resolver.Options{OpenSecret: l.open, Now: func() time.Time { return now }})
	apply(t, r, file("a.hcl", withSecret("a", catalog.SecretFile, "jwt.txt", "a.example")))
	check := func(want string, reads int) {
		t.Helper()
		if s, c := tokenSecret(t, r, "a.example"); s != want || l.count("jwt.txt") != reads {
			t.Errorf("%q %s after %d reads, want %q after %d", s, c, l.count("jwt.txt"), want, reads)
		}
	}
	check("first", 1)
	l.values["jwt.txt"] = "second"
	now = now.Add(4 * time.Second)
	check("first", 1)
	now = now.Add(time.Second)
	check("second", 2)
	check("second", 2)
}

// Many concurrent requests open a secret once.
func TestTokenSecretSingleFlight(t *testing.T) {
	t.Parallel()
	l := &lock{values: map[string]string{"A": "secret"}}
	r := open(t, resolver.Options{OpenSecret: l.open})
	apply(t, r, file("a.hcl", withSecret("a", catalog.SecretEnv, "A", "a.example")))
	answer := resolve(t, r, "a.example", resolver.Tokens)
	var wg sync.WaitGroup
	for range 32 {
		wg.Go(func() {
			if s, err := r.TokenSecret(answer); err != nil || string(s) != "secret" {
				t.Errorf("%q, %v", s, err)
			}
		})
	}
	wg.Wait()
	if n := l.count("A"); n != 1 {
		t.Errorf("opened %d times", n)
	}
}

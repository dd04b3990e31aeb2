package resolver_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
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

// set gives a secret another value; "" removes it.
func (l *lock) set(ref, value string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.values[ref] = value; value == "" {
		delete(l.values, ref)
	}
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
	keys, err := r.TokenKeys(resolve(t, r, domain, resolver.Tokens))
	if err != nil {
		return "", code(err)
	}
	return string(keys.Secret), ""
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
			if k, err := r.TokenKeys(answer); err != nil || string(k.Secret) != "secret" {
				t.Errorf("%v, %v", k, err)
			}
		})
	}
	wg.Wait()
	if n := l.count("A"); n != 1 {
		t.Errorf("opened %d times", n)
	}
}

// TestTokenKeysFromFiles: keys are read again after a while, each counts or fails on its own, and the identity of what
// verifies tokens changes with the content alone.
func TestTokenKeysFromFiles(t *testing.T) {
	t.Parallel()
	pemOf := func() string {
		public, _, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		der, err := x509.MarshalPKIXPublicKey(public)
		if err != nil {
			t.Fatal(err)
		}
		return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
	}
	one, two := pemOf(), pemOf()
	now := noon
	l := &lock{values: map[string]string{"one.pem": one, "two.pem": two}}
	r := open(t, resolver.Options{OpenSecret: l.open, Now: func() time.Time { return now }})
	p := block("a", "a.example")
	p.Service.AuthEnabled = true
	p.Auth.Rules = catalog.TokenRules{Algorithms: []string{"EdDSA"}, Keys: []string{catalog.FileText("one.pem"), catalog.FileText("two.pem")}}
	apply(t, r, file("a.hcl", p))
	check := func(want int, problem string) *resolver.TokenKeys {
		t.Helper()
		now = now.Add(5 * time.Second)
		keys, err := r.TokenKeys(resolve(t, r, "a.example", resolver.Gateway))
		if want == 0 {
			if !errors.Is(err, resolver.ErrNoTokenKeys) {
				t.Errorf("%v, want ErrNoTokenKeys", err)
			}
		} else if err != nil || len(keys.Public) != want {
			t.Errorf("%+v %v, want %d keys", keys, err, want)
		}
		problems := r.SecretProblems()
		if told := len(problems) == 1 && problems[0].Field == "jwtKeys" && strings.Contains(problems[0].Message, problem); told != (problem != "") || len(problems) > 1 {
			t.Errorf("problems %+v, want %q", problems, problem)
		}
		return keys
	}
	first := check(2, "")
	if again := check(2, ""); again != first {
		t.Error("the same content, and other keys")
	}
	l.set("two.pem", "")
	if without := check(1, "entry 2"); without.Identity == first.Identity {
		t.Error("a key is gone, and the identity is the same")
	}
	check(1, "entry 2") // and it is still told
	l.set("two.pem", "garbage")
	check(1, "entry 2 is neither PEM nor a JWK")
	l.set("one.pem", "")
	check(0, "entry 1")
	l.mu.Lock()
	l.values["two.pem"] = "" // an empty file next to one that is gone
	l.mu.Unlock()
	check(0, "one.pem is not set; entry 2: the file is empty")
	l.set("one.pem", one)
	l.set("two.pem", two)
	if back := check(2, ""); back.Identity != first.Identity {
		t.Error("the same content, and another identity")
	}
	now = now.Add(-time.Hour) // a clock that is set back
	l.set("one.pem", two)
	if other := check(2, ""); other.Identity == first.Identity {
		t.Error("another key, and the same identity")
	}
}

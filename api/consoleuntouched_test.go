package api_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"fingerpost/cmd/testrig"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

// A formState is a project in which one resource has one state.
type formState struct {
	slug, kind, part string // part: the domain or the code of the template
	state            string // for messages
	own              string // the attributes that the file has
	path             string // of the form, filled in by find
}

// formNouns lists the fields of each kind.
func formNouns() map[string][]catalog.Field {
	return map[string][]catalog.Field{
		"project": new(catalog.Project).AllFields(), "domain": new(catalog.Domain).AllFields(),
		"service-settings": new(catalog.ServiceSettings).Fields(), "auth-settings": new(catalog.AuthSettings).Fields(),
		"smtp-config": new(catalog.SMTPConfig).Fields(), "template": new(catalog.Template).AllFields(),
	}
}

// formBases are attributes that a block of a kind cannot do without.
var formBases = map[string]map[string]string{
	"project":     {"name": `"Acme"`},
	"smtp-config": {"host": `"mail.example"`, "from_email": `"shop@acme.example"`},
	"template":    {"name": `"T"`, "subject_template": `"S"`, "body_text": `"B"`},
}

// formTexts are values of texts; any other field that is a text gets "30m".
var formTexts = map[string][]string{
	"name":            {`"Acme Shop"`, `"  spaces around  "`, `"\"quotes\" <b>&amp; $${x}"`},
	"description":     {`"one line"`, `""`, `"two\nlines\n"`, `"old\r\nline ends\r\n"`, `"\n  first line empty"`},
	"subjectTemplate": {`" Hello {{name}} "`},
	"bodyHtml":        {`"<p>{{name}}</p>\r\n<p>&amp;</p>\r\n"`, `"\n\n<p>x</p>\n"`},
	"bodyText":        {`"Hello\r\nthere"`, `"\nHello </textarea><script>\n"`},
	"maxAge":          {`"10m"`, `"24h"`},
	"category":        {`"newsletter"`},
	"verified":        {`"pending"`, `"lost"`, `"2026-11-24"`},
	"host":            {`"192.0.2.1"`},
	"username":        {`"user"`, `" user "`},
	"fromEmail":       {`"other@acme.example"`},
	"fromName":        {`"The Shop"`, `" The  Shop"`},
	"replyTo":         {`"reply@acme.example"`},
	"smsProvider":     {`"twilio"`},
	"ehloName":        {`"mail.acme.example"`},
	"auth":            {`"plain"`, `"cram-md5"`},
	"oauthTokenUrl":   {`"https://login.acme.example/token"`},
	"caFile":          nil, // needs a certificate
	"slug":            nil, "domain": nil, "code": nil,
}

// formValues returns the values of a field, as files have them.
func formValues(f catalog.Field) (values []string) {
	switch f.Value.(type) {
	case *bool, **bool:
		return []string{"true", "false"}
	case *int:
		return []string{"30"}
	case *catalog.Secret:
		return []string{`env("STORY_SECRET")`}
	case *[]catalog.Label:
		return []string{`{ plan = "gold" }`, `{ plan = " gold ", shard = "a=b" }`, `{}`}
	case *catalog.Locales:
		return nil // in blocks
	}
	if list, is := map[string][]string{"jwtAlgorithms": {`["HS256"]`}, "jwtKeys": {`[]`}, "jwksUrl": {"null"},
		"dkimSelectors": {`["s1"]`, `["s1", "s2"]`}}[f.Name]; is {
		return list
	}
	for _, v := range f.OneOf {
		if v != catalog.AuthXOAUTH2 { // which needs other fields
			values = append(values, strconv.Quote(v))
		}
	}
	if texts, has := formTexts[f.Name]; has || f.OneOf != nil {
		return append(values, texts...)
	}
	return []string{`"30m"`}
}

// A formFolder collects projects, one for each state.
type formFolder struct {
	files  map[string]string
	states []*formState
}

// add declares a project whose resource has the attributes.
func (f *formFolder) add(kind, part string, attrs map[string]string) {
	slug := fmt.Sprintf("s%d", len(f.states))
	var inner strings.Builder
	for _, name := range slices.Sorted(maps.Keys(attrs)) {
		if strings.HasPrefix(name, "locale ") { // a block
			fmt.Fprintf(&inner, "%s %s\n", name, attrs[name])
		} else {
			fmt.Fprintf(&inner, "%s = %s\n", name, attrs[name])
		}
	}
	block := strings.ReplaceAll(kind, "-", "_")
	switch kind {
	case "domain", "template":
		part = strings.ReplaceAll(part, "SLUG", slug)
		block = fmt.Sprintf("%s %q", kind, part)
	}
	text := fmt.Sprintf("project %q {\n%s}\n", slug, inner.String())
	if kind != "project" {
		if block += " {\n" + inner.String() + "}\n"; len(attrs) == 0 && kind != "domain" {
			block = ""
		}
		text = fmt.Sprintf("project %q {\nname = \"Acme\"\n%s}\n", slug, block)
	}
	f.files[slug+".hcl"] = text
	f.states = append(f.states, &formState{slug: slug, kind: kind, part: part, own: inner.String(),
		state: strings.ReplaceAll(strings.TrimSpace(kind+" "+part+" "+inner.String()), "\n", ", ")})
}

// everyState adds each state of each field of each kind, alone, and the fields that belong together in all their states.
func (f *formFolder) everyState() {
	nouns := formNouns()
	for _, kind := range slices.Sorted(maps.Keys(nouns)) {
		parts := map[string][]string{"domain": {"SLUG.example", "*.SLUG.example"}, "template": {"CODE"}}[kind]
		if parts == nil {
			parts = []string{""}
		}
		for _, part := range parts {
			f.add(kind, part, maps.Clone(formBases[kind]))
			for _, field := range nouns[kind] {
				for _, value := range formValues(field) {
					attrs := map[string]string{}
					maps.Copy(attrs, formBases[kind])
					if attrs[catalog.Snake(field.Name)] = value; field.Name == "password" {
						attrs["username"] = `"user"`
					}
					f.add(kind, part, attrs)
				}
			}
		}
	}
	languages := maps.Clone(formBases["template"])
	languages[`locale "de"`] = "{\nsubject_template = \" Hallo \"\nbody_text = \"a\\r\\nb\"\n}"
	languages[`locale "pt-BR"`] = "{\nsubject_template = \"Olá\"\nbody_html = \"\\n<p>\"\n}"
	f.add("template", "CODE", languages)
	f.add("smtp-config", "", nil)                                                      // none of its own
	f.add("smtp-config", "", map[string]string{"from_email": `"sender@acme.example"`}) // a sender alone
	f.together("auth-settings", map[string][]string{"registration_mode": {"", `"OPEN"`, `"APPROVAL_REQUIRED"`, `"INVITE_ONLY"`},
		"approval_required": {"", "true", "false"}, "invite_only": {"", "true", "false"}})
	f.add("auth-settings", "", map[string]string{"jwt_algorithms": `["RS256", "ES256"]`, "jwks_url": `"https://a.example/"`})
	f.add("auth-settings", "", map[string]string{"jwt_algorithms": `["EdDSA"]`, "jwt_keys": `[file("b.pem"), file("a.pem")]`})
	f.together("smtp-config", map[string][]string{"port": {"", "465", "2525"}, "ssl_enabled": {"", "true", "false"},
		"tls_enabled": {"", "true", "false"}})
}

// together adds all combinations; "" leaves an attribute out.
func (f *formFolder) together(kind string, choices map[string][]string) {
	all := []map[string]string{maps.Clone(formBases[kind])}
	for _, name := range slices.Sorted(maps.Keys(choices)) {
		var more []map[string]string
		for _, have := range all {
			for _, value := range choices[name] {
				next := map[string]string{}
				maps.Copy(next, have)
				if value != "" {
					next[name] = value
				}
				more = append(more, next)
			}
		}
		all = more
	}
	for _, attrs := range all {
		f.add(kind, "", attrs)
	}
}

// find fills in the path of the form.
func (s *formState) find(t *testing.T, from *resolver.Resolver) {
	t.Helper()
	p, err := from.ProjectBySlug(s.slug)
	if err != nil {
		t.Fatalf("%s: %v", s.state, err)
	}
	s.path = fmt.Sprintf("/console/edit?kind=%s&project=%d", s.kind, p.ID)
	switch s.kind {
	case "domain":
		rows, _, err := from.Domains(p.ID, resolver.Query{})
		if err != nil || len(rows) != 1 {
			t.Fatalf("%s: %d domains, %v", s.state, len(rows), err)
		}
		s.path += fmt.Sprintf("&id=%d", rows[0].ID)
	case "template":
		row, err := from.OwnTemplate(p.ID, s.part)
		if err != nil {
			t.Fatalf("%s: %v", s.state, err)
		}
		s.path += fmt.Sprintf("&id=%d", row.ID)
	}
}

// formEditors are the roles of a formFixture that may change something.
var formEditors = []string{"writer", "proposer", "limited", "limited-proposer"}

// formFixture are the files of all states, with a defaults block or without, and one key for each role.
func formFixture(t *testing.T, defaults string) (r *consoleRig, states []*formState, roles map[string]string) {
	t.Helper()
	t.Setenv("STORY_SECRET", strings.Repeat("s", 40))
	f := &formFolder{files: map[string]string{"shared.hcl": formShared}}
	if defaults != "" {
		f.files["defaults.hcl"] = "defaults {\n" + defaults + "}\n"
	}
	f.everyState()
	slugs := []string{}
	for _, s := range f.states {
		slugs = append(slugs, strconv.Quote(s.slug))
	}
	roles = map[string]string{}
	some := "\n  projects = [" + strings.Join(slugs, ", ") + "]"
	for name, rights := range map[string]string{"writer": `allow = ["read", "write"]`, "proposer": `allow = ["read", "propose"]`,
		"limited": `allow = ["read", "write"]` + some, "limited-proposer": `allow = ["read", "propose"]` + some,
		"reader": `allow = ["read"]`, "mailer": `allow = ["read", "mail", "secrets"]`} {
		roles[name], f.files["key-"+name+".hcl"] = keyFile(name, rights)
	}
	d := &desk{dir: t.TempDir(), publicURL: "https://config.acme.example"} // templates may have a category
	d.open(t, f.files)
	for _, s := range f.states {
		s.find(t, d.resolver)
	}
	return newConsoleRig(t, d), f.states, roles
}

// formShared has what seals passwords, and a default template.
const formShared = `sealing {
  recipients = ["{{recipient}}"]
}

template "DEFAULT" {
  name             = "D"
  subject_template = " S "
  body_html        = "<p>\r\n</p>"
  active           = false
}
`

// formDefaults sets half of what projects inherit.
const formDefaults = `  service_settings {
    mail_enabled = true
    audit_enabled = true
    sms_provider = "twilio"
  }
  auth_settings {
    registration_mode = "APPROVAL_REQUIRED"
    two_factor_required = true
    session_timeout = 60
  }
  smtp_config {
    host = "relay.example"
    from_email = "relay@example.com"
    active = true
  }
`

// TestConsoleUntouched opens every form in every state of each field, as each role that edits. Submitted untouched it
// changes nothing; with one field changed, exactly that field is sent, and the diff has that attribute alone.
func TestConsoleUntouched(t *testing.T) {
	testrig.Thorough(t)
	for name, defaults := range map[string]string{"built-in": "", "defaults": formDefaults} {
		t.Run(name, func(t *testing.T) {
			r, states, roles := formFixture(t, defaults)
			forms, changes, n := 0, 0, 0
			every, others := testrig.Size(t, 1, 7), testrig.Size(t, 1, 5)
			for _, role := range formEditors {
				g := r.signIn(t, roles[role])
				for i, s := range states {
					if role != "writer" && i%others != 0 {
						continue
					}
					what := role + ": " + s.state
					g.send(s.path, nil)
					s.showsAll(t, g.page)
					sent, seen := g.controls("/console/edit")
					g.nothingChanged(what)
					forms++
					for _, c := range seen {
						for _, values := range otherValues(c) {
							if n++; n%every == 0 {
								s.changesOne(g, what, sent, c.name, values)
								changes++
							}
						}
					}
				}
			}
			t.Logf("%d states, %d forms untouched, %d with one field changed", len(states), forms, changes)
		})
	}
}

// showsAll checks that the form has every field of its kind, also those that only the file can change.
func (s *formState) showsAll(t *testing.T, page string) {
	t.Helper()
	for _, f := range formNouns()[s.kind] {
		if f.Block != "" {
			f.Name += "._.tag"
		}
		if !strings.Contains(page, `id="f-`+f.Name+`"`) {
			t.Errorf("%s: the form does not show %s", s.state, f.Name)
		}
	}
}

// otherValues returns what a person may change a control to.
func otherValues(c control) (all [][]string) {
	if strings.HasPrefix(c.name, "seal.") { // alone it changes nothing, see TestConsoleEnvironment
		return nil
	}
	if strings.HasPrefix(c.name, "locales._.") && c.name != "locales._.tag" { // alone it is of no language, see TestConsoleLanguages
		return nil
	}
	switch c.kind {
	case "check":
		return [][]string{{c.options[0]}, c.options}
	case "select":
		for _, o := range c.options {
			if o != c.value && o != catalog.AuthXOAUTH2 {
				all = append(all, []string{o})
			}
		}
		return all
	}
	other := map[string]string{"slug": "other-slug", "domain": "other-name.example", "port": "26", "maxAge": "11m",
		"host": "other.example", "fromEmail": "new@acme.example", "replyTo": "new@acme.example", "labels": "plan=other",
		"bodyHtml": "<p>other</p>\r\nmore", "verified": "2026-11-20", "ehloName": "other.example", "oauthTokenUrl": "https://other.example/",
		"spfInclude": "other.example", "owner": "other", "category": "other",
		"locales._.tag": "fr"}[c.name]
	if other == "" {
		other = c.value + " other"
	}
	return [][]string{{other}}
}

var (
	attributeLine = regexp.MustCompile(`^([-+])\s*([a-z_]+)\s*= *(.*)`)
	// goesWith are the attributes that change with a field: what is renamed stays the same, also in the lists of keys, and
	// the proof of a name is not one of another.
	goesWith = map[string][]string{"slug": {"uuid", "projects"}, "domain": {"uuid", "verified"}, "labels": {"plan", "shard"}}
	// stored is what the API says where a stored password would go to another server.
	stored = "must be given again"
)

// changesOne changes one field of a form and looks at what is sent, and at the diff.
func (s *formState) changesOne(g *guest, what string, sent url.Values, name string, values []string) {
	g.t.Helper()
	call := g.changed(what, sent, name, values...)
	if call == nil {
		return
	}
	want := []string{name}
	if s.kind == "template" {
		if strings.HasPrefix(name, "locales.") {
			want = []string{"locales"}
		}
		want = append(want, "code") // it says which template is saved
	}
	if name == "registrationMode" { // the API has them follow, so those of the file are sent
		for attr, field := range map[string]string{"approval_required": "approvalRequired", "invite_only": "inviteOnly"} {
			if strings.Contains(s.own, attr) {
				want = append(want, field)
			}
		}
	}
	creates := call.method == http.MethodPost // an SMTP config: what the form proposes goes with it
	if got := slices.Sorted(maps.Keys(call.body)); !creates && !slices.Equal(got, sorted(want)) {
		g.t.Errorf("%s: %s = %q sends %v, want %v", what, name, values, got, sorted(want))
	}
	data, _ := call.answer["data"].(map[string]any) // nil if it is refused
	diff, _ := data["diff"].(string)
	switch {
	case call.status == http.StatusBadRequest && (creates || strings.Contains(g.page, stored)):
	case call.status == http.StatusBadRequest && strings.Contains(g.page, "is required where there is a password"):
	case call.status == http.StatusBadRequest && s.kind == "template": // it would have no body
	case call.status == http.StatusConflict && strings.Contains(g.page, "is an expression in the file"):
	case call.status != http.StatusOK || !strings.Contains(g.page, "what it changes"):
		g.t.Errorf("%s: %s = %q: %d %v, then %d %s", what, name, values, call.status, call.answer, g.status, visibleText(g.page))
	case s.kind != "template" && name != "description" && !creates:
		for _, attr := range changedAttributes(diff) {
			if attr != catalog.Snake(name) && !slices.Contains(goesWith[name], attr) {
				g.t.Errorf("%s: %s = %q also changes %s:\n%s", what, name, values, attr, diff)
			}
		}
	}
}

// changedAttributes lists the attributes that have another value behind a diff, or came, or went.
func changedAttributes(diff string) []string {
	was, is := map[string]string{}, map[string]string{}
	for l := range strings.Lines(diff) {
		if m := attributeLine.FindStringSubmatch(l); m != nil {
			side := map[string]map[string]string{"-": was, "+": is}[m[1]]
			side[m[2]] += m[3] + "\n"
		}
	}
	changed := map[string]bool{}
	for _, side := range []map[string]string{was, is} {
		for name := range side {
			if was[name] != is[name] {
				changed[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(changed))
}

func sorted(words []string) []string { return slices.Sorted(slices.Values(words)) }

// TestConsoleForeignValue: a value that is not among the choices of this version is shown and kept.
func TestConsoleForeignValue(t *testing.T) {
	testrig.Thorough(t)
	r, states, roles := formFixture(t, "")
	r.alter = func(path string, answer []byte) []byte {
		if !strings.HasSuffix(path, "/auth-settings") {
			return answer
		}
		mode := regexp.MustCompile(`"registrationMode":"[A-Z_]+"`)
		return mode.ReplaceAll(answer, []byte(`"registrationMode":"BY_LOT"`))
	}
	g := r.signIn(t, roles["writer"])
	for _, s := range states {
		if s.kind != "auth-settings" {
			continue
		}
		g.send(s.path, nil)
		sent, seen := g.controls("/console/edit")
		if sent.Get("registrationMode") != "BY_LOT" {
			t.Fatalf("%s: the form has %q", s.state, sent.Get("registrationMode"))
		}
		for _, c := range seen {
			if got := len(catalog.RegistrationModes) + 1; c.name == "registrationMode" && len(c.options) != got {
				t.Errorf("%s: %d choices, want %d: %v", s.state, len(c.options), got, c.options)
			}
		}
		g.nothingChanged(s.state)
	}
}

// TestConsoleStale saves a form that was opened before the file changed: the page shows both versions, and what the person
// has not touched stays as it is in the file by now.
func TestConsoleStale(t *testing.T) {
	r := newConsoleRig(t, newDesk(t, map[string]string{"acme.hcl": "project \"acme\" {\n  name = \"Acme\"\n  status = \"DRAFT\"\n}\n"}))
	p, err := r.resolver.ProjectBySlug("acme")
	if err != nil {
		t.Fatal(err)
	}
	g := r.signIn(t, r.key)
	g.send(fmt.Sprintf("/console/edit?kind=project&project=%d", p.ID), nil)
	sent, _ := g.controls("/console/edit")
	theirs := fmt.Sprintf("/api/platform/projects/%d", p.ID)
	r.askBody("PUT", theirs, r.key, `{"description":"theirs","status":"ACTIVE"}`).check(t, 200, "")
	sent.Set("name", "Mine")
	g.send("/console/edit", sent)
	again, _ := g.controls("/console/edit")
	if g.status != http.StatusConflict || again.Get("description") != "theirs" || again.Get("status") != "ACTIVE" ||
		again.Get("name") != "Mine" {
		t.Fatalf("%d %v: %s", g.status, again, visibleText(g.page))
	}
	if call := g.changed("the second time", again, "name", "Mine"); call != nil && len(call.body) != 1 {
		t.Errorf("it sends %v", call.body)
	}
	// Between the diff and the save.
	r.askBody("PUT", theirs, r.key, `{"description":"theirs again"}`).check(t, 200, "")
	g.send(g.path, url.Values{"token": sent["token"], "do": {"save"}})
	last, _ := g.controls("/console/edit")
	if g.status != http.StatusConflict || last.Get("description") != "theirs again" || last.Get("name") != "Mine" {
		t.Errorf("%d %v: %s", g.status, last, visibleText(g.page))
	}
}

// TestConsoleNewTemplate: a new template does not take the place of one with its code.
func TestConsoleNewTemplate(t *testing.T) {
	f := &formFolder{files: map[string]string{}}
	f.add("template", "HI", formBases["template"])
	r := newConsoleRig(t, newDesk(t, f.files))
	p, err := r.resolver.ProjectBySlug("s0")
	if err != nil {
		t.Fatal(err)
	}
	g := r.signIn(t, r.key)
	g.send(fmt.Sprintf("/console/edit?kind=template&project=%d", p.ID), nil)
	sent, _ := g.controls("/console/edit")
	sent.Set("name", "Other")
	sent.Set("subjectTemplate", "Other")
	sent.Set("bodyText", "Other")
	call := g.changed("new", sent, "code", "HI")
	if call != nil && call.status != http.StatusPreconditionFailed || !strings.Contains(g.page, "exists already") {
		t.Errorf("%v, then %d %s", call, g.status, visibleText(g.page))
	}
}

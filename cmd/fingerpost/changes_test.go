package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"fingerpost/api/client"
	"fingerpost/api/console/say"
	"fingerpost/api/transfer"
	"fingerpost/configsrc/compare"
	"fingerpost/configsrc/hcledit"
	"fingerpost/configsrc/hclfile"
	"fingerpost/resolver/catalog"
	"fingerpost/resolver/store"
)

// literals are two values of a field in HCL where the type of the field alone does not give a valid one.
var literals = map[string][2]string{
	"id":        {`"abcdef"`, `"ghijkl"`},
	"key":       {`"sha256:` + strings.Repeat("a", 64) + `"`, `"sha256:` + strings.Repeat("b", 64) + `"`},
	"allow":     {`["read"]`, `["write"]`},
	"projects":  {`["acme"]`, `[]`},
	"expiresAt": {`"2027-01-01T00:00:00"`, `"2028-01-01T00:00:00"`},
	"url":       {`"https://a.example/"`, `"https://b.example/"`}, "events": {`["domain.*"]`, `["mail.*"]`},
	"secret":    {`env("ONE")`, `[env("TWO"), env("ONE")]`},
	"publicKey": {`"UAYR3PTZADPQTTJLCODAOEHVHW7FVQWCRF7L6VCCSALXQUROFKHFTQKA"`, `"UBQ3J4ZN7UWSFG5PNH64AO3HUDLO74AAUCTB7J5U37N354NZPW3UNZOQ"`},
	"recipients": {`["age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p"]`,
		`["age1lggyhqrw2nlhcxprm67z43rta597azn8gknawjehu9d9dl0jq3yqqvfafg"]`},
	"verified": {`"pending"`, `"2026-01-01"`}, "targets": {`["a.example"]`, `["b.example"]`}, "cas": {`["a.example"]`, `["b.example"]`},
	"host": {`"a.example"`, `"b.example"`}, "ehloName": {`"a.example"`, `"b.example"`},
	"dkimSelectors": {`["one"]`, `["two"]`}, "auth": {`"plain"`, `"login"`}, "oauthTokenUrl": {`"https://a.example/"`, `"https://b.example/"`},
	"fromEmail": {`"a@a.example"`, `"b@a.example"`}, "replyTo": {`"a@a.example"`, `"b@a.example"`},
	"jwtAlgorithms": {`["HS256", "RS256"]`, `["RS256"]`}, "jwtKeys": {`[file("a.pem")]`, `[file("b.pem"), file("a.pem")]`},
	"issuer": {`"https://a.example/"`, `"https://b.example/"`}, "scopes": {`["openid"]`, `["openid", "groups"]`},
	"rules":    {"{\n claim = \"a\"\n value = \"b\"\n allow = [\"read\"]\n}", "{\n claim = \"a\"\n value = \"b\"\n allow = [\"write\"]\n projects = [\"acme\"]\n}"},
	"jwksUrl":  {`null`, `"https://a.example/"`},
	"category": {`"newsletter"`, `"offers"`},
	"maxAge":   {`"10m"`, `"20m"`}, "grace": {`"10m"`, `"20m"`}, "jwtExpiresIn": {`"10m"`, `"20m"`}, "refreshTokenExpiresIn": {`"10m"`, `"20m"`},
}

// literal returns a value of a field in HCL; the other one is different.
func literal(f *catalog.Field, other bool) string {
	_, name, nested := strings.Cut(f.Name, ".")
	if !nested {
		name = f.Name
	}
	pair, known := literals[name]
	switch f.Value.(type) {
	case *bool, **bool:
		pair = [2]string{"false", "true"}
	case *int:
		pair = [2]string{"30", "31"}
	case *catalog.Secret:
		if !known {
			pair = [2]string{`env("ONE")`, `env("TWO")`}
		}
	case *[]catalog.Label:
		pair = [2]string{`{ plan = "one" }`, `{ plan = "two" }`}
	case *string:
		if len(f.OneOf) > 1 {
			pair = [2]string{`"` + f.OneOf[0] + `"`, `"` + f.OneOf[1] + `"`}
		} else if !known {
			pair = [2]string{`"one"`, `"two"`}
		}
	default:
		if !known {
			pair = [2]string{`"one"`, `"two"`}
		}
	}
	if other {
		return pair[1]
	}
	return pair[0]
}

// everyBlock returns a file that has a block of each kind with every attribute of its table; changed has another value.
func everyBlock(kind catalog.Kind, changed string) string {
	attrs := func(k catalog.Kind, prefix string) (text string) {
		for _, f := range catalog.NewFields(k) {
			excluded := k == kind && strings.HasSuffix(changed, "jwksUrl") && strings.HasSuffix(f.Name, "jwtKeys")
			if rest, in := strings.CutPrefix(f.Name, prefix); in && !f.Heading && !excluded {
				f.Name = rest
				value := literal(&f, k == kind && prefix+rest == changed)
				if f.Attribute() == "rule" { // a block
					text += "rule " + value + "\n"
					continue
				}
				if f.Block != "" {
					text += fmt.Sprintf("%s \"de\" {\n%s}\n", f.Block,
						strings.ReplaceAll("subject_template = X\nbody_text = \"x\"\n", "X", value))
					continue
				}
				text += fmt.Sprintf("%s = %s\n", f.Attribute(), value)
			}
		}
		return text
	}
	block := func(head string, k catalog.Kind, prefix, inside string) string {
		return head + " {\n" + attrs(k, prefix) + inside + "}\n"
	}
	defaults := ""
	for _, prefix := range []string{"serviceSettings.", "authSettings.", "smtpConfig.", "verification."} {
		defaults += block(catalog.Snake(strings.TrimSuffix(prefix, ".")), catalog.KindDefaults, prefix, "")
	}
	return block(`project "acme"`, catalog.KindProject, "",
		block(`domain "acme.example"`, catalog.KindDomain, "", "")+block("service_settings", catalog.KindServiceSettings, "", "")+
			block("auth_settings", catalog.KindAuthSettings, "", "")+block("smtp_config", catalog.KindSMTPConfig, "", "")+
			block(`template "HELLO"`, catalog.KindTemplate, "", "")) +
		block(`key "ci"`, catalog.KindKey, "", "") + block(`edge "fra1"`, catalog.KindEdge, "", "") + block(`webhook "crm"`, catalog.KindWebhook, "", "") +
		block(`login "company"`, catalog.KindLogin, "", "") + block(`inbound "ses"`, catalog.KindInbound, "", "") +
		block("sealing", catalog.KindSealing, "", "") + "defaults {\n" + defaults + "}\n"
}

// TestAttributeIsToldEverywhere changes one attribute after the other in a file, and finds it in the audit trail, the
// plan and its JSON, the commit subject, what a key must cover, the console's sentence, and the file that an import
// writes; a document of configsrc explains it. The attributes come from the tables of package catalog: a new one is one line there.
func TestAttributeIsToldEverywhere(t *testing.T) {
	t.Parallel()
	decode := func(src string) *catalog.Declared {
		r, ds := hclfile.Decode("all.hcl", []byte(src), hclfile.Options{})
		if ds.HasErrors() {
			t.Fatalf("%v in\n%s", ds, src)
		}
		return r.Declared
	}
	before := everyBlock("", "")
	was := decode(before)
	files, err1 := os.ReadFile("../../configsrc/README.md")
	webhooks, err2 := os.ReadFile("../../configsrc/webhooks.md")
	tokens, err3 := os.ReadFile("../../configsrc/tokens.md")
	logins, err4 := os.ReadFile("../../configsrc/login.md")
	mail, err5 := os.ReadFile("../../mailer/README.md")
	inbound, err6 := os.ReadFile("../../mailer/inbound.md")
	if err := errors.Join(err1, err2, err3, err4, err5, err6); err != nil {
		t.Fatal(err)
	}
	explained := map[string]bool{} // the words of the reference
	for _, word := range regexp.MustCompile(`\w+`).FindAllString(string(slices.Concat(files, webhooks, tokens, logins, mail, inbound)), -1) {
		explained[word] = true
	}
	s, err := store.Open("", store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	at := time.Now()
	audit := func(src string) []store.NewEntry {
		e, err := s.Apply(&catalog.Change{Files: []catalog.FileChange{{Path: "all.hcl", Declared: decode(src), Bytes: []byte(src),
			Row: &catalog.FileRow{Stamp: catalog.Stamp{Size: int64(len(src)), ModTime: at}}}}}, 1, at,
			func(*store.Effect) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		return e.Objects
	}
	audit(before)
	n := 0
	for _, kind := range []catalog.Kind{catalog.KindProject, catalog.KindDomain, catalog.KindServiceSettings, catalog.KindAuthSettings,
		catalog.KindSMTPConfig, catalog.KindTemplate, catalog.KindKey, catalog.KindEdge, catalog.KindWebhook, catalog.KindLogin, catalog.KindInbound, catalog.KindDefaults,
		catalog.KindSealing} {
		for _, f := range catalog.NewFields(kind) {
			if f.Heading {
				continue
			}
			n++
			planned, field, label := f.Attribute(), f.Name, cmp.Or(f.Label, f.Name)
			if f.Block != "" {
				planned, field, label = "locale.de.subject_template", "locales.de.subjectTemplate", "Subject (de)"
			}
			if _, labels := f.Value.(*[]catalog.Label); labels {
				planned += ".plan"
			}
			if attribute := cmp.Or(f.Block, f.Attribute()); kind != catalog.KindDefaults && !explained[attribute] {
				t.Errorf("none of configsrc/README.md, webhooks.md, tokens.md, login.md, and README.md and inbound.md of mailer explains %s of a %s", attribute, kind)
			}
			after := everyBlock(kind, f.Name)
			is := decode(after)
			missing := func(place string, text any) {
				t.Errorf("%s %s is not in %s: %v", kind, f.Name, place, text)
			}
			entries := audit(after)
			audit(before)
			at := slices.IndexFunc(entries, func(e store.NewEntry) bool {
				return slices.ContainsFunc(e.Entry.Changes, func(c catalog.FieldChange) bool { return c.Field == field })
			})
			if at < 0 {
				missing("the audit trail", entries)
				continue
			}
			entry := &entries[at].Entry
			said := &client.AuditEntry{Action: entry.Action, Object: &entry.Object, ProjectID: &entry.ProjectID}
			for _, c := range entry.Changes {
				old, _ := json.Marshal(c.Before)
				present, _ := json.Marshal(c.After)
				said.Changes = append(said.Changes, client.AuditChange{Field: c.Field, Secret: c.Secret, Before: old, After: present})
			}
			// Some changes have a verb of their own; the others quote what people call the field.
			if text := say.SentenceOf(said, nil).String(); strings.Contains(text, "“") && !strings.Contains(text,
				"“"+label+"”") || strings.Contains(text, " made the change ") {
				missing("the console's sentence", text)
			}
			plan := transfer.PlanFiles([]*catalog.Declared{was}, []*catalog.Declared{is}, nil)
			doc, err := json.Marshal(plan)
			if err != nil || !strings.Contains(string(doc), `"field":"`+planned) {
				missing("the plan's JSON", string(doc))
			}
			var text strings.Builder
			if err := transfer.WriteChanges(&text, plan.Changes, false); err != nil || !strings.Contains(text.String(), "~ "+planned) {
				missing("the plan", text.String())
			}
			subject := hcledit.Subject(was, is)
			if name := f.Attribute(); !strings.Contains(subject, name) && !strings.Contains(subject, "~ "+string(kind)) {
				missing("the commit subject", subject)
			}
			read := func(src string) func(string) ([]byte, error) {
				return func(string) ([]byte, error) { return []byte(src), nil }
			}
			w := compare.Weigh(&compare.Difference{Files: []catalog.FileEdit{{Path: "all.hcl", Before: []byte(before), After: []byte(after)}},
				Before: read(before), After: read(after)}, func(string) []string { return nil })
			if inProject := entry.ProjectID != 0; inProject != slices.Contains(w.Projects, entry.ProjectID) || inProject == w.Rest || w.Broken != nil {
				missing("what a key must cover", fmt.Sprint(w.Projects, w.Rest, w.Broken))
			}
			if entry.ProjectID != 0 {
				one, err1 := hcledit.WriteProject(&was.Projects[0], nil)
				other, err2 := hcledit.WriteProject(&is.Projects[0], nil)
				if files := string(one) + string(other); err1 != nil || err2 != nil || !strings.Contains(files, " "+cmp.Or(f.Block, f.Attribute())+" ") {
					missing("an imported file", files)
				}
			}
		}
	}
	if n < 70 {
		t.Errorf("only %d attributes were tried", n)
	}
}

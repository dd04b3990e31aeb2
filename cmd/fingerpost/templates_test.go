package main

import (
	"html"
	"io/fs"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"fingerpost/configsrc/hclfile"
	"fingerpost/mailer/template"
	"fingerpost/resolver/catalog"
)

// declaredTemplates reads all templates of a config folder, by code; those of a project as "slug/code".
func declaredTemplates(t *testing.T, dir fs.FS) map[string]catalog.Template {
	t.Helper()
	files, err := fs.Glob(dir, "*.hcl")
	if err != nil || len(files) == 0 {
		t.Fatal("no files: ", err)
	}
	all := map[string]catalog.Template{}
	for _, file := range files {
		src, err := fs.ReadFile(dir, file)
		if err != nil {
			t.Fatal(err)
		}
		r, ds := hclfile.Decode(file, src, hclfile.Options{ReadFile: func(path string) ([]byte, error) { return fs.ReadFile(dir, path) }})
		if len(ds) > 0 {
			t.Fatalf("%+v", ds)
		}
		for _, tmpl := range r.Declared.Templates {
			all[tmpl.Code] = tmpl
		}
		for _, p := range r.Declared.Projects {
			for _, tmpl := range p.Templates {
				all[p.Project.Slug+"/"+tmpl.Code] = tmpl
			}
		}
	}
	return all
}

// TestDefaultTemplates: the shipped templates render from the variables that callers know, in both folders, and are
// made for real mail clients.
func TestDefaultTemplates(t *testing.T) {
	written, err := fs.Sub(example, "example")
	if err != nil {
		t.Fatal(err)
	}
	own := declaredTemplates(t, os.DirFS("../../projects.d"))
	want := []string{"EMAIL_VERIFICATION", "LOGIN_ALERT", "PASSWORD_RESET", "WELCOME", "acme/WELCOME"}
	if got := slices.Sorted(maps.Keys(own)); !slices.Equal(got, want) {
		t.Fatalf("projects.d has the templates %q, want %q", got, want)
	}
	for code, tmpl := range declaredTemplates(t, written) {
		if !reflect.DeepEqual(tmpl, own[code]) {
			t.Errorf("%s in what init writes is another than in projects.d", code)
		}
		delete(own, code)
	}
	if len(own) > 0 {
		t.Errorf("init does not write %v", slices.Collect(maps.Keys(own)))
	}
	for code, tmpl := range declaredTemplates(t, os.DirFS("../../projects.d")) {
		checkDefaultTemplate(t, code, &tmpl)
	}
}

func checkDefaultTemplate(t *testing.T, code string, tmpl *catalog.Template) {
	t.Helper()
	parsed, ps := template.Parse(tmpl)
	if len(ps) > 0 {
		t.Fatal(code, ps)
	}
	// Gmail hides what comes after 102 kB, and goes by the bytes.
	if !tmpl.Active || len(tmpl.BodyHTML) > 50_000 {
		t.Errorf("%s: active %v, %d bytes", code, tmpl.Active, len(tmpl.BodyHTML))
	}
	vars := map[string]string{"userName": `Zoë "<b>" O'Neill`, "projectName": "Acme & Co"}
	if code == "EMAIL_VERIFICATION" || code == "PASSWORD_RESET" {
		maps.Copy(vars, map[string]string{"code": "493027", "minutes": "17"})
		if tmpl.MaxAge == "" {
			t.Errorf("%s: a code that arrives a day late", code)
		}
	}
	got, ps := parsed.Render(vars)
	if len(ps) > 0 || len(parsed.Unused(vars)) > 0 {
		t.Fatal(code, ps, parsed.Unused(vars))
	}
	if strings.Contains(got.Subject, vars["code"]) && vars["code"] != "" {
		t.Errorf("%s: the code stands in the subject, which the log keeps", code)
	}
	for name, value := range vars {
		made, err := template.PlainText(got.HTML)
		if err != nil {
			t.Fatal(code, err)
		}
		for _, text := range []string{got.Text, made} {
			if !strings.Contains(text, value) {
				t.Errorf("%s: %s is not in the text:\n%s", code, name, text)
			}
		}
		if !strings.Contains(got.HTML, html.EscapeString(value)) {
			t.Errorf("%s: %s is not in the HTML", code, name)
		}
	}
	for _, must := range []string{`role="presentation"`, `name="color-scheme" content="light dark"`, "prefers-color-scheme: dark", "[data-ogsc]", "<!--[if mso]>",
		`charset="utf-8"`, `lang="en"`, "max-width: 560px", "mso-hide: all", "<title>"} {
		if !strings.Contains(tmpl.BodyHTML, must) {
			t.Errorf("%s lacks %s", code, must)
		}
	}
	for _, never := range []string{"<script", "<img", "<link", "@import", "http://", "url("} {
		if strings.Contains(tmpl.BodyHTML, never) {
			t.Errorf("%s has %s", code, never)
		}
	}
	for line := range strings.Lines(tmpl.BodyHTML) {
		if len(line) > 998 {
			t.Errorf("%s: a line of %d bytes", code, len(line))
		}
	}
}

package template_test

import (
	"fmt"
	"html"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"fingerpost/mailer/template"
	"fingerpost/resolver/catalog"
)

func parsedTemplate(t testing.TB, subject, bodyHTML, bodyText string) *template.Template {
	t.Helper()
	parsed, ps := template.Parse(&catalog.Template{SubjectTemplate: subject, BodyHTML: bodyHTML, BodyText: bodyText})
	if len(ps) > 0 {
		t.Fatal(ps)
	}
	return parsed
}

type vars = map[string]string

func TestRender(t *testing.T) {
	t.Parallel()
	tmpl := parsedTemplate(t, "{{ a }}: {{b}}", "<!--[if mso]><p title='{{a}}'>\r\n<![endif]--> {{\tb\t}}<BR>&amp; é\u00a0{{a}}", "{{a}} }} {x} {{b}}\r\n")
	got, ps := tmpl.Render(vars{"a": `<&>"' {{b}} é`, "b": "", "unused": "u\x00"})
	want := template.Rendered{
		Subject: `<&>"' {{b}} é: `,
		HTML:    "<!--[if mso]><p title='&lt;&amp;&gt;&#34;&#39; {{b}} é'>\r\n<![endif]--> <BR>&amp; é\u00a0&lt;&amp;&gt;&#34;&#39; {{b}} é",
		Text:    "<&>\"' {{b}} é }} {x} \r\n",
	}
	if len(ps) > 0 || got != want {
		t.Errorf("%v\n got %+v\nwant %+v", ps, got, want)
	}
	if got := tmpl.Variables(); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("variables %q", got)
	}
}

func TestRenderWithoutHTML(t *testing.T) {
	t.Parallel()
	got, ps := parsedTemplate(t, "s", "", "{{a}}").Render(vars{"a": "x\r\ny\rz\n\t"})
	if want := (template.Rendered{Subject: "s", Text: "x\ny\nz\n\t"}); len(ps) > 0 || got != want {
		t.Errorf("%q, %v", got, ps)
	}
}

// TestRenderMakesText asserts that the text part of a template without one is made from its HTML, with unchanged
// values.
func TestRenderMakesText(t *testing.T) {
	t.Parallel()
	tmpl := parsedTemplate(t, "s", `<style>p { color: red }</style><p>Hello <b>{{ a }}</b>,</p><!-- {{c}} --><p><a href="{{url}}">{{url}}</a>, <a href="{{url}}?x={{a}}">{{a}}</a></p>`, "")
	got, ps := tmpl.Render(vars{"a": "<i> &amp;  \uFDD00\uFDD1 {{c}}", "c": "comment", "url": "https://x.example/?a&b"})
	want := "Hello <i> &amp;  \uFDD00\uFDD1 {{c}},\n\nhttps://x.example/?a&b, <i> &amp;  \uFDD00\uFDD1 {{c}} (https://x.example/?a&b?x=<i> &amp;  \uFDD00\uFDD1 {{c}})\n"
	if len(ps) > 0 || got.Text != want {
		t.Errorf("%v\n got %q\nwant %q", ps, got.Text, want)
	}
	// Characters that look like the marks of placeholders.
	got, ps = parsedTemplate(t, "s", "a\uFDD0b&#xFDD0;7&#xFDD1;{{a}}&#xFDD0;\uFDD1", "").Render(vars{"a": "A"})
	if len(ps) > 0 || !utf8Text(got.Text) || !strings.Contains(got.Text, "A") || !strings.HasPrefix(got.Text, "ab") {
		t.Errorf("%v %q", ps, got.Text)
	}
}

func TestRenderProblems(t *testing.T) {
	t.Parallel()
	tmpl := parsedTemplate(t, "{{subject}} {{both}}", `<a href=" {{link}}{{more}}">{{html}} {{both}}</a><img src="{{image}}">`, "{{text}}")
	f := func(change vars, want ...string) {
		t.Helper()
		all := vars{"subject": "s", "both": "b", "link": "https://x.example", "more": "", "html": "h", "image": "http://x", "text": "t"}
		for name, value := range change {
			if all[name] = value; value == "-" {
				delete(all, name)
			}
		}
		got, ps := tmpl.Render(all)
		var paths []string
		for _, p := range ps {
			paths = append(paths, p.Path)
			if value := all[strings.TrimPrefix(p.Path, "variables.")]; len(value) > 8 && strings.Contains(p.Message, value) {
				t.Errorf("the value is shown: %s", p.Message)
			}
		}
		if !slices.Equal(paths, want) || (len(ps) > 0) != (got == template.Rendered{}) {
			t.Errorf("%.200q: problems %v, want them on %q", change, ps, want)
		}
	}
	f(nil)
	f(vars{"html": "-", "subject": "-", "text": "-"}, "variables.subject", "variables.html", "variables.text")
	f(vars{"both": "-"}, "variables.both")
	f(vars{"Subject": "x", "subject": "-"}, "variables.subject")
	f(vars{"subject": "", "both": "", "html": "", "text": ""})
	f(vars{"projectName": "x", "unused": "\x00"})

	for _, control := range []string{"\r\n", "\n", "\r", "\t", "\x00", "\x1b", "\x7f", "\u0085"} {
		f(vars{"subject": "a" + control + "Bcc: x@y.example"}, "variables.subject")
	}
	for _, control := range []string{"\r\n", "\n", "\r", "\t"} {
		f(vars{"text": "a" + control, "html": control})
		f(vars{"both": control}, "variables.both")
	}
	for _, control := range []string{"\x00", "\x1b", "\x7f", "\u0085", "\v"} {
		f(vars{"text": "a" + control, "html": control, "both": control}, "variables.both", "variables.html", "variables.text")
	}
	f(vars{"text": "\xff", "subject": "\xc3"}, "variables.subject", "variables.text")

	for _, good := range []string{"http://x", "HTTPS://x.example/{{a}}?b=%zz", "mailto:a@b.example", "tel:+49-30", "Tel:1"} {
		f(vars{"link": good, "image": good})
	}
	for _, bad := range []string{"", " https://x.example", "javascript:alert(1)", "\tjavascript:x", "java\nscript:x", "JavaScript://https://x", "data:text/html,x", "//x.example", "/x", "x.example",
		"https:x", "https://", "mailto:", "tel:", "cid:1", "https", ":", "&#106;avascript:x"} {
		f(vars{"link": bad}, "variables.link")
		f(vars{"image": bad}, "variables.image")
	}
	f(vars{"more": "javascript:x"}) // it does not begin the link

	f(vars{"text": strings.Repeat("x", template.MaxValueBytes)})
	f(vars{"text": strings.Repeat("x", template.MaxValueBytes+1), "unused": strings.Repeat("\xff", template.MaxValueBytes+1)}, "variables.text", "variables.unused")
	f(vars{"subject": strings.Repeat("x", catalog.MaxSubjectBytes-2)})
	f(vars{"subject": strings.Repeat("ü", catalog.MaxSubjectBytes/2)}, "variables")
}

func TestRenderLimits(t *testing.T) {
	given := vars{}
	for i := range catalog.MaxVariables {
		given[fmt.Sprint("v", i)] = "x"
	}
	tmpl := parsedTemplate(t, "s", "", "{{v0}}")
	if _, ps := tmpl.Render(template.WithProject(given, acme)); len(ps) > 0 {
		t.Error(ps)
	}
	given["more"] = ""
	if _, ps := tmpl.Render(given); len(ps) != 1 || ps[0].Path != "variables" {
		t.Error(ps)
	}

	// Five times as many bytes in HTML, counted before they are allocated.
	value := strings.Repeat("'", template.MaxValueBytes)
	f := func(bodyHTML, bodyText string, fits bool) {
		t.Helper()
		tmpl := parsedTemplate(t, "s", bodyHTML, bodyText)
		got, ps := tmpl.Render(vars{"a": value})
		if size := len(got.Subject) + len(got.HTML) + len(got.Text); fits != (len(ps) == 0) || size > template.MaxRenderedBytes {
			t.Errorf("%d bytes, %v", size, ps)
		}
		allocated := testing.AllocsPerRun(5, func() { tmpl.Render(vars{"a": value}) })
		if allocated > 20 {
			t.Errorf("%v allocations", allocated)
		}
	}
	f("", strings.Repeat("{{a}}", 63), true)
	f("", strings.Repeat("{{a}}", 64), false)
	f(strings.Repeat("{{a}}", 12), "x", true)
	f(strings.Repeat("{{a}}", 13), "x", false)
	f(strings.Repeat("{{a}}", 11), "", false) // with the text made of it
	f(strings.Repeat("{{a}}", 100_000), "x", false)
}

func TestParseProblems(t *testing.T) {
	t.Parallel()
	parsed, ps := template.Parse(&catalog.Template{SubjectTemplate: "{{", BodyHTML: "<a {{b}}><script>{{c}}", BodyText: "{{d e}}"})
	var paths []string
	for _, p := range ps {
		paths = append(paths, p.Path)
	}
	if want := []string{"subjectTemplate", "bodyHtml", "bodyHtml", "bodyText"}; parsed != nil || !slices.Equal(paths, want) {
		t.Errorf("%v %v", parsed, ps)
	}
}

func TestPreview(t *testing.T) {
	t.Parallel()
	tmpl := parsedTemplate(t, "{{projectName}}: {{a}}", `<a href="{{url}}">{{b}}</a>`, "")
	got, ps := tmpl.Preview(template.WithProject(vars{"a": "A", "z": "", "y": ""}, acme))
	want := template.Preview{
		Rendered: template.Rendered{Subject: "Acme: A", HTML: `<a href="{{url}}">{{b}}</a>`, Text: "{{b}} ({{url}})\n"},
		Missing:  []string{"url", "b"}, Unused: []string{"y", "z"},
	}
	if len(ps) > 0 || got.Rendered != want.Rendered || !slices.Equal(got.Missing, want.Missing) || !slices.Equal(got.Unused, want.Unused) {
		t.Errorf("%v\n got %+v\nwant %+v", ps, got, want)
	}
	if got, ps = tmpl.Preview(vars{"projectName": "", "a": "", "b": "", "url": "tel:1"}); len(ps) > 0 || got.Missing == nil || got.Unused == nil || len(got.Missing)+len(got.Unused) > 0 {
		t.Errorf("%v %+v", ps, got)
	}
	if _, ps = tmpl.Preview(vars{"a": "\n", "url": "javascript:x"}); len(ps) != 2 {
		t.Errorf("%v", ps)
	}
}

// acme is a project with labels.
var acme = &catalog.Project{Name: "Acme", Labels: []catalog.Label{{Name: "brand_colour", Value: "#0aF"},
	{Name: "empty", Value: ""}, {Name: "logo", Value: "https://acme.example/logo.png"}}}

func TestWithProject(t *testing.T) {
	t.Parallel()
	given := vars{"a": "A", "label.logo": "https://evil.example", "label.other": "x", "labels": "y"}
	want := vars{"a": "A", "labels": "y", "projectName": "Acme", "label.brand_colour": "#0aF", "label.empty": "",
		"label.logo": "https://acme.example/logo.png"}
	if got := template.WithProject(given, acme); !maps.Equal(got, want) || len(given) != 4 {
		t.Errorf("%v, %v", got, given)
	}
	if got := template.WithProject(vars{"projectName": ""}, acme); got["projectName"] != "" {
		t.Errorf("%v", got)
	}
	if got := template.WithProject(nil, acme); got["projectName"] != "Acme" {
		t.Errorf("%v", got)
	}
}

// bracesPattern is the grammar of placeholders and conditions, for FuzzRender.
var bracesPattern = regexp.MustCompile(`\{\{[ \t]*(#if[ \t]+|/if|)([A-Za-z_][A-Za-z0-9_.]*|)[ \t]*\}\}`)

// filledIn fills in a text that template.Parse accepts.
func filledIn(text string, given vars, form func(string) string) string {
	var out strings.Builder
	shown := []bool{true} // of the text, and of each open condition's branch
	at := 0
	for _, m := range append(bracesPattern.FindAllStringSubmatchIndex(text, -1), []int{len(text), len(text)}) {
		all := !slices.Contains(shown, false)
		if all {
			out.WriteString(text[at:m[0]])
		}
		if at = m[1]; len(m) == 2 {
			break
		}
		tag, name := strings.TrimSpace(text[m[2]:m[3]]), text[m[4]:m[5]]
		switch {
		case tag == "#if":
			shown = append(shown, given[name] != "")
		case tag == "/if":
			shown = shown[:len(shown)-1]
		case name == "else":
			shown[len(shown)-1] = !shown[len(shown)-1]
		case all:
			out.WriteString(form(given[name]))
		}
	}
	return out.String()
}

// FuzzRender compares Render with a search and replace: every byte outside of placeholders stays, values are filled in
// once, and every refusal has a reason.
func FuzzRender(f *testing.F) {
	f.Add("{{a}}", "<p title='{{ a }}'>{{b}}</p>", "{{b}}", "A", "<b>")
	f.Add("s", `<a href="{{a}}">x</a>`, "", "https://x.example", "{{a}}")
	f.Add("s", "<ul><li>{{a}}<li><p hidden>x<p>{{b}}</ul><pre>\n {{a}}</pre>", "", "\r\n", "{{b}}")
	f.Add("s", "", "{{a}}\r\n{{{b}}}", "\x00", "\n")
	f.Add("{{#if a}}{{b}}{{else}}-{{/if}}", "<p>{{#if b}}<b>{{a}}</b>{{else}}{{c}}{{#if a}}!{{/if}}{{/if}}</p>", "", "", "x")
	f.Fuzz(func(t *testing.T, subject, bodyHTML, bodyText, a, b string) {
		if len(bodyHTML)+len(bodyText) > 64<<10 || strings.Contains(bodyHTML, "\uFDD0") {
			t.Skip()
		}
		tmpl, ps := template.Parse(&catalog.Template{SubjectTemplate: subject, BodyHTML: bodyHTML, BodyText: bodyText})
		if (tmpl == nil) != (len(ps) > 0) {
			t.Fatalf("%v beside %v", tmpl, ps)
		}
		if tmpl == nil {
			return
		}
		given := vars{"a": a, "b": b}
		for missing := tmpl.Missing(given); len(missing) > 0; missing = tmpl.Missing(given) { // conditions may need more
			for _, name := range missing {
				given[name] = "https://x.example/" + name
			}
		}
		got, ps := tmpl.Render(given)
		if len(ps) > 0 {
			for _, p := range ps {
				if p.Path != "variables" && !strings.Contains(subject+bodyHTML+bodyText, strings.TrimPrefix(p.Path, "variables.")) {
					t.Errorf("%+v", p)
				}
			}
			return
		}
		fill := func(text string, form func(string) string) string {
			return filledIn(text, given, form)
		}
		lines := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace
		if want := fill(subject, lines); got.Subject != want {
			t.Errorf("subject %q, want %q", got.Subject, want)
		}
		if want := fill(bodyHTML, html.EscapeString); got.HTML != want {
			t.Errorf("HTML %q, want %q", got.HTML, want)
		}
		if want := fill(bodyText, lines); bodyText != "" && got.Text != want {
			t.Errorf("text %q, want %q", got.Text, want)
		}
		if bodyText == "" && !utf8Text(got.Text) {
			t.Errorf("text %q", got.Text)
		}
		if preview, ps := tmpl.Preview(given); len(ps) > 0 || preview.Rendered != got || len(preview.Missing) > 0 {
			t.Errorf("the preview is %+v, %v", preview, ps)
		}
	})
}

// BenchmarkRender renders a mail of 9.5 kB with four values, parsed at load and rendered per send.
func BenchmarkRender(b *testing.B) {
	row := "<tr><td style=\"font-family:Arial,sans-serif;font-size:16px;line-height:24px;color:#333\">Some words to fill a row.</td></tr>\n"
	body := "<table>" + strings.Repeat(row, 40) + "<tr><td>Hello {{userName}}, {{code}} for {{minutes}} min</td></tr>" + strings.Repeat(row, 40) + "</table>"
	tmpl := catalog.Template{SubjectTemplate: "Your code for {{projectName}}", BodyHTML: body, BodyText: "Hello {{userName}}, {{code}} for {{minutes}} min"}
	given := vars{"userName": "Zoë O'Neill", "code": "123456", "minutes": "10", "projectName": "Acme & Co"}
	b.Run("render", func(b *testing.B) {
		parsed := parsedTemplate(b, tmpl.SubjectTemplate, tmpl.BodyHTML, tmpl.BodyText)
		b.ReportAllocs()
		b.SetBytes(int64(len(body)))
		for b.Loop() {
			if _, ps := parsed.Render(given); len(ps) > 0 {
				b.Fatal(ps)
			}
		}
	})
	b.Run("parse", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(body)))
		for b.Loop() {
			parsedTemplate(b, tmpl.SubjectTemplate, tmpl.BodyHTML, tmpl.BodyText)
		}
	})
	b.Run("parse and make text", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(body)))
		for b.Loop() {
			parsedTemplate(b, tmpl.SubjectTemplate, tmpl.BodyHTML, "")
		}
	})
}

// TestAddressesOfAllKinds: a value that begins an address is a web, mail or telephone address, in every attribute.
func TestAddressesOfAllKinds(t *testing.T) {
	t.Parallel()
	for _, attr := range []string{"href", "xlink:href", "src", "action", "formaction", "background", "poster"} {
		tmpl := parsedTemplate(t, "s", `<p `+attr+`=" {{a}}">x</p>`, "")
		for value, good := range map[string]bool{
			"https://acme.example/": true, "HTTP://acme.example": true, "mailto:a@acme.example": true, "tel:+4930": true,
			"javascript:alert(1)": false, "JavaScript:alert(1)": false, "\tjavascript:alert(1)": false, "java\nscript:alert(1)": false, " https://acme.example": false,
			"data:text/html,x": false, "vbscript:x": false, "//acme.example": false, "acme.example": false, "": false, "&#106;avascript:x": false, "https:javascript:x": false,
		} {
			if _, ps := tmpl.Render(map[string]string{"a": value}); (len(ps) == 0) != good {
				t.Errorf("%s=%q: %v", attr, value, ps)
			}
		}
	}
}

// TestTooDeep asserts that HTML of which no text part can be made is refused when it is saved, not when it is sent.
func TestTooDeep(t *testing.T) {
	t.Parallel()
	deep := &catalog.Template{Code: "A", Name: "A", SubjectTemplate: "s", BodyHTML: strings.Repeat("<div>", 600) + "{{a}}"}
	if ps := template.Validate(deep); len(ps) != 1 || ps[0].Path != "bodyHtml" || !strings.Contains(ps[0].Message, "bodyText") {
		t.Error(ps)
	}
	deep.BodyText = "{{a}}"
	if ps := template.Validate(deep); len(ps) != 0 {
		t.Error(ps)
	}
	flat := &catalog.Template{Code: "A", Name: "A", SubjectTemplate: "s", BodyHTML: strings.Repeat("<div>x</div>", 600)}
	if ps := template.Validate(flat); len(ps) != 0 {
		t.Error(ps)
	}
}

// TestDoubleScheme asserts that a whole address behind a scheme of the template is refused for its variable.
func TestDoubleScheme(t *testing.T) {
	t.Parallel()
	f := func(before, value string, refused bool) {
		t.Helper()
		parsed, ps := template.Parse(&catalog.Template{Code: "A", Name: "A", SubjectTemplate: "s",
			BodyHTML: `<a href="` + before + `{{link}}">x</a>`})
		if len(ps) > 0 {
			t.Fatal(before, ps)
		}
		_, ps = parsed.Preview(map[string]string{"link": value})
		if refused != (len(ps) == 1 && ps[0].Path == "variables.link") {
			t.Errorf("%s%s: %v", before, value, ps)
		}
	}
	for _, before := range []string{"http://", " HTTPS://", "https&#58;//", "mailto:", "tel:"} {
		for _, value := range []string{"https://shop.example/reset", "HTTP:x", "mailto:ada@example.com", " ftp://x", "tel:1"} {
			f(before, value, true)
		}
		for _, value := range []string{"shop.example/reset", "shop.example:8443/a", "ada@example.com", ""} {
			f(before, value, false)
		}
	}
	f("https://x.example/?to=", "https://y.example", false)
	f("", "https://y.example", false)
}

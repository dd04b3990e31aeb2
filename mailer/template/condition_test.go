package template_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"fingerpost/mailer/template"
	"fingerpost/resolver/catalog"
)

// TestConditions: a condition holds for a variable that is there and not empty.
func TestConditions(t *testing.T) {
	t.Parallel()
	f := func(text string, given vars, want string) {
		t.Helper()
		got, ps := parsedTemplate(t, "s"+text, "<p>"+text+"</p>", text).Render(given)
		if len(ps) > 0 || got.Subject != "s"+want || got.Text != want || got.HTML != "<p>"+want+"</p>" {
			t.Errorf("%s with %q: %+v %v, want %q", text, given, got, ps, want)
		}
	}
	const either = "{{#if a}}A{{else}}B{{/if}}"
	for _, value := range []string{"x", " ", "\u00a0", "false", "0", "null", "{{"} {
		f(either, vars{"a": value}, "A")
	}
	f(either, nil, "B")
	f(either, vars{"a": ""}, "B")
	f("1{{#if a}}2{{/if}}3", vars{"a": "x"}, "123")
	f("1{{ #if  a }}2{{/if }}3", nil, "13")
	f("{{#if a}}{{a}}{{ else }}{{b}}{{/if}}", vars{"a": "x"}, "x")
	f("{{#if a}}{{a}}{{else}}{{b}}{{/if}}", vars{"b": "y"}, "y")
	f("{{#if a}}{{/if}}{{#if b}}{{else}}{{/if}}", nil, "")
	const nested = "{{#if a}}a{{#if b}}b{{#if c}}c{{#if d}}d{{else}}D{{/if}}{{else}}C{{/if}}{{else}}B{{/if}}.{{else}}A{{#if b}}b{{/if}}{{/if}}"
	f(nested, vars{"a": "1", "b": "1", "c": "1", "d": "1"}, "abcd.")
	f(nested, vars{"a": "1", "b": "1", "c": "1"}, "abcD.")
	f(nested, vars{"a": "1", "b": "1", "d": "1"}, "abC.")
	f(nested, vars{"a": "1", "c": "1"}, "aB.")
	f(nested, vars{"b": "1"}, "Ab")
	f("{{else_}}{{if}}", vars{"else_": "x", "if": "y"}, "xy") // names of variables
}

// TestNeededVariables: only the branch that is taken needs its variables, and its rules hold for their values.
func TestNeededVariables(t *testing.T) {
	t.Parallel()
	tmpl := parsedTemplate(t, "{{#if c}}{{subject}}{{else}}s{{/if}}",
		`{{#if link}}<a href="{{link}}">{{text}}</a>{{else}}<b>{{other}}</b>{{/if}}`, "")
	if got, want := tmpl.Variables(), []string{"c", "subject", "link", "text", "other"}; !slices.Equal(got, want) {
		t.Errorf("variables %q, want %q", got, want)
	}
	f := func(given vars, want ...string) {
		t.Helper()
		_, ps := tmpl.Render(given)
		if got := paths(ps); !slices.Equal(got, want) {
			t.Errorf("%q: problems on %q, want %q", given, got, want)
		}
	}
	f(vars{"other": ""})
	f(nil, "variables.other")
	f(vars{"link": "", "other": "x"}) // no link, so it need not be an address
	f(vars{"link": "https://x.example", "text": "x"})
	f(vars{"link": "https://x.example"}, "variables.text")
	f(vars{"link": "javascript:x", "c": "1"}, "variables.link", "variables.subject", "variables.text")
	f(vars{"subject": "a\nb", "other": ""}) // not in the subject
	f(vars{"subject": "a\nb", "other": "", "c": "1"}, "variables.subject")
	preview, ps := tmpl.Preview(vars{"link": "https://x.example", "other": "y"})
	if len(ps) > 0 || preview.HTML != `<a href="https://x.example">{{text}}</a>` || !slices.Equal(preview.Missing, []string{"text"}) ||
		len(preview.Unused) > 0 {
		t.Errorf("%+v %v", preview, ps)
	}
}

// TestTextOfConditions: the text part that is made of the HTML says what the mail's HTML says.
func TestTextOfConditions(t *testing.T) {
	t.Parallel()
	tmpl := parsedTemplate(t, "s", `<table>{{#if a}}<tr><td>{{a}}</td><td>one</td></tr>{{/if}}<tr><td>two</td></tr></table>`+
		`{{#if url}}<a href="{{url}}">go</a>{{else}}<ul><li>{{b}}</li></ul>{{/if}}`, "")
	f := func(given vars, want string) {
		t.Helper()
		if got, ps := tmpl.Render(given); len(ps) > 0 || got.Text != want {
			t.Errorf("%q: %q %v, want %q", given, got.Text, ps, want)
		}
	}
	f(vars{"a": "<A>", "url": "https://x.example"}, "<A> one\ntwo\n\ngo (https://x.example)\n")
	f(vars{"b": "{{a}}"}, "two\n\n- {{a}}\n")
	empty := parsedTemplate(t, "s", "{{#if a}}<p>x</p>{{/if}}", "")
	if got, ps := empty.Render(nil); len(ps) > 0 || got.HTML != "" || got.Text != "" {
		t.Errorf("%+v %v", got, ps)
	}
}

// TestConditionProblems: where the tags of a condition may not be. A @@ marks the reported position.
func TestConditionProblems(t *testing.T) {
	t.Parallel()
	f := func(marked, want string) {
		t.Helper()
		body := strings.Replace(marked, "@@", "", 1)
		column := strings.Index(marked, "@@")
		if _, ps := template.ParseHTML("p", body); want == "" {
			if len(ps) > 0 {
				t.Errorf("%q: %v", body, ps)
			}
		} else if len(ps) != 1 || ps[0].Start != column || !strings.Contains(ps[0].Message, want) ||
			!strings.HasPrefix(ps[0].Message, fmt.Sprintf("line 1, column %d: ", column+1)) {
			t.Errorf("%q: %+v, want one on byte %d with %q", body, ps, column, want)
		}
	}
	const four = "{{#if a}}{{#if a}}{{#if a}}{{#if a}}"
	f(four+"x{{/if}}{{/if}}{{/if}}{{/if}}", "")
	f(four+"@@{{#if a}}x{{/if}}{{/if}}{{/if}}{{/if}}{{/if}}", "in 4 other conditions")
	f("@@{{#if a}}x", "never closed")
	f("x@@{{/if}}", "outside of a condition")
	f("x@@{{else}}", "outside of a condition")
	f("{{#if a}}{{else}}@@{{else}}{{/if}}", "second {{else}} of {{#if a}}")

	// Whole elements.
	f("{{#if a}}<p>x</p><br><img src='x'>y{{else}}<ul><li>x</li></ul>{{/if}}", "")
	f("<p>{{#if a}}x{{/if}}</p>", "")
	f("{{#if a}}@@<p>x{{/if}}</p>", "<p> is not closed before the {{/if}}")
	f("{{#if a}}@@<p>{{else}}</p>{{/if}}", "<p> is not closed before the {{else}}")
	f("<p>{{#if a}}@@</p>{{/if}}", "</p> ends an element that begins outside of {{#if a}}")
	f("<p>{{#if a}}@@</p><p>{{/if}}</p>", "</p> ends an element that begins outside")
	f("{{#if a}}<b><i>x@@</b></i>{{/if}}", "</b> comes before the end of <i>")
	f("{{#if a}}<p>x</p>{{#if b}}@@</p>{{/if}}{{/if}}", "begins outside of {{#if b}}")
	f("{{#if a}}<td>{{#if b}}<b>x</b>{{/if}}</td>{{/if}}", "")
	f("{{#if a}}<style>p{}</style><script>if(a){}</script><title>{{b}}</title>{{/if}}", "")
	f("<title>{{#if a}}{{b}}{{else}}x{{/if}}</title>", "")
	f("<title>{{#if a}}x@@</title>{{/if}}", "begins outside of {{#if a}}")
	f("{{#if a}}<v:fill src='x'/><!--[if mso]><td><![endif]-->{{/if}}", "")

	// Tags, attributes, scripts and comments.
	f("<@@{{#if a}}b>x</b>{{else}}{{/if}}", "name of a tag")
	for _, place := range []string{`<p title="%s">`, "<p title='%s'>", "<a href='https://x.example/%s'>", "<!-- %s -->", "<!--[if %s]>x<![endif]-->",
		"<!--[if mso]><p>%s</p><![endif]-->", "<p style='%s'>", "<p bgcolor='%s'>", "<script>%s</script>", "<style>%s</style>", "<p title=%s>", "<p %s>",
		"<!DOCTYPE %s>", "<?x %s?>", "<a href='%s'>", "<title><b>%s</title>", "<%s>", "</%s>", "<!%s>"} {
		_, ps := template.ParseHTML("p", fmt.Sprintf(place, "{{#if a}}x{{/if}}"))
		if len(ps) == 0 || !strings.Contains(ps[0].Message, "{{#if a}} cannot stand in ") {
			t.Errorf("%s: %v", place, ps)
		}
	}
	for _, split := range []string{"<{{#if a}}b>x</b>{{/if}}", "{{#if a}}<{{/if}}b>", "{{#if a}}</{{/if}}b>", "{{#if a}}<!{{/if}}--x-->",
		"<!-{{#if a}}-{{/if}} x -->", "{{#if a}}<p {{/if}}>", "{{#if a}}<p title='{{else}}'>{{/if}}", "{{#if a}}<!--{{/if}}-->", "{{#if a}}<script>{{/if}}</script>",
		"{{#if a}}<plaintext>{{/if}}"} {
		if _, ps := template.ParseHTML("p", split); len(ps) == 0 {
			t.Errorf("%s is accepted", split)
		}
	}
}

// TestOtherBlocks: what templates of other services have says what to write instead.
func TestOtherBlocks(t *testing.T) {
	t.Parallel()
	for braces, want := range map[string]string{
		"{{#each items}}": "there are no loops", "{{/each}}": "there are no loops", "{{#unless a}}": "{{#if name}}{{else}}",
		"{{^a}}": "{{#if name}}{{else}}", "{{#items}}": "no sections", "{{/items}}": "no sections", "{{#with a}}": "no helpers",
		"{{> header}}": "no partials", "{{>header}}": "no partials", "{{! note }}": "no comments", "{{!-- note --}}": "no comments",
		"{{else if b}}": "{{else}}{{#if name}}", "{{#if (eq a b)}}": "compare in the caller", "{{#if a b}}": "compare in the caller",
		"{{#if}}": "asks whether one variable", "{{#if !a}}": "compare in the caller", "{{# if a}}": "without blanks",
		"{{~#if a}}": "without it", "{{~a~}}": "without it", "{{formatDate now}}": "no helpers", "{{{a}}}": "write {{a}}",
		"{{a-b}}": "must be a name", "{{}}": "must be a name", "{{#if ä}}": "asks whether one variable",
	} {
		_, ps := template.ParsePlain("p", "x "+braces)
		if len(ps) != 1 || !strings.HasPrefix(ps[0].Message, "line 1, column 3: ") || !strings.Contains(ps[0].Message, want) {
			t.Errorf("%s: %v, want %q", braces, ps, want)
		}
	}
}

// TestLabelColours: a label that is a colour may be one in a style attribute and in bgcolor.
func TestLabelColours(t *testing.T) {
	t.Parallel()
	parse := func(body string) (*template.Template, catalog.Problems) {
		return template.Parse(&catalog.Template{SubjectTemplate: "s", BodyHTML: body})
	}
	for _, fine := range []string{
		`<p style="color:{{label.c}}">x`, `<p style=" COLOR : {{ label.c }} ">x`, `<p style='margin:0;background-color:{{label.c}};x:y'>`,
		`<td style="border-color:{{label.c}};color:{{label.c}};">`, `<td bgcolor="{{label.c}}">`, `<td BGCOLOR=' {{label.c}} '>`,
		`<!--[if mso]><td style="color:{{label.c}}"><![endif]-->`,
	} {
		tmpl, ps := parse(fine)
		if len(ps) > 0 {
			t.Errorf("%s: %v", fine, ps)
			continue
		}
		for value, good := range map[string]bool{"#0aF": true, "#00AAff": true, "red": true, "RebeccaPurple": true, "": false, "#0aFF": false,
			"#00aaff80": false, "0aF": false, "#ggg": false, "url(x)": false, "red;x:y": false, "red ": false, "transparent": false,
			"rgb(0,0,0)": false, "red\n": false} {
			_, ps := tmpl.Render(template.WithProject(nil, &catalog.Project{Labels: []catalog.Label{{Name: "c", Value: value}}}))
			if (len(ps) == 0) != good || !good && ps[0].Path != "variables.label.c" {
				t.Errorf("%s with %q: %v", fine, value, ps)
			}
		}
		// A caller is no project.
		if _, ps := tmpl.Render(template.WithProject(vars{"label.c": "red"}, &catalog.Project{})); len(ps) != 1 ||
			ps[0].Path != "variables.label.c" || !strings.Contains(ps[0].Message, `no label "c"`) {
			t.Errorf("%s: %v", fine, ps)
		}
	}
	for _, refused := range []string{
		`<p style="color:{{a}}">`, `<p style="{{label.c}}">`, `<p style="color:{{label.c}} !important">`, `<p style="color: #{{label.c}}">`,
		`<p style="color:{{label.c}}{{label.c}}">`, `<p style="background:{{label.c}}">`, `<p style="border:1px solid {{label.c}}">`,
		`<p style="{{label.c}}:red">`, `<p style="color&colon;{{label.c}}">`, `<p style="x-color:{{label.c}}">`, `<p style="a:b:color:{{label.c}}">`,
		`<p style="color:{{label.c}};width:{{a}}">`, `<style>p{color:{{label.c}}}</style>`, `<p style=color:{{label.c}}>`,
		`<meta style="color:{{label.c}}">`, `<p style="color:{{label}}">`, `<p style="color:/**/{{label.c}}">`,
	} {
		if _, ps := parse(refused + "x"); len(ps) == 0 {
			t.Errorf("%s is accepted", refused)
		}
	}
	// What a caller gives to bgcolor, and labels elsewhere, are text.
	tmpl, ps := parse(`<td bgcolor="{{a}}"><td bgcolor="#{{label.brand_colour}}"><img src="{{label.logo}}" alt="{{label.empty}}">`)
	if len(ps) > 0 {
		t.Fatal(ps)
	}
	got, ps := tmpl.Render(template.WithProject(vars{"a": "no colour", "label.logo": "https://evil.example"}, acme))
	if want := `<td bgcolor="no colour"><td bgcolor="##0aF"><img src="https://acme.example/logo.png" alt="">`; len(ps) > 0 || got.HTML != want {
		t.Errorf("%v %s", ps, got.HTML)
	}
	bad := &catalog.Project{Labels: []catalog.Label{{Name: "logo", Value: "javascript:x"}, {Name: "empty"}, {Name: "brand_colour"}}}
	if _, ps := tmpl.Render(template.WithProject(vars{"a": ""}, bad)); !slices.Equal(paths(ps), []string{"variables.label.logo"}) {
		t.Error(ps)
	}
	// 32 labels are none of the caller's 100 variables.
	many, given := &catalog.Project{}, vars{"a": "x"}
	for i := range catalog.MaxLabels {
		many.Labels = append(many.Labels, catalog.Label{Name: fmt.Sprint("l", i), Value: "red"})
	}
	for i := range catalog.MaxVariables - 1 {
		given[fmt.Sprint("v", i)] = ""
	}
	given[catalog.UnsubscribeVariable] = "https://x.example/u/1"
	if _, ps := parsedTemplate(t, "s", "", "{{label.l31}}").Render(template.WithProject(given, many)); len(ps) > 0 {
		t.Error(ps)
	}
}

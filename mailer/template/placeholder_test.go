package template_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"fingerpost/cmd/testrig"
	"fingerpost/mailer/template"
	"fingerpost/resolver/catalog"
)

// TestMarkupRules has each place where a placeholder may be in HTML, and each where it may not. A @@ marks the reported
// position.
func TestMarkupRules(t *testing.T) {
	f := func(marked, want string) {
		t.Helper()
		body := strings.Replace(marked, "@@", "", 1)
		segments, ps := template.ParseHTML("bodyHtml", body)
		if want == "" {
			if len(ps) > 0 || strings.Contains(body, "{{") && len(segments) == 0 {
				t.Errorf("%q: %v", body, ps)
			}
			return
		}
		column := strings.Index(marked, "@@")
		if len(ps) != 1 || ps[0].Path != "bodyHtml" || ps[0].Start != column || !strings.Contains(ps[0].Message, want) ||
			!strings.HasPrefix(ps[0].Message, fmt.Sprintf("line 1, column %d: ", column+1)) {
			t.Errorf("%q: %+v, want one on byte %d with %q", body, ps, column, want)
		}
	}
	const (
		tag, attr, unquoted   = "name of a tag", "name of an attribute", "without quotes"
		script, style, opens  = "in a script", "in a style sheet", "<! opens"
		scheme                = "a link's scheme"
		never, comment, quote = "is never closed", "end the comment", "the quote is never closed"
	)
	// Text.
	f("Hello {{a}}, 1 < 2 {{ b }}", "")
	f("a<@@{{a}}", tag)
	f("</@@{{a}}>", tag)
	f("< {{a}} <3{{a}} <<p>{{a}}", "")
	f("<{ {{a}}", "")
	f("&{{a}};&#{{a}};", "")

	// Tags.
	f("<h@@{{level}}>x</h1>", tag)
	f("<h1>x</h@@{{level}}>", tag)
	f("<@@{{a}}:b>", tag)
	f("<td @@{{attrs}}>", attr)
	f("<td a@@{{attrs}}='x'>", attr)
	f("<td a=''@@{{attrs}}>", attr)
	f("<br/@@{{a}}>", attr)
	f("</td @@{{a}}>", attr)
	f("<td title=@@{{a}}>", unquoted)
	f("<td title=\t@@{{a}}>", unquoted)
	f("<td title=x@@{{a}}>", unquoted)
	f("<td title=x/@@{{a}}/>", unquoted)
	f("<td title=`@@{{a}}`>", unquoted)
	f("<td ='@@{{a}}'>", attr) // an attribute of the name ='{{a}}'
	f(`<td title="{{a}}" class='{{b}}'>{{c}}</td>`, "")
	f(`<TD TITLE = "it's {{a}}">`, "")
	f(`<td title='say "{{a}}"'>`, "")
	f(`<td title="<script>{{a}}">`, "")
	f(`<td style="color: @@{{color}}">`, "cannot stand in a style attribute")
	f(`<td title=x>{{a}}`, "")
	f("<a title=@@\"{{a}}>text</a>", quote)
	f("<a title=@@'{{a}} {{b}}>text</a> <b class=\"c\">", quote)
	f("{{b}}@@<a title=\"{{a}}\"", never)
	f("<a title=\"never closed, but nothing in it", "")
	f("{{a}}<a title=\"", "")
	f(`<a onclick="go(@@{{a}})">`, script)
	f(`<a ONLOAD='@@{{a}}'>`, script)

	// Scripts and style sheets.
	f("<script>x = '@@{{a}}'</script>", script)
	f("<SCRIPT type='x'>x = '@@{{a}}'</sCript >", script)
	f("<script/>@@{{a}}", script)
	f("<script>1</script>{{a}}", "")
	f("<script>@@{{a}}", script)
	f("<script></scriptx>@@{{a}}</script>", script)
	f("<script><!-- <script> </script> @@{{a}} --></script>", script)
	f("<script><!--<! <script> </script> @@{{a}} </script>", script) // <! within <!-- changes nothing
	f("<script><!-- </script> {{a}}", "")
	f("<script><!--> <script> </script> {{a}}", "")
	f("<script><!-- <script> --> </script> {{a}}", "")
	f("<script><!-- <script> </script> </script> {{a}}", "")
	f("<script src='{{a}}'></script>", "")

	// Links whose scheme would consist of both template text and value.
	f("<a href='java@@{{a}}'>", scheme)
	f("<a href=' JAVA&NewLine;script&Tab;@@{{a}}:{{b}}'>", scheme)
	f("<img xlink:src='x-1.@@{{a}}'>", scheme)
	f("<a href='&@@{{a}}'>", scheme)
	f("<a href='&#@@{{a}}'>", scheme)
	f("<a href='ja&#1@@{{a}}'>", scheme)
	f("<a href='https://x.example/{{a}}'><a href='mailto:{{a}}'><a href='https:{{a}}'>", "")
	f("<a href='/{{a}}'><a href='?a={{a}}&b={{b}}'><a href='#{{a}}'><a href='img/{{a}}.png'><a href='1{{a}}'>", "")
	f("<a title='java{{a}}' hrefs='java{{a}}'>", "")
	f("<a title='java{{a}}' data-href='java@@{{a}}'>", scheme)
	f("<style>a { color: @@{{a}} }</style>", style)
	f("<Style>a{b{c}}</style>{{a}}", "")
	f("<style><!-- </style>{{a}}", "")
	f("<style></style@@{{a}}>", style)

	// Elements whose content is text.
	f("<title>{{a}} & <b @@{{c}}></title>{{b}}", "cannot stand in an element whose content is text to some readers")
	f("<title><script>@@{{a}}</title>{{b}}", "cannot stand in an element whose content is text to some readers")
	f("<textarea>{{a}}</TEXTAREA\n>{{b}}", "")
	f("<xmp><!-- </xmp><script>@@{{a}}</script>", script)
	f("<title></ti@@{{a}}>", tag)
	f("<title></title@@{{a}}></title>", tag)
	f("<title><@@{{a}}></title>", tag)
	f("@@<title>{{a}}", never)
	f("<p>@@<plaintext>{{a}}</plaintext>", never)

	// Comments.
	f("<!-- {{a}} -- <script>{{b}}</script> <a {{c}} b> -->{{d}}", "")
	f("<!--{{a}}--><!----><!--><!--->{{b}}", "")
	f("<!-- --!>{{a}}", "")
	f("<!--> <script> @@{{a}} -->", script)
	f("@@<!-- {{a}}", never)
	f("@@<!-- {{a}} --", never)
	f("<!-- @@{{a}}> -->", comment)
	f("<!-- @@{{a}}-> -->", comment)
	f("<!-- @@{{a}}!> -->", comment)
	f("<!-- @@{{a}}-!> -->", comment)
	f("<!-- {{a}}--!>", "")
	f("<!@@{{a}}-- x -->", opens)
	f("<!-@@{{a}}- x -->", opens)
	f("<![CDATA@@{{a}}]]>", opens)
	f("<![CDATA[ {{a}} ]]>", "")
	f("<!DOCTYPE {{a}}><?xml {{a}}?></ {{a}}>", "")
	f("@@<!DOCTYPE {{a}}", never)

	// A conditional comment is HTML to Outlook.
	f("<!--[if mso]><td title='{{a}}'>{{b}}</td><![endif]-->", "")
	f("<!--[if mso]><td @@{{a}}><![endif]-->", attr)
	f("<!--[IF gte mso 9]><a href=@@{{a}}><![endif]-->", unquoted)
	f("<!--[if mso]><style>@@{{a}}</style><![endif]-->", style)
	f("<!--[if mso]><td title=@@'{{a}} ><![endif]-->", quote)
	f("<!--[if mso]><p>@@{{a}}><![endif]-->", comment)
	f("<!--[if mso]>@@<!--[if x]> <td {{a}} ><![endif]-->", never)
	f("<!--[if !mso]><!-->{{a}}<!--<![endif]-->{{b}}", "")
	f("<!--[if !mso]><!--><td @@{{a}}><!--<![endif]-->", attr)
	f("<![if !mso]><td @@{{a}}><![endif]>", attr)
	f("<!--[if {{a}}]><td><![endif]-->", "")
	f("<!--[if mso] {{a}}-->", "")
}

// TestEveryProblem asserts that one mistake does not hide another, and that positions are right.
func TestEveryProblem(t *testing.T) {
	body := "Grüße <a {{x}}>\n{{a b}} {{ok}}\n<script>{{y}}</script>\r\n {{{z}}} {{{q}} {{\n<p title={{w}}> {{ {{ok}}"
	_, ps := template.ParseHTML("p", body)
	var got []string
	for _, p := range ps {
		got = append(got, body[p.Start:p.End])
		before := body[:p.Start]
		line := 1 + strings.Count(before, "\n")
		column := 1 + len([]rune(before[strings.LastIndexByte(before, '\n')+1:]))
		if !strings.HasPrefix(p.Message, fmt.Sprintf("line %d, column %d: ", line, column)) {
			t.Errorf("%q is said to be at %s", body[p.Start:p.End], p.Message)
		}
	}
	want := []string{"{{x}}", "{{a b}}", "{{y}}", "{{{z}}}", "{{{q}}", "{{", "{{w}}", "{{ "}
	if !slices.Equal(got, want) {
		t.Errorf("problems at %q, want %q", got, want)
	}

	_, ps = template.ParsePlain("p", strings.Repeat("{{}}\n", 1000))
	if last := ps[len(ps)-1]; len(ps) != 101 || last.Message != "line 101, column 1: from here on 900 more problems are not shown" {
		t.Errorf("%d problems, the last is %s", len(ps), last.Message)
	}
}

// TestLinks asserts which values must be addresses.
func TestLinks(t *testing.T) {
	f := func(body string, want ...bool) {
		t.Helper()
		segments, ps := template.ParseHTML("p", body)
		var got []bool
		for _, s := range segments {
			if s.Name != "" {
				got = append(got, s.Link)
			}
		}
		if len(ps) > 0 || !slices.Equal(got, want) {
			t.Errorf("%q: %v %v, want %v", body, got, ps, want)
		}
	}
	f(`<a href="{{a}}">{{b}}</a>`, true, false)
	f(`<A HREF = ' {{a}}{{b}}' title="{{c}}">`, true, false, false)
	f("<img src='\n{{a}}'>", true)
	f(`<img src="&#9;&Tab; {{a}}">`, true)
	f(`<img src="&nbsp;{{a}}">`, false) // which is no space in an address
	f(`<a href="https://x.example/{{a}}">`, false)
	f(`<a href="//{{a}}">`, false)
	f(`<a data-href="{{a}}" title="{{b}}" hrefs="{{c}}">`, true, false, false)
	f(`<use xlink:href="{{a}}">`, true)
	f(`<!--[if mso]><v:roundrect href="{{a}}"><![endif]-->`, true)
	f(`<!-- <a href="{{a}}"> -->`, false)
	f(`<title>{{a}}</title>`, false)
}

func TestVariablesOfATemplate(t *testing.T) {
	many := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "{{v%d}}{{v%d}}", i, i/2)
		}
		return b.String()
	}
	tmpl := welcome()
	tmpl.SubjectTemplate, tmpl.BodyText = "{{projectName}}", many(catalog.MaxVariables)
	if ps := template.Validate(&tmpl); len(ps) > 0 {
		t.Error(ps)
	}
	tmpl.BodyHTML = "{{one_more}}"
	if ps := template.Validate(&tmpl); len(ps) != 1 || ps[0].Path != "bodyText" || ps[0].Message != "there are 101 variables with those of this part, 100 are allowed" {
		t.Error(ps)
	}
}

// TestHugeTexts asserts that the time for a text is linear in its length, whatever it contains.
func TestHugeTexts(t *testing.T) {
	every := testrig.Size(t, 1, 4) // outside of campaigns each piece is in one of the four places
	length := testrig.Part(catalog.MaxBodyBytes)
	for i, piece := range []string{
		"{{", "{{a}}", "{{ {{", "{{{", "<", "<!--", "<!--[if]>", "<!-- {{a}}> -->", "<!--[if]>{{a}}--><", "<a href=\"", "<a b='{{a}}", "<script>", "<script><!--",
		"<title></title", "<title>{{a}}</", "<textarea>", "</", "-", "--", "<!---", "&", "&amp;", "<a href='&amp;{{a}}", "<a =", "<a/", "\n{{\n", "]>", "<!--[if <![endif]",
	} {
		for place, body := range []string{
			strings.Repeat(piece, length/len(piece)),
			"{{a}}" + strings.Repeat(piece, length/len(piece)) + "{{a}}",
			"<!--[if mso]>" + strings.Repeat(piece, length/len(piece)) + "{{a}}-->{{a}}",
			"<a href='" + strings.Repeat(piece, length/len(piece)) + "{{a}}'>{{a}}",
		} {
			if (i+place)%every != 0 {
				continue
			}
			start := time.Now()
			_, ps := template.ParseHTML("p", body)
			testrig.AtMost(t, time.Since(start), 2*time.Second)
			if len(ps) > 101 {
				t.Errorf("%d problems", len(ps))
			}
		}
	}
}

// FuzzTemplate: a text is either refused, or a value in it is only text: an independent tokenizer sees the same tags
// with the same attributes whatever the values are, and no value in a script.
func FuzzTemplate(f *testing.F) {
	for _, s := range []string{
		"Hello {{a}}", "<a href=\"{{a}}\" title='{{ b }}'>{{a}}</a>", "<!--[if mso]>{{a}}<![endif]-->", "<title>{{a}}</title><style>x</style>",
		"<script><!-- <script> </script> {{a}} --></script>", "<!-- {{a}} -->{{b}}", "<![CDATA[{{a}}]]>", "<textarea></text{{a}}", "{{{a}}} {{a b}} {{",
		"<a b={{a}}>", "<xmp><!-- </xmp>{{a}}", "<!{{a}}", "</{{a}}>", "<p a='\"' b=\"'\" {{c}}>", "<!--{{a}}>",
		"{{#if a}}<p>{{b}}</p>{{else}}<br>{{/if}}", "<p style='color:{{label.a}};x:y' bgcolor=\"{{label.b}}\">{{#if a}}x{{/if}}</p>",
		"<title>{{#if a}}{{b}}{{/if}}</title><{{#if a}}b{{/if}}>",
	} {
		f.Add(s)
	}
	f.Fuzz(checkTemplate)
}

// TestRandomMarkup is FuzzTemplate over pieces that are difficult in combination.
func TestRandomMarkup(t *testing.T) {
	pieces := []string{"{{a}}", "{{b}}", "<", ">", "/", "!", "-", "--", "<!--", "-->", "--!>", "[if mso]>", "<![endif]", "\"", "'", "=", " ", "\n", "x", "on", "href",
		"<a ", "<p>", "</p>", "<script", "</script", "<style>", "</style>", "<title>", "</title", "<textarea>", "</textarea>", "?", "[CDATA[", "]]>", "&", "<xmp>", "</xmp>", "{{", "}}",
		"{{#if a}}", "{{#if b}}", "{{else}}", "{{/if}}", "{{/if}}", "style='", "color:", "{{label.c}}"}
	n := testrig.Size(t, 20_000, 1_500)
	r := rand.New(rand.NewPCG(4, 2))
	accepted := 0
	for range n {
		var b strings.Builder
		for range 2 + r.IntN(14) {
			b.WriteString(pieces[r.IntN(len(pieces))])
		}
		if checkTemplate(t, b.String()); t.Failed() {
			t.Fatalf("%q", b.String())
		}
		if _, ps := template.ParseHTML("p", b.String()); len(ps) == 0 && strings.Contains(b.String(), "{{") {
			accepted++
		}
	}
	if accepted < n/20 {
		t.Errorf("only %d of %d were accepted, which shows little", accepted, n)
	}
}

func checkTemplate(t *testing.T, body string) {
	if len(body) > 64<<10 || strings.Contains(body, "\uFDD0") {
		return // a skip would leave out all later ones, too
	}
	checkSegments(t, body, template.ParsePlain)
	segments := checkSegments(t, body, template.ParseHTML)
	if segments == nil || strings.Contains(strings.ToLower(body), "noscript") { // which the tokenizer takes for a script
		return
	}
	for _, holds := range []func(n int) bool{func(int) bool { return true }, func(int) bool { return false },
		func(n int) bool { return n%2 == 0 }} {
		sent := taken(segments, holds)
		want := structure(with(sent, "x"))
		for _, value := range []string{"", "-", "--", "!--", "<script>", "</script>", "--><img src=x onerror=y>", "\" onload=\"x", "' onload='x", " a=b ", "/", "title", "[CDATA[",
			"--!>", "]]>", "<!--", "&lt;", "`", "=", "\n", "\x00", "{{a}}", "\xff"} {
			if got := structure(with(sent, value)); got != want {
				t.Errorf("%q: with %q there is\n%s, with x there is\n%s", body, value, got, want)
			}
		}
		checkPlaces(t, body, sent)
	}
	checkBranches(t, body, segments)
}

// taken returns the segments that stand in a mail if the conditions hold for which holds says so, by their number.
func taken(segments []template.Segment, holds func(n int) bool) (left []template.Segment) {
	var in []bool // of each open condition: whether its branch is taken
	n := 0
	for _, s := range segments {
		if !slices.Contains(in, false) {
			left = append(left, template.Segment{Text: s.Text})
			if s.Op == template.Value {
				left[len(left)-1].Name, left[len(left)-1].Link = s.Name, s.Link
			}
		}
		switch s.Op {
		case template.If:
			in = append(in, holds(n))
			n++
		case template.Else:
			in[len(in)-1] = !in[len(in)-1]
		case template.End:
			in = in[:len(in)-1]
		}
	}
	return left
}

// checkBranches asserts that the tags of a condition stand between whole tags: what is between them is HTML in itself.
func checkBranches(t *testing.T, body string, segments []template.Segment) {
	t.Helper()
	for _, raw := range []string{"title", "textarea", "xmp", "iframe", "noembed", "noframes"} { // text may be in these
		if strings.Contains(strings.ToLower(body), "<"+raw) {
			return
		}
	}
	var parts strings.Builder
	at := 0
	for i, s := range segments {
		if s.Op != template.Value || i == len(segments)-1 {
			piece := slices.Clone(segments[at : i+1])
			if s.Op != template.Value {
				piece[len(piece)-1].Name = ""
			}
			parts.WriteString(structure(with(piece, "x")))
			at = i + 1
		}
	}
	if whole := structure(with(taken(both(segments), nil), "x")); whole != parts.String() {
		t.Errorf("%q: in one there is\n%s, between the conditions there is\n%s", body, whole, parts.String())
	}
}

// both returns the segments with all branches and without conditions.
func both(segments []template.Segment) []template.Segment {
	all := slices.Clone(segments)
	for i := range all {
		if all[i].Op != template.Value {
			all[i].Op, all[i].Name = template.Value, ""
		}
	}
	return all
}

// checkSegments asserts the invariants of segments and problems, and returns the segments if there are no problems.
func checkSegments(t *testing.T, body string, parse func(path, text string) ([]template.Segment, catalog.Problems)) []template.Segment {
	t.Helper()
	segments, ps := parse("p", body)
	for i, p := range ps {
		if p.Start < 0 || p.Start >= p.End || p.End > len(body) || i > 0 && p.Start < ps[i-1].Start || !strings.HasPrefix(p.Message, "line ") || p.Path != "p" {
			t.Errorf("%q: %+v", body, p)
		}
	}
	if len(ps) > 0 {
		return nil
	}
	rest := body
	for i, s := range segments {
		after, ok := strings.CutPrefix(rest, s.Text)
		if !ok || strings.Contains(s.Text, "{{") || s.Name == "" && s.Op == template.Value && i < len(segments)-1 {
			t.Fatalf("%q: segment %d is %+v", body, i, s)
		}
		if rest = after; s.Op != template.Value {
			inner, after, _ := strings.Cut(rest, "}}")
			want := map[template.Op]string{template.If: "#if " + s.Name, template.Else: "else", template.End: "/if"}[s.Op]
			if got := strings.Join(strings.Fields(strings.TrimPrefix(inner, "{{")), " "); got != want {
				t.Fatalf("%q: %q stands where %q does", body, want, got)
			}
			rest = after
		} else if s.Name != "" {
			inner, after, _ := strings.Cut(rest, "}}")
			if strings.Trim(inner, " \t") != "{{"+s.Name && strings.Trim(strings.TrimPrefix(inner, "{{"), " \t") != s.Name {
				t.Fatalf("%q: %q stands where %q does", body, s.Name, inner)
			}
			rest = after
		}
	}
	if rest != "" {
		t.Errorf("%q: %q is lost", body, rest)
	}
	if segments == nil {
		segments = []template.Segment{}
	}
	return segments
}

// with renders the segments, all with the same value.
func with(segments []template.Segment, value string) string {
	var b strings.Builder
	for _, s := range segments {
		b.WriteString(s.Text)
		if s.Name != "" {
			b.WriteString(html.EscapeString(value))
		}
	}
	return b.String()
}

// structure lists tags, attributes and comments.
func structure(body string) string {
	var b strings.Builder
	z := html.NewTokenizer(strings.NewReader(body))
	for {
		switch kind := z.Next(); kind {
		case html.ErrorToken:
			return b.String()
		case html.TextToken:
		case html.CommentToken, html.DoctypeToken:
			fmt.Fprintln(&b, kind)
		default:
			token := z.Token()
			fmt.Fprintf(&b, "%v %q", kind, token.Data)
			for _, a := range token.Attr {
				fmt.Fprintf(&b, " %q", a.Key)
			}
			b.WriteByte('\n')
		}
	}
}

// checkPlaces asserts that no value gets into a script or style sheet, and that values which begin links are marked.
func checkPlaces(t *testing.T, body string, segments []template.Segment) {
	t.Helper()
	var b strings.Builder
	for i, s := range segments {
		b.WriteString(s.Text)
		if s.Name != "" {
			fmt.Fprintf(&b, "\uFDD0%d.", i)
		}
	}
	z := html.NewTokenizer(strings.NewReader(b.String()))
	in := ""
	for {
		kind := z.Next()
		if kind == html.ErrorToken {
			return
		}
		token := z.Token()
		if kind == html.TextToken && (in == "script" || in == "style") && strings.Contains(token.Data, "\uFDD0") {
			t.Errorf("%q: a placeholder in %s", body, in)
		}
		in = ""
		if kind == html.StartTagToken || kind == html.SelfClosingTagToken {
			in = token.Data
		}
		for _, a := range token.Attr {
			value := strings.TrimLeftFunc(a.Val, func(r rune) bool { return r <= ' ' })
			var i int
			if n, _ := fmt.Sscanf(value, "\uFDD0%d.", &i); n == 1 && (a.Key == "href" || a.Key == "src") && !segments[i].Link {
				t.Errorf("%q: placeholder %d begins a link", body, i)
			}
		}
	}
}

// TestSpoiltPlaceholders has each form in which editors spoil a placeholder, in HTML, text and subject, and what only
// looks like one.
func TestSpoiltPlaceholders(t *testing.T) {
	t.Parallel()
	parsers := map[string]func(path, text string) ([]template.Segment, catalog.Problems){
		"HTML": template.ParseHTML, "text": template.ParsePlain,
	}
	for _, body := range []string{
		`<a href="%7B%7Blink%7D%7D">x</a>`, `<a href="%7b%7b%20link%20%7d%7d">x</a>`,
		`<a href="https://{{host}}/%7B%7Blink%7D%7D">x</a>`, `<a href="https://x.example/?t={%7Blink%7D}">x</a>`,
		"&#123;&#123;link&#125;&#125;", "&#x7B;&#x7b;link&#x7D;&#X7D;", "&lbrace;&lcub;link&rcub;&rbrace;", "&#123&#123link&#125&#125",
		"{<b>{link}</b>}", "{ {<i>link}}", "{<span class=\"x\">{</span>link}}", "{{<b>link</b>}}", "{{link<br>}}", "{{&nbsp;link}}",
		"{ {link} }", "{ {link}}", "{{link} }", "{\u200b{link}}", "{{\u00a0link}}", "{{li\u00adnk}}", "{{\nlink}}",
		"{link}}", "{{link}", "{ link }}", "{{link} and {{other}}", "｛｛link｝｝",
	} {
		for kind, parse := range parsers {
			_, ps := parse("p", body)
			if len(ps) != 1 || !strings.Contains(ps[0].Message, "write {{link}}") {
				t.Errorf("%s %q: %v", kind, body, ps)
			}
		}
	}
	for _, body := range []string{
		"{link}", "{ link }", "{a} {{b}}", "{{a}}}", "{{a}} }", "{ {{a}} }", "{{{", "a { b { c: d } }", "100%7B", "{\"a\": {\"b\": 1}}",
		"%7B%22a%22%7D", "{ {x} in a set", "{}", "{{a}}{{b}}", "<p>{</p><p>x}</p>", "&#123;a&#125;",
	} {
		for kind, parse := range parsers {
			for _, p := range func() catalog.Problems { _, ps := parse("p", body); return ps }() {
				if strings.Contains(p.Message, "write {{") {
					t.Errorf("%s %q: %v", kind, body, p)
				}
			}
		}
	}
	if _, ps := template.ParseHTML("p", "<style>@media x{.a{b}}</style><script>if(x){y}}</script>{{a}}"); len(ps) > 0 {
		t.Error(ps)
	}
	for _, piece := range []string{"{", "{ ", "{<a>", "%7B", "&#123;", "{a", "{<", "{a} ", "{a<b>", "{{a}"} {
		begun := time.Now()
		template.ParseHTML("p", strings.Repeat(piece, 100_000/len(piece)))
		testrig.AtMost(t, time.Since(begun), 5*time.Second)
	}
}

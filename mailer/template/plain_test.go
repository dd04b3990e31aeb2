package template_test

import (
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"fingerpost/cmd/testrig"
	"fingerpost/mailer/template"
)

func TestPlainText(t *testing.T) {
	t.Parallel()
	f := func(source, want string) {
		t.Helper()
		if want != "" {
			want += "\n"
		}
		if got, err := template.PlainText(source); got != want || err != nil {
			t.Errorf("%q:\n got %q, %v\nwant %q", source, got, err, want)
		}
	}
	f("", "")
	f(" \n\t ", "")
	f("x", "x")
	f("  one\n\ttwo &amp; &lt;three&gt; &eacute;&#8364; ", "one two & <three> é€")
	f("a&nbsp;&nbsp;b", "a b")
	f("a<b>b</b> <i>c</i>d", "ab cd")
	f("1 < 2 & 3", "1 < 2 & 3")

	// Blocks.
	f("<p>one</p><p>two</p>", "one\n\ntwo")
	f("<h1>Title</h1>text", "Title\n\ntext")
	f("<div>one</div><div>two</div>", "one\ntwo")
	f("<div><div><div>one</div></div></div>two", "one\ntwo")
	f("<p></p><div></div><p>one<p>two", "one\n\ntwo")
	f("one<br>two<br/>three<br><br><br><br>four", "one\ntwo\nthree\n\nfour")
	f("<p>one</p>\n\n<hr>\n<p>two</p>", "one\n\n---\n\ntwo")
	f("<table><tr><td>a</td><td>b</td></tr>\n<tr><th>c<td>d</table>e", "a b\nc d\n\ne")
	f("<table><tr><td><table><tr><td><p>x</p></td></tr></table></td></tr></table><table><tr><td>y</table>", "x\n\ny")
	f("a<pre>\n  two  words\n\n\n    \tthree &lt;\r\n</pre>b", "a\n\n  two  words\n\n    \tthree <\n\nb")
	f("<blockquote>one<br>two<blockquote>three</blockquote></blockquote>four", "> one\n> two\n\n> > three\n\nfour")
	f("</blockquote></pre></ul></a></p>x", "x")

	// Lists.
	f("<ul><li>one</li><li>two</ul>three", "- one\n- two\n\nthree")
	f("<p>a</p><ol>\n <li>one\n <li><p>two</p><p>more</p>\n</ol>", "a\n\n1. one\n2. two\n\n  more")
	f("<ul><li>one<ul><li>deep</li></ul></li><li>two</li></ul>", "- one\n  - deep\n- two")
	f("<ul><li></li><li>x</ul>", "- \n- x")
	f("<li>x", "- x")

	// Links and images.
	f(`<a href="https://x.example/y?a=1&amp;b=2">here</a>, <a href="MAILTO:a@b.example">write</a>.`, "here (https://x.example/y?a=1&b=2), write (MAILTO:a@b.example).")
	f(`<a href="https://x.example/">https://x.example/</a> <a href="https://x.example/">x.example</a> <a href="mailto:a@b.example">a@b.example</a>`,
		"https://x.example/ x.example a@b.example")
	f(`<a href="#top">up</a> <a name="x">name</a> <a href="javascript:x">no</a> <a>none</a>`, "up name no none")
	f(`<a href="https://x.example"><img alt="Acme shop" src="x.png"></a><img src="y.png"> <a href="https://y.example"><img src="y.png" alt=""></a>`,
		"Acme shop (https://x.example) https://y.example")
	f(`<a href="https://x.example"><table><tr><td> Button </td></tr></table></a> after`, "Button (https://x.example)\n\nafter")
	f(`a<a href="https://x.example">b<a href="https://y.example">c`, "ab (https://x.example)c (https://y.example)")
	f(`<a href=" https://x.example/
		y ">x</a>`, "x (https://x.example/y)")

	// Hidden content.
	f("<!DOCTYPE html><html><head><title>T</title><style>a{}</style><script>x</script></head><body>x</body></html>", "x")
	f("<!-- c --><!--[if mso]><p>outlook</p><![endif]--><![if !mso]>x<![endif]>", "x")
	f(`<div style="DISPLAY : none; max-height:0">pre<div>header</div></div>x`, "x")
	f(`<span hidden>a</span><p style='visibility: hidden'>b</p>x<br hidden>y`, "xy")
	f("<p hidden>a<p>b", "b")
	for _, shown := range []string{"display:block", "/* display:none */ color:red", "-x-display:none", "display:none;display:block",
		"content:'display none'"} {
		f(`<div style="`+shown+`">x</div>`, "x")
	}
	f(`<div style="color:red;display:none !important">a</div><div style="/**/DISPLAY:/**/NONE">b</div>x`, "x")
	// What ends a hidden element although its end tag is not there: HTML lets it out, and minifiers do.
	const hide = ` style="display:none">`
	f("<p"+hide+"pre<div>x</div>", "x")
	f("<p"+hide+"pre<table><tr><td>x</td></tr></table>", "x")
	f("<p"+hide+"pre<h1>x</h1>", "x")
	f("<p"+hide+"pre<ul><li>x</ul>", "- x")
	f("<table><tr><td><p"+hide+"pre</td></tr><tr><td>x</td></tr></table>", "x")
	f("<table><tr><td><span"+hide+"pre</td></tr><tr><td>x</td></tr></table>", "x")
	f("<ul><li>a<li"+hide+"pre</ul><div>x</div>", "- a\n\nx")
	f("<table><tr><td>a<td"+hide+"pre</table><div>x</div>", "a\n\nx")
	f("<table><tr><td>a<tr"+hide+"<td>pre</table><div>x</div>", "a\n\nx")
	f("<table><thead"+hide+"<tr><td>pre<tbody><tr><td>x</table>", "x")
	f("<dl><dt>a<dd"+hide+"pre</dl><div>x</div>", "a\n\nx")
	f("<div"+hide+"<p>pre<div>pre</div></div><div>x", "x")
	f("<section><div"+hide+"pre</section>x", "x")
	f("<noscript><p>a</p></noscript><textarea>b</textarea><template>c</template>d", "a\n\nd")
	f("<p>a\x00\x07b\u0085&#7;c\xff</p>", "abc\uFFFD")
}

func utf8Text(s string) bool {
	return utf8.ValidString(s) && (s == "" || strings.HasSuffix(s, "\n") && !strings.ContainsFunc(s, func(r rune) bool {
		return unicode.IsControl(r) && !strings.ContainsRune("\n\r\t", r)
	}))
}

// TestPlainTextIsLinear asserts that time and length grow at most linearly with the input.
func TestPlainTextIsLinear(t *testing.T) {
	t.Parallel()
	testrig.Slow(t)
	for _, piece := range []string{"<ul><li>", "<ol><li>x", "<blockquote>x", "<a href='https://x.example'>x", "<a href='https://x.example'>", "<p hidden>", "<div hidden>", "<pre>\nx",
		"<td>x", "<", "&amp;", "<!--", "<textarea>", "<br>", "</a>", "<table>", "x ", "\uFDD0"} {
		source := strings.Repeat(piece, testrig.Part(1<<20)/len(piece))
		start := time.Now()
		got, _ := template.PlainText(source) // refused where it is nested too deeply
		testrig.AtMost(t, time.Since(start), 5*time.Second)
		if len(got) > 8*len(source) || !utf8Text(got) {
			t.Errorf("%q gives %d bytes", piece, len(got))
		}
	}
}

package template_test

import (
	"regexp"
	"testing"

	"fingerpost/mailer/template"
)

// TestPlaceholderContexts: where a placeholder may be in HTML, however that place is written (mailer/README.md).
func TestPlaceholderContexts(t *testing.T) {
	const fine, link, refused = "fine", "link", "refused"
	f := func(want, text string) {
		t.Helper()
		segments, ps := template.ParseHTML("bodyHtml", text)
		got := fine
		for _, s := range segments {
			if s.Link {
				got = link
			}
		}
		if len(ps) > 0 {
			got = refused
			if !regexp.MustCompile(`^line \d, column \d+: `).MatchString(ps[0].Message) {
				t.Errorf("%s: no place: %s", text, ps[0].Message)
			}
		}
		if got != want {
			t.Errorf("%s is %s, want %s: %v", text, got, want, ps)
		}
	}
	f(fine, `<p title="{{a}}" data-x='{{a}}' alt="a {{a}}">{{a}}</p>`)
	f(fine, `<td bgcolor="{{a}}" width="{{a}}" align="{{a}}">`)
	// Attributes whose value is HTML, CSS, a script or a list of addresses.
	for _, attr := range []string{"style", "STYLE", "srcdoc", "SrcDoc", "srcset", "imagesrcset", "onclick", "onerror", "ONLOAD", "x:style"} {
		f(refused, `<iframe `+attr+`="{{a}}"></iframe>`)
		f(refused, `<iframe `+attr+` = '1, {{a}}'>`)
		f(refused, `<img/`+attr+"\n=\t\"x{{ a }}\">")
		f(refused, `<img alt="a"`+attr+`="{{a}}">`) // no space between
		f(refused, `<a `+attr+`="&quot;{{a}}">`)
	}
	f(fine, `<p data-style="{{a}}" mystyle="{{a}}">`)
	// Addresses.
	for _, attr := range []string{"href", "HREF", "src", "action", "formaction", "FormAction", "background", "poster",
		"xlink:href", "XLink:Href", "x:src", "ping", "cite", "longdesc", "data", "codebase", "dynsrc", "lowsrc", "manifest", "data-href"} {
		f(link, `<a `+attr+`="{{a}}">x</a>`)
		f(link, `<a `+attr+`=' {{a}}/b'>x</a>`)
		f(link, `<a `+attr+"=\"\n\t\x0c&#32;&#9;&Tab;&NewLine;{{a}}\">x</a>")
		f(link, `<a `+attr+`="&#1;&#x1f;{{a}}">x</a>`)
		f(fine, `<a `+attr+`="https://acme.example/{{a}}?b={{b}}">x</a>`)
		f(fine, `<a `+attr+`="mailto:{{a}}">x</a>`)
		f(fine, `<a `+attr+`="/path/{{a}}">x</a>`)
		f(fine, `<a `+attr+`="?q={{a}}">x</a>`)
		f(fine, `<a `+attr+`="#{{a}}">x</a>`)
		f(refused, `<a `+attr+`="java{{a}}">x</a>`)
		f(refused, `<a `+attr+`="java&#115;{{a}}">x</a>`)
		f(refused, `<a `+attr+`="&#106;{{a}}">x</a>`)
		f(refused, `<a `+attr+`="&#{{a}};">x</a>`)
		f(link, `<a `+attr+`="{{a}}{{b}}">x</a>`) // the first has a scheme of its own
		f(fine, `<img `+attr+`="data:image/png;base64,{{a}}">`)
		f(refused, `<img `+attr+`="data:image/png;{{a}}">`)
		f(refused, `<img `+attr+`="data:image/svg+xml,{{a}}">`)
		f(refused, `<a `+attr+`={{a}}>x</a>`)
		// A script or a document instead of an address.
		for _, scheme := range []string{"javascript:", "JavaScript:", " javascript:", "\tjava\nscript:", "java&#10;script&colon;", "&#x6A;avascript:",
			"\x01javascript:", "&#1;javascript:", "vbscript:", "data:text/html,", "DATA:"} {
			f(refused, `<a `+attr+`="`+scheme+`{{a}}">x</a>`)
		}
	}
	f(link, `<a href="{{base}}/x/{{b}}">x</a>`)
	f(link, `<a href="{{base}}?x={{b}}&y={{c}}">x</a>`)
	// Whole elements.
	f(refused, `<meta http-equiv="refresh" content="0; url={{a}}">`)
	f(refused, `<META content='{{a}}' name=description>`)
	f(refused, `<base href="{{a}}">`)
	f(refused, `<BASE target="{{a}}">`)
	f(refused, `<base href="https://acme.example/{{a}}">`)
	f(fine, `<meta name="x"><p>{{a}}</p>`)
	f(fine, `<basefont color="{{a}}">`)
	for _, element := range []string{"script", "SCRIPT", "style", "Style"} {
		f(refused, `<`+element+`>{{a}}</`+element+`>`)
		f(refused, `<svg><`+element+`>{{a}}</`+element+`></svg>`)
		f(refused, `<math><`+element+` type="x">{{a}}</`+element+`></math>`)
		f(refused, `<noscript><`+element+`>{{a}}</`+element+`></noscript>`)
		f(refused, `<!--[if mso]><`+element+`>{{a}}</`+element+`><![endif]-->`)
		f(refused, `<`+element+`/>{{a}}`) // in HTML the slash means nothing
		f(refused, `<textarea></textarea><`+element+`>{{a}}</`+element+`>`)
		f(refused, `<`+element+`><!--</`+element+`>--><`+element+`>{{a}}</`+element+`>`)
	}
	// SVG animations set any attribute.
	f(refused, `<svg><a><animate attributeName="href" values="{{a}}"/></a></svg>`)
	f(refused, `<svg><set attributename=href to="{{a}}"/></svg>`)
	f(refused, `<svg><animate attributeName="href" from='{{a}}' by="{{b}}"/></svg>`)
	// Within <svg> the content of these is HTML.
	for _, element := range []string{"title", "textarea", "xmp", "iframe", "noembed", "noframes"} {
		f(fine, `<`+element+`>{{a}}</`+element+`>`)
		f(refused, `<svg><`+element+`><a href="{{a}}">x</a></`+element+`></svg>`)
		f(refused, `<svg><`+element+`><script>{{a}}</script></`+element+`></svg>`)
	}
	f(fine, `<input value="{{a}}">`)
	// Names, and values without quotes.
	f(refused, `<{{a}}>`)
	f(refused, `<p {{a}}>`)
	f(refused, `<p {{a}}="x">`)
	f(refused, `<p on{{a}}="x">`)
	f(refused, `<p title=a{{a}}>`)
	f(refused, "<p title=`{{a}}`>")
	f(refused, `</p {{a}}>`)
	f(refused, `<p title="{{a}}`)
	f(refused, `<p title='{{a}}">`)
	f(refused, `<a href="https://acme.example/{{a}}`)
}

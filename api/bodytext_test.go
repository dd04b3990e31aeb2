package api_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"fingerpost/cmd/testrig"
)

// nastyTexts are template bodies that are hard to write into a file. All of them are legal.
func nastyTexts() map[string]string {
	lines := func(text, end string) string { return strings.ReplaceAll(text, "\n", end) }
	texts := map[string]string{
		"interpolation":          `"${a}"`,
		"directive":              "%{ if x }y%{ endif }",
		"escaped":                "$${a} %%{b} $$${c} $$$${d} %%%{e}",
		"dollars":                "$ $$ $$$ % %% ${ %{ $",
		"many escapes":           strings.Repeat("$${", 20_000),
		"many escapes, lines":    strings.Repeat("$${\n", 20_000),
		"many directives":        strings.Repeat("%{a}\n", 20_000),
		"many interpolations":    strings.Repeat("${a} ", 100_000),
		"many lines":             strings.Repeat("x\n", 200_000),
		"only lines":             strings.Repeat("\n", 300_000),
		"many lines, CRLF":       strings.Repeat("x\r\n", 100_000),
		"many CR":                strings.Repeat("\r", 300_000),
		"many quotes":            strings.Repeat(`"`, 400_000),
		"many backslashes":       strings.Repeat(`\`, 400_000),
		"half a MiB":             strings.Repeat("a", 512<<10),
		"half a MiB of umlauts":  strings.Repeat("ü", 256<<10),
		"control pictures":       strings.Repeat("\u0085", 100_000),
		"brackets":               strings.Repeat("[{(", 50_000),
		"brackets, lines":        strings.Repeat("[{(\n", 50_000),
		"long numbers":           strings.Repeat("1", 400_000),
		"operators":              strings.Repeat("!-", 200_000),
		"CR":                     "a\rb\r\rc\r",
		"CRLF":                   "a\r\nb\r\n",
		"CRLF, no end":           "a\r\n\r\nb",
		"mixed":                  "a\nb\r\nc\rd\n\re\r\r\n",
		"CRLF only":              "\r\n",
		"LF only":                "\n",
		"two LF":                 "\n\n",
		"no end":                 "a\nb",
		"blank lines":            "\n\n  a\n\n",
		"trailing blanks":        "a  \n  b\t\n   \n\t\n",
		"indented":               "    a\n\tb\n  c\n",
		"blanks only":            "   \n   \n",
		"markers":                "EOT\nEOT2\n  EOT\nEOT \nEOT3 x\n",
		"marker alone":           "EOT",
		"marker at the end":      "a\nEOT",
		"heredoc":                "a = <<-EOT\n  x\nEOT\n",
		"comment":                "# a\n/* b\n// c\n",
		"quotes":                 "\"\"\" \\ \\n \\u0041 '",
		"conflict":               "<<<<<<< HEAD\na\n=======\nb\n>>>>>>> other\n",
		"a line separator":       "a\u2028b\u2029c\u0085d\n",
		"decomposed":             "e\u0301 \u212a {{a}} ${x}\n  A\u030a\n",
		"a mark alone":           "\u0301",
		"directions":             "\u202eabc\u202c\n\ufeffx\u200b\n",
		"BOM first":              "\ufeffa\nb\n",
		"emoji":                  "👩‍👩‍👧 🇩🇪\nx\n",
		"tabs":                   "\t\ta\n\t\tb\n",
		"C1":                     "\u0080\u009f\n",
		"private, noncharacters": "\ue000\ufffe\uffff\U0010ffff\n",
		"replacement":            "\ufffd\n",
		"ends in a dollar":       "a$",
		"ends in a dollar, LF":   "a$\n{b}\n",
		"percent, brace":         "%\n{",
	}
	for _, name := range []string{"markers", "indented", "trailing blanks", "heredoc", "escaped", "blank lines"} {
		texts[name+", CRLF"] = lines(texts[name], "\r\n")
		texts[name+", CR"] = lines(texts[name], "\r")
		texts[name+", no end"] = strings.TrimSuffix(texts[name], "\n")
	}
	return texts
}

// bodiesOf reads a template's bodies through the API.
func (d *desk) bodiesOf(t *testing.T, path string) (html, text string) {
	t.Helper()
	a := d.mail(t, http.MethodGet, path, "")
	a.check(t, 200, "")
	data, _ := a.json["data"].(map[string]any)
	html, _ = data["bodyHtml"].(string)
	text, _ = data["bodyText"].(string)
	return html, text
}

func (d *desk) mail(t *testing.T, method, path, body string) *answer {
	t.Helper()
	return d.in(t).askBody(method, "/api/mail"+path, "", body, "X-Internal-Service-Token: "+d.key, "X-Internal-Service-Name: t")
}

// TestBodiesByteForByte saves every text over bodies in quotes, in heredocs and in files of their own, in files with LF
// and with CRLF, and as those of new templates. The API returns the bytes that it was given, even after the store was
// deleted and the files are loaded again (mailer/README.md).
func TestBodiesByteForByte(t *testing.T) {
	const acme = `project "acme" {
  name = "Acme"
  template "QUOTED" {
    name             = "n"
    subject_template = "s"
    body_html        = "<p>old</p>" # a comment
    body_text        = "old"
  }
  template "HEREDOC" {
    name             = "n"
    subject_template = "s"
    body_html        = <<-EOT
      <p>old
      text</p>
    EOT
    body_text = trimsuffix(<<EOT
old
text
EOT
    , "\n")
  }
  template "FILE" {
    name             = "n"
    subject_template = "s"
    body_html        = file("mail/a.html")
    body_text        = file("mail/a.txt")
  }
}
`
	texts := nastyTexts()
	for _, eol := range []string{"\n", "\r\n"} {
		for i, name := range slices.Sorted(maps.Keys(texts)) {
			want := texts[name]
			large := len(want) > 100_000 || strings.HasPrefix(name, "many")
			every := testrig.Size(t, 1, 4)
			switch {
			case testing.Short():
				every = 16
			case large:
				every = testrig.Size(t, 1, 23)
			case eol == "\r\n":
				every = testrig.Size(t, 1, 11)
			}
			if i%every != 0 || large && testing.Short() {
				continue
			}
			if eol == "\r\n" && len(want) > 100_000 {
				continue // the line ends of the file make no difference
			}
			t.Run(fmt.Sprintf("%s in %q", name, eol), func(t *testing.T) {
				if testrig.Race && large {
					t.Skip("large texts are run without the race detector, in CI too")
				}
				t.Parallel()
				d := newDesk(t, map[string]string{"acme.hcl": strings.ReplaceAll(acme, "\n", eol),
					"mail/a.html": "old" + eol, "mail/a.txt": "old" + eol + "text" + eol})
				p, err := d.resolver.ProjectBySlug("acme")
				if err != nil {
					t.Fatal(err)
				}
				path := fmt.Sprintf("/projects/%d/templates", p.ID)
				codes := []string{"NEW", "QUOTED", "HEREDOC", "FILE"}
				if large { // of several there is no room in one file
					codes = []string{codes[len(name)%4]}
				}
				at := map[string]string{}
				for _, code := range codes {
					html, text := want, want
					if len(want) > 200_000 {
						text = "small"
					}
					body, err := json.Marshal(map[string]string{"code": code, "name": "n", "subjectTemplate": "s",
						"bodyHtml": html, "bodyText": text})
					if err != nil {
						t.Fatal(err)
					}
					a := d.mail(t, http.MethodPut, path, string(body))
					// A slow machine still looks at the last write.
					for tries := 0; a.StatusCode == http.StatusServiceUnavailable && tries < 10; tries++ {
						a = d.mail(t, http.MethodPut, path, string(body))
					}
					if a.StatusCode/100 != 2 {
						t.Fatalf("%s: %d %.300s", code, a.StatusCode, a.body)
					}
					data, _ := a.json["data"].(map[string]any)
					at[code] = fmt.Sprintf("%s/%.0f", path, data["id"])
					if gotHTML, gotText := d.bodiesOf(t, at[code]); gotHTML != html || gotText != text {
						t.Errorf("%s: it answers %.200q and %.200q, want %.200q", code, gotHTML, gotText, html)
					}
				}
				fresh, err := d.load(t, false)
				if err != nil {
					t.Fatal(err)
				}
				for _, code := range codes {
					tmpl, err := fresh.resolver.OwnTemplate(p.ID, code)
					if err != nil {
						t.Fatal(err)
					}
					if tmpl.BodyHTML != want || len(want) <= 200_000 && tmpl.BodyText != want {
						t.Errorf("%s, loaded anew: %.200q and %.200q, want %.200q", code, tmpl.BodyHTML, tmpl.BodyText, want)
					}
				}
			})
		}
	}
}

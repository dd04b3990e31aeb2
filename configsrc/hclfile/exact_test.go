package hclfile_test

import (
	"testing"

	"fingerpost/configsrc/hclfile"
)

// TestExactText asserts that a text has the code points that the file has, not those of Unicode's normal form C. The
// parser's own values are in that form.
func TestExactText(t *testing.T) {
	f := func(expression, want string) {
		t.Helper()
		src := "template \"A\" {\n  name = \"A\"\n  subject_template = \"s\"\n  body_text = " + expression + "\n}\n"
		for _, bom := range []string{"", "\ufeff"} {
			r, ds := hclfile.Decode("a.hcl", []byte(bom+src), hclfile.Options{})
			if ds.HasErrors() || len(r.Declared.Templates) != 1 {
				t.Fatalf("%s: %s", expression, text(ds))
			}
			if got := r.Declared.Templates[0].BodyText; got != want {
				t.Errorf("%s:\n got %q\nwant %q", expression, got, want)
			}
		}
	}
	const e = "e\u0301" // é in two code points
	f(`"`+e+`"`, e)
	f(`"é"`, "é")
	f(`"\u0065\u0301 \U0000212a"`, e+" \u212a")
	f(`"a\tb\n\"\\ $${x} %%{y} $5 `+e+`"`, "a\tb\n\"\\ ${x} %{y} $5 "+e)
	f(`"\\u0065\u0301"`, "\\u0065\u0301")
	f("<<EOT\n  "+e+"\n\n x\nEOT", "  "+e+"\n\n x\n")
	f("<<-EOT\n    "+e+"\n\n      x $${"+e+"}\n    \u212a\\n\n  EOT", e+"\n\n  x ${"+e+"}\n\u212a\\n\n")
	f("<<-EOT\n    x\n      "+e+"\n  EOT", "x\n  "+e+"\n")
	f("trimsuffix(<<-EOT\n    "+e+"\n  EOT\n  , \"\\n\")", e)
	f("<<EOT\r\n"+e+"\r\nEOT\r", e+"\n")
	f(`"\u0301"`, "\u0301")
	f(`"Ko\u212a `+"\uac00\u11a8"+`"`, "Ko\u212a \uac00\u11a8")
}

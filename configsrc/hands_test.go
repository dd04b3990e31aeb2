package configsrc_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
)

// hands write config files as many people would: comments in every place, tabs, one-line blocks, parentheses, heredocs,
// CRLF, byte order marks. Each comment has a number of its own, and nothing else looks like one.
type hands struct {
	*rand.Rand
	b        strings.Builder
	comments int
	slugs    int
	domains  int
	bodies   map[string]string // files that file() names, by path, still to be saved
}

func (h *hands) pick(options ...string) string { return options[h.IntN(len(options))] }

func (h *hands) sometimes(n int) bool { return h.IntN(n) == 0 }

func (h *hands) number() string {
	h.comments++
	return fmt.Sprintf("~%d~", h.comments)
}

// behind returns what follows something on its line.
func (h *hands) behind() string {
	switch h.IntN(8) {
	case 0:
		return "  # " + h.number() + " why"
	case 1:
		return " // " + h.number() + " {"
	case 2:
		return " /* " + h.number() + " } */"
	}
	return h.pick("", "", "", "  ", "\t")
}

// between returns what is between two lines.
func (h *hands) between(indent string) string {
	switch h.IntN(12) {
	case 0:
		return indent + "# " + h.number() + " a = \"\n"
	case 1:
		return indent + "/* " + h.number() + " two\n lines = 2 */\n"
	case 2:
		return "\n" + indent + "// " + h.number() + " section\n\n"
	}
	return h.pick("", "", "", "", "", "\n", "  \n")
}

func (h *hands) line(indent, text string) {
	h.b.WriteString(indent + text + h.behind() + "\n" + h.between(indent))
}

// nasty returns difficult text that a client may send.
func (h *hands) nasty(lines bool) string {
	parts := []string{"a", "name = 1", " ", "  ", "\"", "\\", "$", "$$", "${", "$${", "${x}", "%{", "%%{if}", "{{x}}", "{", "}", "#", "//", "/*", "*/",
		"ü", "e\u0301", "日本", "🦊", "\u200d", "\u202e", "\ufeff", "'", "<<EOT", "EOT", "=", "\u00a0", "\U0001f468\u200d\U0001f469", "(", ")", "\\n", "\ufffd"}
	if lines {
		parts = append(parts, "\n", "\n", "\n\n", "\t", "\nEOT\n", "\n EOT2 \n", "\r\n", "\r", "\n}\n", "\n  x\n", "\x00", "<<-EOT\n", "\u2028")
	}
	var b strings.Builder
	for range 1 + h.IntN(8) {
		b.WriteString(parts[h.IntN(len(parts))])
	}
	return b.String()
}

func (h *hands) slug() string {
	h.slugs++
	return fmt.Sprintf("p%d", h.slugs)
}

func (h *hands) domain() string {
	h.domains++
	return fmt.Sprintf(h.pick("d%d.example", "d%d.example", "*.d%d.example", "xn--bcher-kva.d%d.example"), h.domains)
}

// written returns a domain in a spelling that a person may use.
func (h *hands) written(domain string) string {
	if h.sometimes(4) {
		return strings.ToUpper(domain[:len(domain)-7]) + "Example."
	}
	return strings.Replace(domain, "xn--bcher-kva.", "bücher.", 1)
}

func (h *hands) text() string {
	return h.pick(`"x"`, `"a \" b"`, `( "x" )`, `"$${x} {{y}}"`, `"# no comment"`, `("/* no */")`)
}

func (h *hands) long(indent string) string {
	return h.pick(`"plain"`, "<<-EOT\n"+indent+"  one # 1\n\n"+indent+"    two }\n"+indent+"EOT", "<<E_1\nkey \"x\" {\n  # no\nE_1",
		"trimsuffix(<<-EOT\n"+indent+"\tq = \"\n"+indent+"EOT\n"+indent+", \"\\n\")")
}

// body returns text in a file of its own.
func (h *hands) body() string {
	h.comments++
	path := fmt.Sprintf("bodies/%d.txt", h.comments)
	if h.bodies == nil {
		h.bodies = map[string]string{}
	}
	h.bodies[path] = h.pick("one\ntwo\n", "one\r\ntwo\r\n", "\xef\xbb\xbfone", "<p>\n", "e\u0301\n# no comment\n")
	return "file(\"" + path + "\")"
}

// file returns a valid file of one to three projects.
func (h *hands) file() string {
	h.b.Reset()
	h.b.WriteString(h.pick("", "", "# "+h.number()+" head\n", "# "+h.number()+" head\n\n", "\n\n", "/* "+h.number()+" head\n*/\n\n"))
	for range 1 + h.IntN(3) {
		if h.sometimes(6) {
			h.b.WriteString("project \"" + h.slug() + "\" { name = " + h.text() + h.pick("", "", " /* "+h.number()+" */") + " }" + h.behind() + "\n" + h.between(""))
			continue
		}
		h.project()
	}
	src := h.b.String()
	if h.sometimes(4) {
		src = strings.TrimRight(src, " \t\n")
	}
	if h.sometimes(3) {
		src = strings.ReplaceAll(src, "\n", "\r\n")
	}
	if h.sometimes(6) {
		src = "\xef\xbb\xbf" + src
	}
	return src
}

// labels writes a map of labels. No comment is on the line of an entry: it would go with the entry.
func (h *hands) labels(in, eq string) {
	var items []string
	for _, name := range []string{"lab_a", `"lab_b"`, "lab_c"}[:1+h.IntN(3)] {
		items = append(items, name+h.pick(eq, ": ")+h.text())
	}
	if h.sometimes(2) {
		h.line(in, "labels"+eq+"{"+strings.Join(items, ", ")+h.pick("", " ", ",")+"}")
		return
	}
	h.line(in, "labels"+eq+"{")
	separator := h.pick("", ",", " ,")
	for _, item := range items {
		h.b.WriteString(in + in + item + separator + "\n" + h.between(in+in))
	}
	h.line(in, "}")
}

func (h *hands) project() {
	h.line("", "project "+h.pick("", "/* "+h.number()+" */ ")+"\""+h.slug()+"\" {")
	in := h.pick("  ", "  ", "\t", "    ")
	eq := h.pick(" = ", " = ", "=", "   = ")
	h.line(in, "name"+eq+h.text())
	if h.sometimes(2) {
		h.b.WriteString(in + "description = " + h.long(in) + "\n" + h.between(in))
	}
	if h.sometimes(2) {
		h.line(in, "status"+eq+`"ACTIVE"`)
	}
	if h.sometimes(2) {
		h.labels(in, eq)
	}
	for range h.IntN(4) {
		h.line(in, fmt.Sprintf("domain %q %s", h.written(h.domain()), h.pick("{}", "{}", "{ active = false }", "{ certificates = true }", "{ /* "+h.number()+" */ }",
			"{\n"+in+"}", "{"+h.behind()+"\n"+in+in+"active = true"+h.behind()+"\n"+in+"}")))
	}
	if h.sometimes(2) {
		h.line(in, "service_settings {"+h.pick("}", " mail_enabled = true }", "\n"+in+in+"sms_enabled = (true)"+h.behind()+"\n"+in+in+"audit_retention_days = 30\n"+in+"}"))
	}
	if h.sometimes(3) {
		h.line(in, "auth_settings {"+h.pick("}", ` registration_mode = "INVITE_ONLY" }`, "\n"+in+in+"jwt_secret = env(\"X\")"+h.behind()+"\n"+in+in+"invite_only = true\n"+in+"}"))
	}
	if h.sometimes(3) {
		h.line(in, "smtp_config {\n"+in+in+"host"+eq+`"smtp.acme.example"`+h.behind()+"\n"+h.between(in+in)+in+in+"from_email"+eq+`"a@acme.example"`+
			h.behind()+"\n"+h.pick("", in+in+"port = 25\n", in+in+"username = \"u\""+h.behind()+"\n"+in+in+"password = env(\"X\")\n")+in+"}")
	} else if h.sometimes(4) { // through the relay
		h.line(in, "smtp_config {"+h.pick(" active = false }", " from_email"+eq+`"a@acme.example" }`,
			h.behind()+"\n"+h.between(in+in)+in+in+"from_email"+eq+`"a@acme.example"`+h.behind()+"\n"+in+in+"from_name = \"A\"\n"+in+"}"))
	}
	for _, code := range []string{"T", "WELCOME"}[:h.IntN(3)] {
		h.line(in, "template "+h.pick(code, `"`+code+`"`, `/* `+h.number()+` */ "`+code+`"`)+" {\n"+in+in+"name = \"T\""+h.behind()+"\n"+h.between(in+in)+
			in+in+"subject_template = \"s\"\n"+h.pick("", in+in+"body_html"+eq+h.body()+"\n")+in+in+"body_text = "+h.pick(h.long(in+in), h.body())+"\n"+
			h.between(in+in)+h.pick("", in+in+"active = false\n", in+in+"max_age = \"2h\"\n")+in+"}")
	}
	h.line("", "}")
}

// comment matches the comments of hands.
var comment = regexp.MustCompile(`(#|//) ~\d+~[^\r\n]*|/\* ~\d+~[^*]*\*/`)

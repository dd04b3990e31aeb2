package configsrc_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"fingerpost/configsrc/hclfile"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
	"fingerpost/resolver/rowjson"
)

// label matches a domain's label in any spelling.
func label(domain string) string {
	return `"(?i:` + strings.Replace(regexp.QuoteMeta(domain), `xn--bcher-kva\.`, `(xn--bcher-kva|bücher)\.`, 1) + `)\.?"`
}

// check compares the folder before and after a write.
func (w *world) check(u *deed, before, after map[string]string) {
	var changed []string
	for name := range before {
		if before[name] != after[name] {
			changed = append(changed, name)
		}
	}
	changed = slices.DeleteFunc(changed, func(name string) bool { // says tells whether their text is right
		return strings.HasPrefix(u.what, "put template") && filepath.Base(filepath.Dir(name)) == "bodies" && after[name] != ""
	})
	if len(changed) > 1 {
		w.fail(u.what, "changes %v", changed)
	}
	if len(changed) == 0 {
		return
	}
	if strings.HasPrefix(u.what, "create") {
		w.fail(u.what, "changes %v", changed)
	}
	old, now := before[changed[0]], after[changed[0]]
	bad := ""
	switch _, there := after[changed[0]]; {
	case !there && !strings.HasPrefix(u.what, "delete project"):
		bad = "the file is gone"
	case !there:
	case u.removed != "":
		bad = badRemoval(noBlanks(old), noBlanks(now), strings.ReplaceAll(u.removed, `\s+`, `\s*`))
	default:
		var kept string
		if kept, bad = lostComments(old, now); bad == "" {
			bad = strangeLines(kept, now, u.words)
		}
	}
	// A mail body has its own line ends.
	if bad == "" && strings.HasSuffix(changed[0], ".hcl") && there(after, changed[0]) && strings.Contains(old, "\r\n") && strings.Count(now, "\n") != strings.Count(now, "\r\n") {
		bad = "the line endings are mixed"
	}
	if bad == "" && there(after, changed[0]) && formatted(old) && !formatted(now) {
		bad = "fmt --check refuses it, and did not before"
	}
	if bad == "" && strings.HasPrefix(old, "\xef\xbb\xbf") && there(after, changed[0]) && !strings.HasPrefix(now, "\xef\xbb\xbf") {
		bad = "the byte order mark is gone"
	}
	if bad != "" {
		w.fail(u.what, "%s\n--- before\n%s\n%q\n--- after\n%s\n%q", bad, old, old, now, now)
	}
}

// noBlanks removes what the formatter changes from a text.
func noBlanks(text string) string { return strings.NewReplacer(" ", "", "\t", "").Replace(text) }

func formatted(text string) bool {
	out, ds := hclfile.Format([]byte(text))
	return !ds.HasErrors() && string(out) == text
}

func there(files map[string]string, name string) bool {
	_, ok := files[name]
	return ok
}

// belowComment matches what follows a comment that stands alone: other comments, and a line of code.
var belowComment = regexp.MustCompile(`^[ \t]*\r?\n(?:[ \t]*(?:` + comment.String() + `)[ \t]*\r?\n)*([ \t]*[^\s#/][^\n]*\n)`)

// lostComments compares the comments. An update keeps all but those directly above a line that it removed; kept is old
// without these.
func lostComments(old, now string) (kept, bad string) {
	kept = old
	at := comment.FindAllStringIndex(old, -1)
	slices.Reverse(at)
	for _, at := range at {
		if text := old[at[0]:at[1]]; strings.Count(now, text) >= strings.Count(kept, text) {
			continue
		}
		start := strings.LastIndexByte(old[:at[0]], '\n') + 1
		below := belowComment.FindStringSubmatch(old[at[1]:])
		if below == nil || strings.TrimSpace(old[start:at[0]]) != "" ||
			strings.Count(now, below[len(below)-1]) >= strings.Count(old, below[len(below)-1]) {
			continue
		}
		kept = kept[:start] + kept[at[1]+strings.IndexByte(old[at[1]:], '\n')+1:]
	}
	a, b := comment.FindAllString(kept, -1), comment.FindAllString(now, -1)
	slices.Sort(a)
	slices.Sort(b)
	if !slices.Equal(a, b) {
		return kept, fmt.Sprintf("the comments were %q, are %q", a, b)
	}
	return kept, ""
}

// badRemoval returns what is wrong with a removal: it may remove the block, the comments directly above it and behind
// it, and blank lines, in one piece from the beginning of a line.
func badRemoval(old, now, block string) string {
	size := len(old) - len(now)
	most := 0
	for most < len(now) && old[most] == now[most] {
		most++
	}
	whole := regexp.MustCompile(`^(?s)([ \t]*((#|//)[^\n]*|/\*[^*]*\*/[ \t\r]*)\n)*[ \t]*` + block + `[ \t]*\{.*\}[ \t]*((#|//)[^\n]*|/\*[^*]*\*/[ \t]*)?$`)
	gone := ""
	for at := most; at >= 0; at-- {
		lineStart := at == 0 || old[at-1] == '\n' || at == 3 && strings.HasPrefix(old, "\xef\xbb\xbf")
		if !lineStart || size < 0 || at+size > len(old) || old[:at]+old[at+size:] != now {
			continue
		}
		gone = strings.TrimRight(strings.TrimLeft(old[at:at+size], "\r\n"), "\r\n \t")
		for first, rest, ok := strings.Cut(gone, "\n"); ok && strings.TrimSpace(first) == ""; first, rest, ok = strings.Cut(gone, "\n") {
			gone = rest
		}
		if head := strings.TrimLeft(gone, " \t"); strings.TrimSpace(strings.TrimPrefix(old[:at], "\xef\xbb\xbf")) == "" && head[0] != block[0] && head[:2] != "/*" {
			return "the file's header went"
		}
		if whole.MatchString(gone) && strings.Count(gone, "project ") <= 1 {
			return ""
		}
	}
	return fmt.Sprintf("what went is not the block and its comments: %q", gone)
}

// strangeLines finds a line that changed or was removed without reason: all lines except those that contain one of the
// words, or belong to the heredoc of one, must be there in order. No blank lines are added except one before a new
// block, and none removed except one with an attribute.
func strangeLines(old, now string, words []string) string {
	reason := regexp.MustCompile(strings.Join(words, "|"))
	text := slices.ContainsFunc(words, func(word string) bool { // or an attribute that may go
		return word == "description" || word == "labels" || word == "certificates" || word == "verified" || word == "smtp_config" || strings.HasPrefix(word, "template")
	})
	lines, left := strings.SplitAfter(old, "\n"), strings.SplitAfter(now, "\n")
	blanks := 0
	for _, line := range left {
		if strings.TrimSpace(line) == "" {
			blanks++
		}
	}
	for i, line := range lines {
		blank := strings.TrimSpace(line) == ""
		if blank {
			blanks--
		}
		if blank && text || reason.MatchString(lines[heredocHead(lines, i)]) {
			continue
		}
		at := slices.IndexFunc(left, func(l string) bool { return noBlanks(l) == noBlanks(line) })
		if at < 0 {
			return fmt.Sprintf("%q is gone, which has nothing to do with %v", line, words)
		}
		left = left[at+1:]
	}
	if !text && (blanks < 0 || blanks > 1) {
		return fmt.Sprintf("%d more blank lines", blanks)
	}
	return ""
}

var heredoc = regexp.MustCompile(`= *\(?(trimsuffix\()?<<-?(\w+)\r?\n$`)

// heredocHead returns the line on which the heredoc of line i begins, or i.
func heredocHead(lines []string, i int) int {
	for head := 0; head < len(lines); head++ {
		m := heredoc.FindStringSubmatch(lines[head])
		if m == nil {
			continue
		}
		end := head + 1
		for end < len(lines) && strings.TrimSpace(lines[end]) != m[2] {
			end++
		}
		if end+1 < len(lines) && regexp.MustCompile(`^\s*(, "\\n")?\)`).MatchString(lines[end+1]) {
			end++
		}
		if head <= i && i <= end {
			return head
		}
		head = end
	}
	return i
}

// says compares the store's content with the request of the write.
func (w *world) says(u *deed, want *catalog.ProjectConfig) {
	id := want.Project.ID
	p, err := w.resolver.ProjectByID(id)
	if err != nil {
		w.fail(u.what, "%v", err)
	}
	asked := want.Project
	asked.CreatedAt, asked.UpdatedAt = p.CreatedAt, p.UpdatedAt
	var a, b []byte
	a, b = rowjson.AppendProject(a, &asked), rowjson.AppendProject(b, p)
	a, b = rowjson.AppendLabels(a, asked.Labels), rowjson.AppendLabels(b, p.Labels)
	service, err1 := w.resolver.ServiceSettings(id)
	auth, err2 := w.resolver.AuthSettings(id)
	domains, _, err3 := w.resolver.Domains(id, resolver.Query{})
	if err := errors.Join(err1, err2, err3); err != nil {
		w.fail(u.what, "%v", err)
	}
	a, b = rowjson.AppendServiceSettings(a, id, &want.Service), rowjson.AppendServiceSettings(b, id, service)
	a, b = rowjson.AppendAuthSettings(a, id, &want.Auth), rowjson.AppendAuthSettings(b, id, auth)
	var names, served []string
	for _, d := range want.Domains {
		names = append(names, fmt.Sprint(d.Name, d.Primary, d.Active, d.UUID, nullables(&d)))
	}
	for _, d := range domains {
		served = append(served, fmt.Sprint(d.Name, d.Primary, d.Active, d.UUID, nullables(d)))
	}
	slices.Sort(names)
	slices.Sort(served)
	a, b = w.appendMail(a, id, want.SMTP, want.Templates), w.appendServedMail(b, w.resolver, id)
	a, b = times.ReplaceAll(a, nil), times.ReplaceAll(b, nil)
	if string(a) != string(b) || !slices.Equal(names, served) {
		w.fail(u.what, "asked for\n%s %v\nserved\n%s %v", a, names, b, served)
	}
}

// nullables are the fields of a domain that the file may leave out.
func nullables(d *catalog.Domain) (text string) {
	if d.Certificates != nil {
		text = fmt.Sprint(*d.Certificates)
	}
	if d.Verified != nil {
		text += " " + *d.Verified
	}
	return text
}

var times = regexp.MustCompile(`"(created|updated)At":"[^"]*"`)

// compareFresh compares the store with what a fresh node reads from the files.
func (w *world) compareFresh() {
	fresh, _, end := w.load(false)
	defer end()
	if here, there := w.all(w.resolver), w.all(fresh); here != there {
		w.fail("a fresh load", "the store says\n%s\na fresh one\n%s\n%s", here, there, show(w.tree()))
	}
}

func (w *world) all(r *resolver.Resolver) string {
	var b []byte
	err := r.EachProject(func(p *catalog.Project) bool {
		b = append(rowjson.AppendLabels(rowjson.AppendProject(b, p), p.Labels), '\n')
		service, err1 := r.ServiceSettings(p.ID)
		auth, err2 := r.AuthSettings(p.ID)
		domains, _, err3 := r.Domains(p.ID, resolver.Query{})
		if err := errors.Join(err1, err2, err3); err != nil {
			w.fail("read", "%v", err)
		}
		b = append(rowjson.AppendServiceSettings(b, p.ID, service), '\n')
		b = append(rowjson.AppendAuthSettings(b, p.ID, auth), '\n')
		for _, d := range domains {
			b = append(rowjson.AppendDomainRecord(b, d), '\n')
		}
		b = w.appendServedMail(b, r, p.ID)
		return true
	})
	if err != nil {
		w.fail("read", "%v", err)
	}
	return times.ReplaceAllString(string(b), "")
}

// appendMail appends a project's SMTP config and templates.
func (w *world) appendMail(b []byte, id int64, smtp *catalog.SMTPConfig, templates []catalog.Template) []byte {
	if smtp != nil {
		b = rowjson.AppendSMTPConfig(b, id, smtp)
		b = fmt.Appendln(b, smtp.Password.Source, smtp.Password.Ref)
	}
	slices.SortFunc(templates, func(a, b catalog.Template) int { return strings.Compare(a.Code, b.Code) })
	for i := range templates {
		b = append(rowjson.AppendTemplate(b, &templates[i]), '\n')
	}
	return b
}

func (w *world) appendServedMail(b []byte, r *resolver.Resolver, id int64) []byte {
	smtp, err := r.SMTPConfig(id)
	if err != nil {
		smtp = nil
	}
	rows, _, err := r.Templates(id, resolver.Query{})
	if err != nil {
		w.fail("read", "%v", err)
	}
	var templates []catalog.Template
	for _, t := range rows {
		templates = append(templates, *t)
	}
	return w.appendMail(b, id, smtp, templates)
}

func show(files map[string]string) string {
	var b strings.Builder
	for name, content := range files {
		fmt.Fprintf(&b, "-- %s --\n%s\n%q\n", filepath.Base(name), content, content)
	}
	return b.String()
}

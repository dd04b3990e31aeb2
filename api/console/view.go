package console

import (
	"bytes"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"path"
	"regexp"
	"strconv"
	"strings"
	"time"

	"fingerpost/api/console/form"
	"fingerpost/api/console/say"
	"fingerpost/resolver/catalog"
)

// A view is what every page gets.
type view struct {
	Title     string
	Nav       string // the entry of the menu that is the present one
	Git, Edge bool
	Problems  int // that the menu tells
	Version   string
	Bare      bool // for somebody without a session: nothing leads to another page
	Error     *failure
	Data      any
	visitor
}

// A visitor is the person who gets a page. Without a session everything is empty.
type visitor struct {
	Token    string // of the session's forms
	Key      Key
	Actor    string
	Login    string // at which the person has signed in; "": with a key
	May      rights
	Proposal string // that the person works in, or ""
	Notice   string
	Once     onceShown // a new key or secret, shown this once
	on       func(project int64) rights
}

// On returns what the person may do on a project.
func (v visitor) On(project int64) rights { return v.on(project) }

// rightsOn returns what a key may do on what a page is about: one project, several, or none.
func (c *Console) rightsOn(k Key, data any) rights {
	switch d := data.(type) {
	case *draft:
		if k.Reach != nil && d.projects != nil {
			return c.rightsWith(k, k.Reach.AllOf(d.projects))
		}
		return c.rightsOf(k, d.edit.Project)
	case *form.Form:
		return c.rightsOf(k, d.Project)
	case projectView:
		return c.rightsOf(k, d.Project.ID)
	case domainView:
		return c.rightsOf(k, d.Project.ID)
	case *templateView:
		return c.rightsOf(k, d.Project.ID)
	case *entryView:
		return c.rightsOf(k, d.Mail.ProjectID)
	case mailView:
		if d.Project != nil {
			return c.rightsOf(k, d.Project.ID)
		}
	}
	return c.rightsOf(k, 0)
}

// Name returns the person's name without the address.
func (v visitor) Name() string {
	name, _, _ := strings.Cut(v.Actor, " <")
	return name
}

// navOf is the menu's entry of pages that have another name.
var navOf = map[string]string{"project": "projects", "domain": "projects", "edit": "projects", "draft": "projects", "conflict": "projects",
	"webhook": "webhooks", "delivery": "webhooks",
	"template": "mail", "entry": "mail", "kept": "mail", "smtptest": "mail", "proposals": "changes", "proposal": "changes"}

// kindOf returns the kind of what a page edits.
func kindOf(data any) (kind string, edits bool) {
	switch d := data.(type) {
	case *form.Form:
		return d.Kind, true
	case *draft:
		return d.kind, true
	}
	return "", false
}

// parsePages parses each page together with the layout and the parts that several pages share.
func (c *Console) parsePages() map[string]*template.Template {
	base, err := template.New("layout").Funcs(c.functions()).ParseFS(content, "pages/layout.html", "pages/parts.html",
		"pages/charts.html")
	mustRead(err)
	names, err := fs.Glob(content, "pages/*.html")
	mustRead(err)
	all := map[string]*template.Template{}
	for _, name := range names {
		page := strings.TrimSuffix(path.Base(name), ".html")
		if page == "layout" || page == "parts" || page == "charts" {
			continue
		}
		t, err := base.Clone()
		mustRead(err)
		all[page], err = t.ParseFS(content, name)
		mustRead(err)
	}
	return all
}

var defect = &failure{Status: http.StatusInternalServerError, Message: "This page has a defect; the log says more."}

// seeOther leads to another page of the console.
func seeOther(w http.ResponseWriter, r *http.Request, to string) error {
	http.Redirect(w, r, to, http.StatusSeeOther)
	return nil
}

// render answers with a page, or for htmx with its part "main". An error means that nothing is written.
func (c *Console) render(w http.ResponseWriter, r *http.Request, s *session, status int, page, title string,
	data any) error {
	v := view{Title: title, Nav: page, Bare: page == "shared", Version: c.o.Version, Git: c.o.Git, Edge: c.o.Edge,
		Data: data}
	if f, is := data.(*failure); is {
		v.Error = f
	}
	if nav := navOf[page]; nav != "" {
		v.Nav = nav
	}
	if kind, _ := kindOf(data); kind == "key" || kind == "webhook" {
		v.Nav = kind + "s"
	}
	if s != nil {
		s.mu.Lock()
		v.Key, v.Token, v.Actor, v.Login, v.Proposal = s.key, s.token, s.actor, s.login(), s.proposal
		if !isFragment(r) {
			v.Notice, v.Once, s.notice, s.once = s.notice, s.once, "", onceShown{}
		}
		s.mu.Unlock()
		v.May, v.on = c.rightsOn(v.Key, data), func(project int64) rights { return c.rightsOf(v.Key, project) }
		if c.o.Config != nil && v.Key.Everything {
			st := c.o.Config.Status()
			if v.Problems = st.Errors; st.Held != nil {
				v.Problems++
			}
			if c.o.GitState != nil {
				if git := c.o.GitState(); git.Conflict != "" {
					v.Problems++
				}
			}
		}
	}
	name := "layout.html"
	if isFragment(r) {
		name = "main"
	}
	var out bytes.Buffer
	if err := c.pages()[page].ExecuteTemplate(&out, name, v); err != nil {
		c.o.Logger.Error("console page", "page", page, "error", err)
		return defect
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(out.Bytes())
	return nil
}

// failed answers with an error.
func (c *Console) failed(w http.ResponseWriter, r *http.Request, err error) {
	f, is := errors.AsType[*failure](err)
	if !is {
		c.o.Logger.Warn("console", "path", r.URL.Path, "error", err)
		f = failureOf(err)
	}
	if f.Status < 400 {
		f.Status = http.StatusInternalServerError
	}
	s, _ := c.session(r)
	if c.render(w, r, s, f.Status, "error", "Error", f) != nil {
		http.Error(w, defect.Message, http.StatusInternalServerError)
	}
}

func (c *Console) functions() template.FuncMap {
	return template.FuncMap{
		"asset": c.assetPath,
		"text":  say.Text,
		"time":  timeTag,
		"iso":   func(v any) string { return moment(v).Format(time.RFC3339) },
		"diff":  diffOf,
		"hcl":   highlight,
		"bytes": sizeText,
		"group": group,
		"link":  link,
		"query": func(pairs ...any) template.URL { return template.URL(query(pairs...).Encode()) },
		"lower": strings.ToLower,
		"add":   func(a, b int) int { return a + b },
		"dict": func(pairs ...any) (map[string]any, error) {
			m := map[string]any{}
			for i := 0; i+1 < len(pairs); i += 2 {
				name, ok := pairs[i].(string)
				if !ok {
					return nil, fmt.Errorf("dict: %v is no name", pairs[i])
				}
				m[name] = pairs[i+1]
			}
			return m, nil
		},
		"plural": func(n int, word string) string {
			if n == 1 {
				return "1 " + word
			}
			return group(n) + " " + word + "s"
		},
		"visible":     visible,
		"keyword":     func(name any) string { return visible(say.KeyWord(say.Text(name))) },
		"kindOfLevel": kindOfLevel,
		"said":        func(message string) string { return say.AsSentence(visible(message)) },
		"ago":         agoTag,
		"commit":      c.commit,
		"person":      func(author string) string { return visible(say.Person(author)) },
	}
}

// commit shows a commit, with a link where there is a place to see it. The path is that of GitHub, GitLab and Gitea.
func (c *Console) commit(v any) template.HTML {
	hash := say.Text(v)
	short := template.HTMLEscapeString(hash[:min(len(hash), 10)])
	if strings.Trim(hash, "0123456789abcdef") != "" || hash == "" {
		return template.HTML(template.HTMLEscapeString(hash))
	}
	if c.o.GitWeb == "" {
		return template.HTML(`<span class="mono">` + short + `</span>`)
	}
	to := template.HTMLEscapeString(strings.TrimSuffix(c.o.GitWeb, "/") + "/commit/" + hash)
	return template.HTML(`<a class="mono" rel="noreferrer" href="` + to + `">` + short + `</a>`)
}

// group writes a number with a thin gap every three digits.
func group(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "\u202f" + text[i:]
	}
	return text
}

// moment reads a time of the API, which is UTC without a zone, or a time.
func moment(v any) (t time.Time) {
	switch v := v.(type) {
	case time.Time:
		return v.UTC()
	case *time.Time:
		if v != nil {
			return v.UTC()
		}
	case *catalog.JSONMoment:
		if v != nil {
			return v.UTC()
		}
	case string, *string:
		t, _ = catalog.ParseMoment(say.Text(v))
	}
	return t
}

// timeTag shows a time; a script turns it into the browser's zone.
func timeTag(v any) template.HTML {
	t := moment(v)
	if t.IsZero() {
		return "–"
	}
	return template.HTML(`<time datetime="` + t.Format(time.RFC3339) + `" title="` + catalog.SayMoment(t) + `">` + catalog.SayMoment(t) +
		`</time>`)
}

// agoTag says how long ago a time was, with the time itself in the title.
func agoTag(v any) template.HTML {
	t := moment(v)
	if t.IsZero() {
		return "–"
	}
	return template.HTML(`<span title="` + catalog.SayMoment(t) + `">` + say.Ago(t, time.Now()) + `</span>`)
}

func sizeText(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.0f KiB", float64(n)/(1<<10))
}

// visible shows the characters of a text that a browser hides, or that turn its direction around: a name must not look
// like another one.
func visible(v any) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r < 0x20 || r == 0x7f, r >= 0x80 && r < 0xa0, r == 0xad, r >= 0x200b && r <= 0x200f, r >= 0x202a && r <= 0x202e,
			r >= 0x2060 && r <= 0x206f, r == 0xfeff, r == 0x61c, r == 0x180e:
			return '\ufffd'
		}
		return r
	}, say.Text(v))
}

// A diffView is the beginning of a unified diff.
type diffView struct {
	Lines []say.DiffLine
	All   int // lines of the whole diff
}

// maxDiff is how many lines of a diff a page shows before a change is saved.
const maxDiff = 4000

func diffOf(diff string) (v diffView) {
	v.Lines, v.All = say.DiffLines(diff, maxDiff)
	return v
}

// A hclLine is a numbered line of a file in coloured parts.
type hclLine struct {
	Number int
	Parts  []hclPart
}

type hclPart struct{ Kind, Text string }

// tokens finds comments, strings, words of the language and names of attributes and blocks. Colours are for the eye:
// a heredoc's text, which it does not know, is shown as it is.
var tokens = regexp.MustCompile(`(#.*|//.*)|("(?:[^"\\]|\\.)*")|\b(true|false|null|env|file|sealed)\b|^(\s*[a-z_]+)(?:\s|$)|\b(\d+)\b`)

// highlight colours a block that begins at line number of its file.
func highlight(block string, number int) (lines []hclLine) {
	for l := range strings.Lines(block) {
		l = strings.TrimSuffix(l, "\n")
		line := hclLine{Number: number}
		number++
		at := 0
		for _, m := range tokens.FindAllStringSubmatchIndex(l, -1) {
			for i, kind := range []string{"comment", "string", "word", "name", "number"} {
				from, to := m[2+2*i], m[3+2*i]
				if from < 0 {
					continue
				}
				line.Parts = append(line.Parts, hclPart{"", l[at:from]}, hclPart{kind, l[from:to]})
				at = to
			}
		}
		line.Parts = append(line.Parts, hclPart{"", l[at:]})
		lines = append(lines, line)
	}
	return lines
}

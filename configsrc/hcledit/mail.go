package hcledit

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"fingerpost/configsrc/hclfile"
	"fingerpost/resolver/catalog"
)

// A BodyEdit is new text for a file that a template uses as body_html or body_text by file().
type BodyEdit struct {
	Creates bool // the Draft's BodyFile has named the file; Where, Pos and Shared are not set then

	Path string // slash-separated, below the config folder
	Text string

	// Where names the attribute, as in `body_html of template "WELCOME"`, and Pos is its position.
	Where string
	Pos   hclfile.Pos
	// Shared says that another attribute of the same config file uses this file and would change with it.
	Shared bool
}

// Bodies returns the files that have to change together with the config file, in the order in which the edits were
// noted. The caller writes them.
func (d *Draft) Bodies() []BodyEdit { return d.bodies }

// Place returns the position of an attribute's value. ok is false if the block or the attribute does not exist.
func (d *Draft) Place(at BlockPath, name string) (pos hclfile.Pos, ok bool) {
	block, err := d.find(at)
	if err != nil || block.Body.Attributes[name] == nil {
		return hclfile.Pos{}, false
	}
	return position(block.Body.Attributes[name].Expr), true
}

// A TextPlace is an attribute of a template that holds a text.
type TextPlace struct {
	Code   string
	Locale string // tag of the locale block that has the attribute; "": the template's own block
	Attr   string
}

// String is the place for people.
func (p TextPlace) String() string {
	if p.Locale != "" {
		return p.Attr + " of locale " + hclfile.Quoted(p.Locale) + " of template " + hclfile.Quoted(p.Code)
	}
	return p.Attr + " of template " + hclfile.Quoted(p.Code)
}

// BodyPath returns the path of the file() that a text of a project's template uses, "" if it uses none.
func (d *Draft) BodyPath(project string, at TextPlace) string {
	in := BlockPath{"project", project, "template", at.Code}
	if at.Locale != "" {
		in = append(in, "locale", at.Locale)
	}
	block, err := d.find(in)
	if err != nil {
		return ""
	}
	path, _ := d.bodyPath(block, at.Attr)
	return path
}

// bodyPath reads file("path").
func (doc *document) bodyPath(block *hclsyntax.Block, name string) (path string, at hclfile.Pos) {
	attr := block.Body.Attributes[name]
	if attr == nil {
		return "", at
	}
	call, ok := hclfile.Unparen(attr.Expr).(*hclsyntax.FunctionCallExpr)
	if !ok || call.Name != "file" || len(call.Args) != 1 {
		return "", at
	}
	if text, ok := doc.stringOf(call.Args[0]); ok {
		return text, position(attr.Expr)
	}
	return "", at
}

// stringOf returns the text of a string; ok is false for any other expression.
func (doc *document) stringOf(e hclsyntax.Expression) (text string, ok bool) {
	return strings.CutPrefix(doc.Canonical(e), "string ")
}

// uses counts the attributes that name a file.
func (doc *document) uses(body *hclsyntax.Body, path string) (n int) {
	for _, b := range body.Blocks {
		for name, attr := range b.Body.Attributes {
			if named, _ := doc.bodyPath(b, name); named == path {
				n++
			} else if text, ok := doc.stringOf(attr.Expr); ok && name == "ca_file" && text == path {
				n++
			}
		}
		n += doc.uses(b.Body, path)
	}
	return n
}

// smtp adds, changes or removes the smtp_config block.
func (r *rewriter) smtp(old, want *catalog.SMTPConfig) {
	const typ = "smtp_config"
	block := r.inner(typ)
	switch {
	case want == nil && old == nil:
	case want == nil:
		if block == nil {
			r.do(fmt.Errorf("%w: %s", ErrNoBlock, typ))
			return
		}
		r.d.remove(block)
	case old == nil:
		none := catalog.SMTPConfig{Active: true}
		r.insert(typ, changedFields(none.Fields(), want.Fields()))
	case block == nil:
		r.do(fmt.Errorf("%w: %s", ErrNoBlock, typ))
	default:
		r.optional(r.d.site(block), old.Fields(), want.Fields())
	}
}

// templates removes, changes and adds template blocks. A template is identified by its code.
func (r *rewriter) templates(old, want *catalog.ProjectConfig) {
	blocks := make(map[string]*hclsyntax.Block, len(old.Templates))
	for _, b := range r.project.block.Body.Blocks {
		if b.Type == "template" && len(b.Labels) == 1 {
			blocks[b.Labels[0]] = b
		}
	}
	left := make(map[string]*catalog.Template, len(want.Templates))
	for i := range want.Templates {
		left[want.Templates[i].Code] = &want.Templates[i]
	}
	for i := range old.Templates {
		was := &old.Templates[i]
		block, now := blocks[was.Code], left[was.Code]
		delete(left, was.Code)
		switch {
		case block == nil:
			r.do(fmt.Errorf("%w: template %s", ErrNoBlock, hclfile.Quoted(was.Code)))
		case now == nil:
			r.d.remove(block)
		case !catalog.SameFields(was.Fields(), now.Fields()):
			r.template(block, was, now)
		}
	}
	for i := range want.Templates {
		if t := &want.Templates[i]; left[t.Code] == t {
			r.insert("template "+Quote(t.Code), r.templateLines(t, want.Project.UUID))
		}
	}
}

// A body is the text of an attribute of a template or a locale.
type body struct {
	attr string
	text *string
}

func bodiesOf(t *catalog.Template) []body {
	return []body{{"body_html", &t.BodyHTML}, {"body_text", &t.BodyText}}
}

func localeBodies(l *catalog.Locale) []body {
	return []body{{"body_html", &l.BodyHTML}, {"body_text", &l.BodyText}}
}

// templateLines returns the attributes and blocks of a new template. Bodies that go to files are noted.
func (r *rewriter) templateLines(t *catalog.Template, project catalog.UUID) []string {
	short := *t
	short.Locales = nil
	calls := r.newFiles(TextPlace{Code: t.Code}, bodiesOf(&short))
	lines := calls.in(templateLines(&short, project))
	for i := range t.Locales {
		lines = append(lines, "", localeBlock(t.Locales[i].Tag, r.localeLines(t.Code, &t.Locales[i])))
	}
	return lines
}

// localeLines is templateLines for a locale of the template with a code.
func (r *rewriter) localeLines(code string, l *catalog.Locale) []string {
	short := *l
	calls := r.newFiles(TextPlace{Code: code, Locale: l.Tag}, localeBodies(&short))
	return calls.in(localeLines(&short))
}

// A fileCalls has the lines with file() calls, by the lines that they replace.
type fileCalls map[string]string

func (calls fileCalls) in(lines []string) []string {
	for i, line := range lines {
		lines[i] = cmp.Or(calls[line], line)
	}
	return lines
}

// newFiles notes the files to which new bodies go, and puts the paths in place of the bodies.
func (r *rewriter) newFiles(at TextPlace, bodies []body) fileCalls {
	calls := fileCalls{}
	for _, b := range bodies {
		at.Attr = b.attr
		if path := r.newFile(at, *b.text); path != "" {
			*b.text = path
			calls[b.attr+" = "+Literal(path)] = b.attr + " = " + fileCall(path)
		}
	}
	return calls
}

// newFile returns the path of the file to which a new body goes, and notes the file; "" if it goes to none.
func (r *rewriter) newFile(at TextPlace, text string) (path string) {
	if r.d.BodyFile == nil || text == "" {
		return ""
	}
	path, err := r.d.BodyFile(at, text)
	r.do(err)
	if path != "" {
		r.d.bodies = append(r.d.bodies, BodyEdit{Path: path, Text: text, Creates: true})
	}
	return path
}

func fileCall(path string) string { return "file(" + Quote(path) + ")" }

// template changes a template block. A body in a file of its own stays there.
func (r *rewriter) template(block *hclsyntax.Block, old, want *catalog.Template) {
	before := *old
	before.Locales = want.Locales // in blocks of their own
	r.bodies(block, TextPlace{Code: want.Code}, bodiesOf(&before), bodiesOf(want))
	if !catalog.SameFields(before.Fields(), want.Fields()) {
		r.optional(r.d.site(block), before.Fields(), want.Fields())
	}
	r.locales(block, old, want)
}

// bodies writes the bodies that change and go to files. They then count as unchanged in was.
func (r *rewriter) bodies(block *hclsyntax.Block, at TextPlace, was, now []body) {
	for i, was := range was {
		text := *now[i].text
		if text == "" || *was.text == text {
			continue
		}
		at.Attr = was.attr
		path, pos := r.d.bodyPath(block, was.attr)
		if path == "" {
			if path = r.newFile(at, text); path != "" {
				r.do(r.d.site(block).set(was.attr, fileCall(path)))
				*was.text = text
			}
			continue
		}
		r.d.bodies = append(r.d.bodies, BodyEdit{Path: path, Text: text, Pos: pos, Where: at.String(),
			Shared: r.d.uses(r.d.Body, path) > 1})
		*was.text = text
	}
}

// locales removes, changes and adds the locale blocks of a template.
func (r *rewriter) locales(block *hclsyntax.Block, old, want *catalog.Template) {
	blocks := make(map[string]*hclsyntax.Block, len(old.Locales))
	for _, b := range block.Body.Blocks {
		if b.Type == "locale" && len(b.Labels) == 1 {
			blocks[b.Labels[0]] = b
		}
	}
	for i := range old.Locales {
		before := old.Locales[i]
		b, now := blocks[before.Tag], want.Locales.Find(before.Tag)
		switch {
		case b == nil:
			r.do(fmt.Errorf("%w: locale %s", ErrNoBlock, hclfile.Quoted(before.Tag)))
		case now == nil:
			r.d.remove(b)
		case *now != before:
			r.bodies(b, TextPlace{Code: want.Code, Locale: now.Tag}, localeBodies(&before), localeBodies(now))
			r.optional(r.d.site(b), before.Fields(), now.Fields())
		}
	}
	for i := range want.Locales {
		if l := &want.Locales[i]; old.Locales.Find(l.Tag) == nil {
			text, err := formatted(localeHeader(l.Tag), r.localeLines(want.Code, l))
			r.do(err)
			if r.err == nil {
				r.do(r.d.site(block).insert(string(text)))
			}
		}
	}
}

// optional is fields for nouns in which an empty text and a port of 0 mean none: the line is removed then.
func (r *rewriter) optional(s *site, old, want []catalog.Field) {
	for i, f := range want {
		if f.Same(old[i]) {
			continue
		}
		expr, set := fieldText(f)
		switch v := f.Value.(type) {
		case *string:
			set = *v != ""
		case *int:
			set = *v != 0
		case *[]string:
			set = len(*v) > 0
		}
		if set {
			r.do(s.set(catalog.Snake(f.Name), expr))
		} else {
			s.unset(catalog.Snake(f.Name))
		}
	}
}

// insert adds a new block to the project.
func (r *rewriter) insert(header string, lines []string) {
	text, err := formatted(header, lines)
	r.do(err)
	if r.err == nil {
		r.do(r.project.insert(string(text)))
	}
}

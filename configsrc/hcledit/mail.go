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

// BodyPath returns the path of the file() that a template's attribute uses, "" if it uses none.
func (d *Draft) BodyPath(project, code, attr string) string {
	block, err := d.find(BlockPath{"project", project, "template", code})
	if err != nil {
		return ""
	}
	path, _ := d.bodyPath(block, attr)
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

// A body is the text of a template's attribute.
type body struct {
	attr string
	text *string
}

func bodiesOf(t *catalog.Template) []body {
	return []body{{"body_html", &t.BodyHTML}, {"body_text", &t.BodyText}}
}

// templateLines returns the attributes of a new template. Bodies that go to files are noted.
func (r *rewriter) templateLines(t *catalog.Template, project catalog.UUID) []string {
	short := *t
	calls := map[string]string{} // by the line that each replaces
	for _, b := range bodiesOf(&short) {
		if path := r.newFile(t.Code, b.attr, *b.text); path != "" {
			*b.text = path
			calls[b.attr+" = "+Literal(path)] = b.attr + " = " + fileCall(path)
		}
	}
	lines := templateLines(&short, project)
	for i, line := range lines {
		lines[i] = cmp.Or(calls[line], line)
	}
	return lines
}

// newFile returns the path of the file to which a new body goes, and notes the file; "" if it goes to none.
func (r *rewriter) newFile(code, attr, text string) (path string) {
	if r.d.BodyFile == nil || text == "" {
		return ""
	}
	path, err := r.d.BodyFile(code, attr, text)
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
	now := bodiesOf(want)
	for i, was := range bodiesOf(&before) {
		attr, text := was.attr, *now[i].text
		if text == "" || *was.text == text {
			continue
		}
		path, at := r.d.bodyPath(block, attr)
		if path == "" {
			if path = r.newFile(want.Code, attr, text); path != "" {
				r.do(r.d.site(block).set(attr, fileCall(path)))
				*was.text = text
			}
			continue
		}
		r.d.bodies = append(r.d.bodies, BodyEdit{Path: path, Text: text, Pos: at,
			Where: attr + " of template " + hclfile.Quoted(want.Code), Shared: r.d.uses(r.d.Body, path) > 1})
		*was.text = text
	}
	if !catalog.SameFields(before.Fields(), want.Fields()) {
		r.optional(r.d.site(block), before.Fields(), want.Fields())
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

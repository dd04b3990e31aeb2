package hclfile

import (
	"bytes"
	"unicode/utf8"

	"fingerpost/mailer/template"
	"fingerpost/resolver/catalog"

	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// A body is a template's text: written in the file, or in a file of its own that file() names.
type body struct {
	text *string
	file bool // by file(); text stays empty if it was not read
}

// template reads a template block; in is nil for a default template, which is outside of projects.
func (d *decoder) template(block *hclsyntax.Block, in *projectDecoder) catalog.Template {
	code, _ := d.label(block, templateSchema)
	t := catalog.Template{Code: code, Active: true}
	var project catalog.UUID
	if in != nil {
		project, t.ProjectID = in.config.Project.UUID, in.config.Project.ID
	}
	html, text := &body{text: &t.BodyHTML}, &body{text: &t.BodyText}
	fields := t.Fields()
	for i := range fields {
		switch fields[i].Value {
		case &t.BodyHTML:
			fields[i].Value = html
		case &t.BodyText:
			fields[i].Value = text
		}
	}
	var written identity
	c := d.attributes(block, templateSchema, append(fields, written.fields()...))
	t.UUID, t.ID = d.identify(c, catalog.KindTemplate, written, catalog.DeriveTemplateUUID(project, code), "")
	d.validated(c, d.templateProblems(c, &t, html.file || text.file), "code")
	if code != "" {
		d.onceTemplate(code, in, block)
	}
	d.place(catalog.KindTemplate, code, t.ProjectID, block)
	return t
}

// templateProblems is Validate without the missing body if the body is in another file or was reported already.
func (d *decoder) templateProblems(c *content, t *catalog.Template, elsewhere bool) catalog.Problems {
	_, html := c.schema.attribute("bodyHtml")
	_, text := c.schema.attribute("bodyText")
	var ps catalog.Problems
	for _, p := range template.Validate(t) {
		if p.Path != "" {
			ps = append(ps, p)
		} else if !elsewhere && !c.bad.Has(html) && !c.bad.Has(text) {
			p.Message = "needs a body_html, a body_text or both"
			ps = append(ps, p)
		}
	}
	return ps
}

// onceTemplate reports a code that its project, or the defaults, already have.
func (d *decoder) onceTemplate(code string, in *projectDecoder, block *hclsyntax.Block) {
	rng := block.LabelRanges[0]
	if in == nil {
		d.once(claim{"template", code}, rng, "default template "+Quoted(code)+" is declared twice", "")
		return
	}
	if first, taken := in.codes[code]; taken {
		d.errorf(rng, "template "+Quoted(code)+" is declared twice in this project", "the first is at %s", d.at(first))
		return
	}
	in.codes[code] = rng
}

// bodyValue reads body_html or body_text.
func (d *decoder) bodyValue(attr *hclsyntax.Attribute, to *body) bool {
	call, ok := Unparen(attr.Expr).(*hclsyntax.FunctionCallExpr)
	if !ok || call.Name != "file" {
		text, ok := d.stringValue(attr.Name, attr.Expr, wantString)
		*to.text = text
		return ok
	}
	path, ok := d.argument(call)
	if !ok {
		return false
	}
	if msg := checkPath(path); msg != "" {
		d.errorf(call.Args[0].Range(), msg, `write it as in file("mail/welcome.html")`)
		return false
	}
	d.res.Deps = append(d.res.Deps, path)
	to.file = true
	if d.o.ReadFile == nil {
		return true
	}
	content, err := d.o.ReadFile(path)
	switch {
	case err != nil:
		d.errorf(call.Range(), "cannot read the file "+Quoted(path), "%s", err.Error())
		return false
	case catalog.IsLFSPointer(content):
		d.errorf(call.Range(), "the file "+Quoted(path)+" "+catalog.LFSPointerText, "")
		return false
	case !utf8.Valid(content) || bytes.IndexByte(content, 0) >= 0:
		d.errorf(call.Range(), "the file "+Quoted(path)+" is not UTF-8 text", "save it as UTF-8")
		return false
	}
	content = bytes.TrimPrefix(content, bom)
	*to.text = string(content) // with its line ends: the API returns the exact bytes
	to.file = len(content) == 0
	return true
}

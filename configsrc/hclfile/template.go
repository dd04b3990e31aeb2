package hclfile

import (
	"bytes"
	"slices"
	"unicode/utf8"

	"fingerpost/mailer/template"
	"fingerpost/resolver/catalog"

	"github.com/hashicorp/hcl/v2"
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
	bodies := textBodies{}
	fields := bodies.read(attributesOf(t.Fields()))
	var written identity
	c := d.attributes(block, templateSchema, append(fields, written.fields()...))
	t.UUID, t.ID = d.identify(c, catalog.KindTemplate, written, catalog.DeriveTemplateUUID(project, code), "")
	problems := bodies.problems(c, template.Validate(&t))
	if t.Category != "" && d.o.Allow.NoPublicURL {
		problems.Warnf("category",
			"needs a link to unsubscribe, and the service runs without --public-url: a send must bring its own")
	}
	d.validated(c, problems, "code")
	t.Locales = d.locales(block)
	if code != "" {
		d.onceTemplate(code, in, block)
	}
	d.place(catalog.KindTemplate, code, t.ProjectID, block)
	return t
}

// textBodies are the bodies of a template or a locale.
type textBodies []*body

// read returns fields in which the bodies may be files.
func (bs *textBodies) read(fields []catalog.Field) []catalog.Field {
	for i := range fields {
		if text, is := fields[i].Value.(*string); is && (fields[i].Name == "bodyHtml" || fields[i].Name == "bodyText") {
			b := &body{text: text}
			*bs = append(*bs, b)
			fields[i].Value = b
		}
	}
	return fields
}

// problems returns ps without the missing body if the body is in another file or was reported already.
func (bs textBodies) problems(c *content, ps catalog.Problems) (left catalog.Problems) {
	_, html := c.schema.attribute("bodyHtml")
	_, text := c.schema.attribute("bodyText")
	elsewhere := slices.ContainsFunc(bs, func(b *body) bool { return b.file })
	for _, p := range ps {
		if p.Path != "" {
			left = append(left, p)
		} else if !elsewhere && !c.bad.Has(html) && !c.bad.Has(text) {
			p.Message = "needs a body_html, a body_text or both"
			left = append(left, p)
		}
	}
	return left
}

// locales reads the locale blocks of a template.
func (d *decoder) locales(in *hclsyntax.Block) (list catalog.Locales) {
	first := map[string]hcl.Range{}
	for _, block := range in.Body.Blocks {
		if block.Body == nil || len(d.diags) > maxCollected {
			continue
		}
		if block.Type != localeSchema.typ {
			d.unknownBlock(block, templateSchema)
			continue
		}
		tag, rng := d.label(block, localeSchema)
		l := catalog.Locale{Tag: tag}
		bodies := textBodies{}
		c := d.attributes(block, localeSchema, bodies.read(l.Fields()))
		d.validated(c, bodies.problems(c, template.ValidateLocale(&l)), "tag")
		if start, taken := first[tag]; taken {
			d.errorf(rng, "language "+Quoted(tag)+" is there twice in this template", "the first is at %s", d.at(start))
			continue
		}
		first[tag] = rng
		list = append(list, l)
	}
	for _, p := range template.ValidateLocales(list) {
		d.errorf(header(in), "locales "+p.Message, "")
	}
	list.Sort()
	return list
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

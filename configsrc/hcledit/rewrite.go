package hcledit

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"fingerpost/configsrc/hclfile"
	"fingerpost/resolver/catalog"
	"fingerpost/resolver/hostname"
)

// RewriteProject notes the edits that turn the block of old into want. The settings of both are those in force: the
// block's over the defaults. A domain is identified by its UUID, a template by its code. The caller checks the content
// of the result, and writes template bodies that are in files of their own, see Bodies.
func (d *Draft) RewriteProject(old, want *catalog.ProjectConfig) error {
	block, err := d.find(BlockPath{"project", old.Project.Slug})
	if err != nil {
		return err
	}
	r := &rewriter{d: d, project: d.site(block)}
	r.fields(r.project, old.Project.Fields(), want.Project.Fields())
	r.rename(r.project, old.Project.Slug, want.Project.Slug, old.Project.UUID)
	if !old.Service.Same(&want.Service) {
		r.settings("service_settings", old.Service.Fields(), want.Service.Fields())
	}
	r.auth(old, want)
	r.smtp(old.SMTP, want.SMTP)
	r.domains(old, want)
	r.templates(old, want)
	return r.err
}

// RemoveProject notes that a project's block is removed, see RemoveBlock.
func (d *Draft) RemoveProject(slug string) error {
	block, err := d.find(BlockPath{"project", slug})
	if err != nil {
		return err
	}
	d.remove(block)
	return nil
}

// A rewriter notes edits one after the other. err is the error of the first edit that failed.
type rewriter struct {
	d       *Draft
	project *site
	err     error
}

func (r *rewriter) do(err error) {
	if r.err == nil {
		r.err = err
	}
}

// fields sets the attributes of a block whose values differ.
func (r *rewriter) fields(s *site, old, want []catalog.Field) {
	for i, f := range want {
		if f.Same(old[i]) {
			continue
		}
		name := catalog.Snake(f.Name)
		if labels, ok := f.Value.(*[]catalog.Label); ok {
			r.do(s.setLabels(name, *labels))
		} else if expr, set := fieldText(f); set {
			r.do(s.set(name, expr))
		} else {
			s.unset(name)
		}
	}
}

// rename gives a block another label. The object keeps its identity: a block without a uuid line gets one, because the
// uuid would be derived from the new label otherwise.
func (r *rewriter) rename(s *site, old, want string, uuid catalog.UUID) {
	if old == want {
		return
	}
	if s.block.Body.Attributes["uuid"] == nil {
		r.do(s.set("uuid", Quote(uuid.String())))
	}
	r.do(s.rename(want))
}

// settings sets the attributes of a settings block. It adds the block if there is none.
func (r *rewriter) settings(typ string, old, want []catalog.Field) {
	lines := changedFields(old, want)
	if len(lines) == 0 {
		return
	}
	if block := r.inner(typ); block != nil {
		r.fields(r.d.site(block), old, want)
		return
	}
	r.insert(typ, lines)
}

// inner returns the project's block of a type; nil if it has none.
func (r *rewriter) inner(typ string) *hclsyntax.Block {
	for _, b := range r.project.block.Body.Blocks {
		if b.Type == typ {
			return b
		}
	}
	return nil
}

// auth is settings for auth_settings. Two of its flags follow a written registration_mode unless they are written too,
// as in the decoder: they are written only if they differ from what follows.
func (r *rewriter) auth(old, want *catalog.ProjectConfig) {
	const typ = "auth_settings"
	if old.Auth.Same(&want.Auth) {
		return
	}
	before := old.Auth
	if mode := want.Auth.RegistrationMode; mode != before.RegistrationMode {
		block := r.inner(typ)
		follows := func(attr string) bool { return block == nil || block.Body.Attributes[attr] == nil }
		if follows("approval_required") {
			before.ApprovalRequired = mode == catalog.RegistrationApprovalRequired
		}
		if follows("invite_only") {
			before.InviteOnly = mode == catalog.RegistrationInviteOnly
		}
	}
	r.settings(typ, before.Fields(), want.Auth.Fields())
}

// domains removes, renames, changes and adds domain blocks.
func (r *rewriter) domains(old, want *catalog.ProjectConfig) {
	blocks := make(map[string]*hclsyntax.Block, len(old.Domains)) // by canonical name
	for _, b := range r.project.block.Body.Blocks {
		if b.Type == "domain" && len(b.Labels) == 1 {
			if name, err := hostname.ParseDomain(b.Labels[0]); err == nil {
				blocks[name] = b
			}
		}
	}
	left := make(map[catalog.UUID]*catalog.Domain, len(want.Domains))
	for i := range want.Domains {
		left[want.Domains[i].UUID] = &want.Domains[i]
	}
	for i := range old.Domains {
		was := &old.Domains[i]
		block, now := blocks[was.Name], left[was.UUID]
		delete(left, was.UUID)
		switch {
		case block == nil:
			r.do(fmt.Errorf("%w: domain %s", ErrNoBlock, hclfile.Quoted(was.Name)))
		case now == nil:
			r.d.remove(block)
		case now.Name != was.Name || !catalog.SameFields(was.Fields(), now.Fields()):
			s := r.d.site(block)
			r.fields(s, was.Fields(), now.Fields())
			r.rename(s, was.Name, now.Name, now.UUID)
		}
	}
	for i := range want.Domains {
		if d := &want.Domains[i]; left[d.UUID] == d {
			text, err := domainBlock(d, want.Project.UUID)
			r.do(err)
			if r.err == nil {
				r.do(r.project.insert(text))
			}
		}
	}
}

// domainBlock returns the text of a domain block: on one line if it has at most one attribute.
func domainBlock(d *catalog.Domain, project catalog.UUID) (string, error) {
	plain := catalog.Domain{Active: true}
	lines := changedFields(plain.Fields(), d.Fields())
	pins := identityLines(catalog.KindDomain, d.UUID, d.ID, catalog.DeriveDomainUUID(project, d.Name))
	text := "domain " + Quote(d.Name)
	switch {
	case len(lines)+len(pins) == 0:
		return text + " {}\n", nil
	case len(lines) == 1 && len(pins) == 0:
		return text + " { " + lines[0] + " }\n", nil
	}
	block, err := formatted(text, append(lines, pins...))
	return string(block), err
}

// identityLines returns the lines for a uuid and an id that are not the derived ones. An id of 0 is not known yet.
func identityLines(kind catalog.Kind, uuid catalog.UUID, id int64, derived catalog.UUID) (lines []string) {
	if uuid != derived {
		lines = append(lines, "uuid = "+Quote(uuid.String()))
	}
	if id != 0 && id != catalog.DeriveID(kind, uuid) {
		lines = append(lines, "id = "+strconv.FormatInt(id, 10))
	}
	return lines
}

// changedFields returns the attributes of a new block: the fields that differ from their value without a line. Fields
// that blocks hold are left out.
func changedFields(old, want []catalog.Field) (lines []string) {
	groups := map[string]bool{} // of fields that go together, which differ
	for i, f := range want {
		groups[f.Together] = groups[f.Together] || f.Together != "" && !f.Same(old[i])
	}
	for i, f := range want {
		if f.Block != "" || f.Same(old[i]) && !groups[f.Together] {
			continue
		}
		if expr, set := fieldText(f); set {
			lines = append(lines, catalog.Snake(f.Name)+" = "+expr)
		} else if _, nullable := f.Value.(**string); nullable { // without the line it would have the value in old
			lines = append(lines, catalog.Snake(f.Name)+" = null")
		}
	}
	return lines
}

// formatted returns the text of a block with its attributes on lines of their own.
func formatted(header string, lines []string) ([]byte, error) {
	for i, line := range lines {
		lines[i] = indentLines(line, "  ", false) // the formatter leaves heredocs as they are
	}
	text := []byte(header + " {\n" + strings.Join(lines, "\n") + "\n}\n")
	out, ds := hclfile.Format(text)
	if ds.HasErrors() {
		if s, limits := hclfile.Parse(text); s == nil {
			return nil, fmt.Errorf("%w: %s", ErrLimit, limits[0].Summary)
		}
		return nil, fmt.Errorf("%w: %s", ErrVerify, ds[0].Summary)
	}
	return out, nil
}

// textElements returns the elements of a list as HCL. files: some may be a catalog.FileText.
func textElements(list []string, files bool) []string {
	texts := make([]string, len(list))
	for i, s := range list {
		path, is := catalog.FilePath(s)
		if texts[i] = Quote(s); files && is {
			texts[i] = "file(" + Quote(path) + ")"
		}
	}
	return texts
}

// fieldText returns a field's value as HCL. set is false for null, for which no line is written.
func fieldText(f catalog.Field) (expr string, set bool) {
	switch v := f.Plain().(type) {
	case nil:
		return "", false
	case bool:
		return strconv.FormatBool(v), true
	case int:
		return strconv.Itoa(v), true
	case string:
		return Literal(v), true
	case []catalog.Label:
		return mapText(v), len(v) > 0
	case []string:
		return listText(textElements(v, f.Files)), true
	case catalog.Secret:
		switch v.Source {
		case catalog.SecretNone:
			return "", false
		case catalog.SecretEnv:
			return "env(" + Quote(v.Ref) + ")", true
		case catalog.SecretFile:
			return "file(" + Quote(v.Ref) + ")", true
		case catalog.SecretSealed:
			return "sealed(" + Quote(v.Ref) + ")", true
		}
	}
	panic(fmt.Sprintf("hcledit: a field of type %T is written: impossible, secrets in clear text are sealed before",
		f.Value))
}

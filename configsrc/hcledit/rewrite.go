package hcledit

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"fingerpost/configsrc/hclfile"
	"fingerpost/resolver/catalog"
)

// NewProject is the text of a project block as a person would begin it, formatted, for a file of its own: what differs
// from what a block without a line would say, and the uuid, which a project that the API makes always has.
func NewProject(p *catalog.Project) ([]byte, error) {
	plain := catalog.Project{Status: catalog.StatusDraft}
	lines := append(changedFields(plain.Fields(), p.Fields()), "uuid = "+Quote(p.UUID.String()))
	return formatted("project "+Quote(p.Slug), lines)
}

// RewriteProject changes the block of the project that the file declares as old, so that it says want, and leaves all else
// as it is. Both are as they are in force: their settings are those of the block over the defaults. Domains are told by
// their UUIDs, templates by their codes. What the file means afterwards is the caller's to check; bodies that stand in files
// of their own are the caller's to write, see Bodies.
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

// RemoveProject takes a project's block out, see RemoveBlock.
func (d *Draft) RemoveProject(slug string) error {
	block, err := d.find(BlockPath{"project", slug})
	if err != nil {
		return err
	}
	d.remove(block)
	return nil
}

// A rewriter notes edits one after the other; the first that fails is its error, and the last.
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
		if expr, set := fieldText(f.Value); set {
			r.do(s.set(catalog.Snake(f.Name), expr))
		} else {
			s.unset(catalog.Snake(f.Name))
		}
	}
}

// rename gives a block another label. The identity of its object stays: where the block has no such line, it gets one
// with the uuid, which would follow from the label otherwise.
func (r *rewriter) rename(s *site, old, want string, uuid catalog.UUID) {
	if old == want {
		return
	}
	if s.block.Body.Attributes["uuid"] == nil {
		r.do(s.set("uuid", Quote(uuid.String())))
	}
	r.do(s.rename(want))
}

// settings sets the attributes of a settings block, which is made where there is none.
func (r *rewriter) settings(typ string, old, want []catalog.Field) {
	lines := changedFields(old, want)
	if len(lines) == 0 {
		return
	}
	if block := r.inner(typ); block != nil {
		r.fields(r.d.site(block), old, want)
		return
	}
	text, err := formatted(typ, lines)
	r.do(err)
	if err == nil {
		r.do(r.project.insert(string(text)))
	}
}

// inner is the block of a type of which the project has one, nil where it has none.
func (r *rewriter) inner(typ string) *hclsyntax.Block {
	for _, b := range r.project.block.Body.Blocks {
		if b.Type == typ {
			return b
		}
	}
	return nil
}

// auth is settings for auth_settings, where two flags follow a written registration_mode (see followMode), as they will
// once it is written: only what does not follow from it is written, too.
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

// domains takes out what is gone, renames and changes what is there, and adds what is new.
func (r *rewriter) domains(old, want *catalog.ProjectConfig) {
	blocks := make(map[string]*hclsyntax.Block, len(old.Domains)) // by canonical name
	for _, b := range r.project.block.Body.Blocks {
		if b.Type == "domain" && len(b.Labels) == 1 {
			if name, err := catalog.ParseDomain(b.Labels[0]); err == nil {
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
		case now.Name != was.Name || now.Primary != was.Primary || now.Active != was.Active:
			s := r.d.site(block)
			r.fields(s, was.Fields(), now.Fields())
			r.rename(s, was.Name, now.Name, now.UUID)
		}
	}
	for i := range want.Domains {
		if d := &want.Domains[i]; left[d.UUID] == d {
			r.addDomain(d, want.Project.UUID)
		}
	}
}

// addDomain puts a new domain's block in.
func (r *rewriter) addDomain(d *catalog.Domain, project catalog.UUID) {
	text, err := domainBlock(d, project)
	if err != nil {
		r.do(err)
	}
	if r.err == nil {
		r.do(r.project.insert(text))
	}
}

// domainBlock writes a domain as a person would: on one line as long as it says one thing at most.
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

// identityLines pin a uuid and an id that do not follow from what is declared. An id of 0 is one that nobody knows yet.
func identityLines(kind catalog.Kind, uuid catalog.UUID, id int64, derived catalog.UUID) (lines []string) {
	if uuid != derived {
		lines = append(lines, "uuid = "+Quote(uuid.String()))
	}
	if id != 0 && id != catalog.DeriveID(kind, uuid) {
		lines = append(lines, "id = "+strconv.FormatInt(id, 10))
	}
	return lines
}

// changedFields are the attributes of a new block: those whose values differ from what would hold without them.
func changedFields(old, want []catalog.Field) (lines []string) {
	for i, f := range want {
		if f.Same(old[i]) {
			continue
		}
		if expr, set := fieldText(f.Value); set {
			lines = append(lines, catalog.Snake(f.Name)+" = "+expr)
		} else if _, nullable := f.Value.(**string); nullable { // without the line it would be what old says
			lines = append(lines, catalog.Snake(f.Name)+" = null")
		}
	}
	return lines
}

// formatted is the text of a block with its attributes on lines of their own.
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

// fieldText is a field's value as HCL; set is false for null, which a file says by leaving the line out.
func fieldText(value any) (expr string, set bool) {
	switch v := value.(type) {
	case *bool:
		return strconv.FormatBool(*v), true
	case *int:
		return strconv.Itoa(*v), true
	case *string:
		return Literal(*v), true
	case **string:
		if *v == nil {
			return "", false
		}
		return Literal(**v), true
	case *catalog.Secret:
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
	panic(fmt.Sprintf("hcledit: a field of type %T is written: impossible, nobody writes a secret in clear text", value))
}

package hclfile

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"fingerpost/resolver/catalog"
)

// NormalText is s as a file would give it back: in Unicode's normal form C, with bytes that are no UTF-8 as U+FFFD.
func NormalText(s string) string { return cty.NormalizeString(strings.ToValidUTF8(s, "\ufffd")) }

// NewProject is the text of a project block as a person would begin it, formatted, for a file of its own: what differs
// from what a block without a line would say, and the uuid, which a project that the API makes always has.
func NewProject(p *catalog.Project) ([]byte, error) {
	plain := catalog.Project{Status: catalog.StatusDraft}
	lines := append(changedFields(plain.Fields(), p.Fields()), "uuid = "+Quote(p.UUID.String()))
	return formatted("project "+Quote(p.Slug), lines)
}

// RewriteProject changes the block of the project that src declares as old, so that it says want, and leaves all else as
// it is. Both are as they are in force: their settings are those of the block over defaults. Domains are told by their
// UUIDs; SMTP config and templates must not differ. What src says afterwards is the caller's to check.
func RewriteProject(src []byte, old, want *catalog.ProjectConfig, defaults *catalog.Defaults) ([]byte, error) {
	r := &rewriter{src: src, at: BlockPath{"project", old.Project.Slug}}
	r.fields(r.at, old.Project.Fields(), want.Project.Fields())
	r.rename(old, want)
	r.settings("service_settings", old.Service.Fields(), want.Service.Fields())
	r.auth(old, want, defaults)
	r.domains(old, want)
	return r.src, r.err
}

// A rewriter applies edits one after the other; the first that fails is its error, and the last.
type rewriter struct {
	src []byte
	at  BlockPath // the project's block
	err error
}

func (r *rewriter) do(edit func([]byte) ([]byte, error)) {
	if r.err != nil {
		return
	}
	if out, err := edit(r.src); err != nil {
		r.err = err
	} else {
		r.src = out
	}
}

func (r *rewriter) below(rest ...string) BlockPath { return append(slices.Clone(r.at), rest...) }

func (r *rewriter) set(at BlockPath, name, expr string) {
	r.do(func(src []byte) ([]byte, error) { return SetAttribute(src, at, name, expr) })
}

// fields sets the attributes of a block whose values differ.
func (r *rewriter) fields(at BlockPath, old, want []catalog.Field) {
	for i, f := range want {
		if sameValue(old[i].Value, f.Value) {
			continue
		}
		if expr, set := fieldText(f.Value); set {
			r.set(at, catalog.Snake(f.Name), expr)
		} else {
			r.do(func(src []byte) ([]byte, error) { return RemoveAttribute(src, at, catalog.Snake(f.Name)) })
		}
	}
}

// pin writes the uuid of an object into its block, where it has no such line: it would follow from the name that is
// about to change.
func (r *rewriter) pin(at BlockPath, uuid catalog.UUID) {
	if r.err != nil {
		return
	}
	if _, there, err := FindAttribute(r.src, at, "uuid"); err != nil {
		r.err = err
	} else if !there {
		r.set(at, "uuid", Quote(uuid.String()))
	}
}

// rename gives the project another slug. Its identity stays.
func (r *rewriter) rename(old, want *catalog.ProjectConfig) {
	if old.Project.Slug == want.Project.Slug {
		return
	}
	r.pin(r.at, old.Project.UUID)
	r.do(func(src []byte) ([]byte, error) { return RenameLabel(src, r.at, want.Project.Slug) })
	r.at = BlockPath{"project", want.Project.Slug}
}

// settings sets the attributes of a settings block, which is made where there is none.
func (r *rewriter) settings(block string, old, want []catalog.Field) {
	if r.err != nil {
		return
	}
	lines := changedFields(old, want)
	if len(lines) == 0 {
		return
	}
	at := r.below(block)
	if r.has(at) {
		r.fields(at, old, want)
		return
	}
	text, err := formatted(block, lines)
	if err != nil {
		r.err = err
		return
	}
	r.do(func(src []byte) ([]byte, error) { return InsertBlock(src, r.at, string(text)) })
}

// auth is settings for auth_settings, where two flags follow a written registration_mode (see followMode): the mode
// first, then what does not follow from it.
func (r *rewriter) auth(old, want *catalog.ProjectConfig, defaults *catalog.Defaults) {
	const block = "auth_settings"
	mode := want.Auth.RegistrationMode
	if r.err != nil || mode == old.Auth.RegistrationMode {
		r.settings(block, old.Auth.Fields(), want.Auth.Fields())
		return
	}
	if !r.has(r.below(block)) {
		before := old.Auth
		before.ApprovalRequired = mode == catalog.RegistrationApprovalRequired
		before.InviteOnly = mode == catalog.RegistrationInviteOnly
		r.settings(block, before.Fields(), want.Auth.Fields())
		return
	}
	r.set(r.below(block), "registration_mode", Quote(mode))
	if r.err != nil {
		return
	}
	now := projectNamed(r.src, r.at[1])
	if now == nil {
		r.err = fmt.Errorf("%w: the block cannot be read after its registration_mode was changed", ErrVerify)
		return
	}
	if defaults != nil {
		now.Auth = now.Auth.Over(defaults.Auth)
	}
	r.fields(r.below(block), now.Auth.Fields(), want.Auth.Fields())
}

func (r *rewriter) has(at BlockPath) bool {
	doc, err := openDocument(r.src)
	if err != nil {
		return false
	}
	_, err = doc.find(at)
	return err == nil
}

func projectNamed(src []byte, slug string) *catalog.ProjectConfig {
	res, _ := Decode("", src, Options{})
	for i := range res.Declared.Projects {
		if res.Declared.Projects[i].Project.Slug == slug {
			return &res.Declared.Projects[i]
		}
	}
	return nil
}

// domains takes out what is gone, renames and changes what is there, and adds what is new, in this order, so that names
// become free before they are used again.
func (r *rewriter) domains(old, want *catalog.ProjectConfig) {
	had := make(map[catalog.UUID]*catalog.Domain, len(old.Domains))
	for i := range old.Domains {
		had[old.Domains[i].UUID] = &old.Domains[i]
	}
	stays := make(map[catalog.UUID]bool, len(want.Domains))
	for i := range want.Domains {
		stays[want.Domains[i].UUID] = true
	}
	for _, d := range old.Domains {
		if !stays[d.UUID] {
			labels := append(slices.Clone(r.at[1:]), "domain", d.Name)
			r.do(func(src []byte) ([]byte, error) { return RemoveBlock(src, r.at[0], labels...) })
		}
	}
	for i := range want.Domains {
		d := &want.Domains[i]
		was := had[d.UUID]
		if was == nil {
			continue
		}
		at := r.below("domain", was.Name)
		r.fields(at, was.Fields(), d.Fields())
		if was.Name != d.Name {
			r.pin(at, d.UUID)
			r.do(func(src []byte) ([]byte, error) { return RenameLabel(src, at, d.Name) })
		}
	}
	for i := range want.Domains {
		if d := &want.Domains[i]; had[d.UUID] == nil {
			r.addDomain(d, want.Project.UUID)
		}
	}
}

// addDomain puts a new domain's block in.
func (r *rewriter) addDomain(d *catalog.Domain, project catalog.UUID) {
	text, err := domainBlock(d, project)
	if err != nil && r.err == nil {
		r.err = err
	}
	r.do(func(src []byte) ([]byte, error) { return InsertBlock(src, r.at, text) })
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
		if sameValue(old[i].Value, f.Value) {
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
	out, ds := Format([]byte(header + " {\n" + strings.Join(lines, "\n") + "\n}\n"))
	if ds.HasErrors() {
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
	panic(fmt.Sprintf("hclfile: a field of type %T is written: impossible, nobody writes a secret in clear text", value))
}

func sameValue(a, b any) bool { return reflect.DeepEqual(a, b) }

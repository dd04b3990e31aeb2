package hcledit

import (
	"fmt"
	"strings"

	"fingerpost/configsrc/hclfile"
	"fingerpost/resolver/catalog"
)

// NewProject returns a file with a new project block: the fields that differ from those of an empty block, the uuid, and
// the domains. A project that the API creates always has a uuid line.
func NewProject(p *catalog.ProjectConfig) ([]byte, error) {
	plain := catalog.Project{Status: catalog.StatusDraft}
	var w blockWriter
	w.open("project "+Quote(p.Project.Slug), append(changedFields(plain.Fields(), p.Project.Fields()),
		"uuid = "+Quote(p.Project.UUID.String())))
	if err := w.domains(p); err != nil {
		return nil, err
	}
	return w.file()
}

// WriteProject returns a file that declares p and nothing else, in canonical form. It writes the fields that differ
// from their value without a line, given the folder's defaults block (nil: none), and the uuid and id lines that p's
// identities need. The settings of p are those in force. Secrets must be absent or expressions. An error wrapping
// ErrVerify means that no file can express this, for instance because a text is not UTF-8.
//
// Settings and SMTP config get derived identities, whatever p has.
func WriteProject(p *catalog.ProjectConfig, defaults *catalog.Defaults) ([]byte, error) {
	plain := catalog.Project{Status: catalog.StatusDraft}
	var w blockWriter
	w.open("project "+Quote(p.Project.Slug), append(changedFields(plain.Fields(), p.Project.Fields()),
		identityLines(catalog.KindProject, p.Project.UUID, p.Project.ID, catalog.DeriveProjectUUID(p.Project.Slug))...))
	if err := w.domains(p); err != nil {
		return nil, err
	}
	service, auth := catalog.NewServiceSettings(), catalog.NewAuthSettings()
	if defaults != nil {
		service, auth = service.Over(defaults.Service), auth.Over(defaults.Auth)
	}
	if p.Auth.RegistrationMode != auth.RegistrationMode { // then these two follow it, see followMode
		auth.ApprovalRequired = p.Auth.RegistrationMode == catalog.RegistrationApprovalRequired
		auth.InviteOnly = p.Auth.RegistrationMode == catalog.RegistrationInviteOnly
	}
	w.block("service_settings", changedFields(service.Fields(), p.Service.Fields()))
	w.block("auth_settings", changedFields(auth.Fields(), p.Auth.Fields()))
	if p.SMTP != nil {
		none := catalog.SMTPConfig{Active: true}
		w.block("smtp_config", changedFields(none.Fields(), p.SMTP.Fields()))
	}
	for i := range p.Templates {
		t := &p.Templates[i]
		w.block("template "+Quote(t.Code), templateLines(t, p.Project.UUID))
	}
	out, err := w.file()
	if err != nil {
		return nil, err
	}
	res, ds := hclfile.Decode("", out, hclfile.Options{})
	if ds.HasErrors() || len(res.Declared.Projects) != 1 || !saysProject(&res.Declared.Projects[0], p, defaults) {
		return nil, fmt.Errorf("%w: the new project", ErrVerify)
	}
	return out, nil
}

// WriteTemplates returns a file that declares these default templates and nothing else, see WriteProject.
func WriteTemplates(ts []catalog.Template) ([]byte, error) {
	var w blockWriter
	for i := range ts {
		w.block("template "+Quote(ts[i].Code), templateLines(&ts[i], catalog.UUID{}))
	}
	out, err := w.file()
	if err != nil {
		return nil, err
	}
	res, ds := hclfile.Decode("", out, hclfile.Options{})
	if ds.HasErrors() || !sameTemplates(res.Declared.Templates, ts) {
		return nil, fmt.Errorf("%w: the new templates", ErrVerify)
	}
	return out, nil
}

func templateLines(t *catalog.Template, project catalog.UUID) []string {
	plain := catalog.Template{Active: true}
	lines := append(changedFields(plain.Fields(), t.Fields()),
		identityLines(catalog.KindTemplate, t.UUID, t.ID, catalog.DeriveTemplateUUID(project, t.Code))...)
	for i := range t.Locales {
		lines = append(lines, "", localeBlock(t.Locales[i].Tag, localeLines(&t.Locales[i])))
	}
	return lines
}

func localeLines(l *catalog.Locale) []string {
	return changedFields(new(catalog.Locale).Fields(), l.Fields())
}

func localeHeader(tag string) string { return "locale " + Quote(tag) }

// localeBlock returns a locale block, to stand with the lines of its template.
func localeBlock(tag string, lines []string) string {
	var b strings.Builder
	b.WriteString(localeHeader(tag) + " {\n")
	writeLines(&b, lines, "  ")
	b.WriteString("}")
	return b.String()
}

// writeLines writes lines of a block, which may have several lines each.
func writeLines(b *strings.Builder, lines []string, indent string) {
	for _, line := range lines {
		if line != "" {
			b.WriteString(indent + indentLines(line, indent, false))
		}
		b.WriteByte('\n')
	}
}

// A blockWriter builds the text of a file: blocks on one level, or one open block with blocks in it.
type blockWriter struct {
	text  strings.Builder
	depth string // the indentation of the open block's inside
	begun bool
}

// open begins the block that contains all later ones.
func (w *blockWriter) open(header string, lines []string) {
	w.text.WriteString(header + " {\n")
	w.depth = "  "
	for _, line := range lines {
		w.text.WriteString(w.depth + indentLines(line, w.depth, false) + "\n")
	}
	w.begun = len(lines) > 0
}

// block writes a block after a blank line. A block without lines is left out.
func (w *blockWriter) block(header string, lines []string) {
	if len(lines) == 0 {
		return
	}
	var b strings.Builder
	b.WriteString(header + " {\n")
	writeLines(&b, lines, "  ")
	b.WriteString("}\n")
	w.inner(b.String())
}

// domains writes the domain blocks of a project.
func (w *blockWriter) domains(p *catalog.ProjectConfig) error {
	var all strings.Builder
	for i := range p.Domains {
		text, err := domainBlock(&p.Domains[i], p.Project.UUID)
		if err != nil {
			return err
		}
		all.WriteString(text)
	}
	w.inner(all.String())
	return nil
}

// inner writes blocks, which have no indentation yet.
func (w *blockWriter) inner(text string) {
	if text == "" {
		return
	}
	if w.begun {
		w.text.WriteByte('\n')
	}
	w.begun = true
	w.text.WriteString(indentLines(text, w.depth, true))
}

func (w *blockWriter) file() ([]byte, error) {
	if w.depth != "" {
		w.text.WriteString("}\n")
	}
	out, ds := hclfile.Format([]byte(w.text.String()))
	if ds.HasErrors() {
		return nil, fmt.Errorf("%w: %s", ErrVerify, ds[0].Summary)
	}
	return out, nil
}

// saysProject reports whether a decoded project, over the defaults, equals want.
func saysProject(got, want *catalog.ProjectConfig, defaults *catalog.Defaults) bool {
	service, auth := got.Service, got.Auth
	if defaults != nil {
		service, auth = service.Over(defaults.Service), auth.Over(defaults.Auth)
	}
	if len(got.Domains) != len(want.Domains) {
		return false
	}
	for i, d := range got.Domains {
		w := &want.Domains[i]
		if d.ID != w.ID || d.UUID != w.UUID || d.Name != w.Name || !catalog.SameFields(d.Fields(), w.Fields()) {
			return false
		}
	}
	p, w := &got.Project, &want.Project
	return p.ID == w.ID && p.UUID == w.UUID && p.Slug == w.Slug && catalog.SameFields(p.Fields(), w.Fields()) &&
		service.Same(&want.Service) && auth.Same(&want.Auth) &&
		sameSMTP(got.SMTP, want.SMTP) && sameTemplates(got.Templates, want.Templates)
}

func sameSMTP(got, want *catalog.SMTPConfig) bool {
	if got == nil || want == nil {
		return got == want
	}
	return catalog.SameFields(got.Fields(), want.Fields())
}

func sameTemplates(got, want []catalog.Template) bool {
	if len(got) != len(want) {
		return false
	}
	for i := range got {
		g, w := &got[i], &want[i]
		if g.ID != w.ID || g.UUID != w.UUID || g.Code != w.Code || !catalog.SameFields(g.Fields(), w.Fields()) {
			return false
		}
	}
	return true
}

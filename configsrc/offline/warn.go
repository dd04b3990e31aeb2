package offline

import (
	"fmt"

	"fingerpost/configsrc/hclfile"
	"fingerpost/configsrc/names"
	"fingerpost/resolver/catalog"
)

// warnOfSenders warns of projects that mean to send mail through the relay of the defaults block and cannot: there is
// no relay, or nobody names the sender. It is no error, because the two files may come with different branches, and a
// project must not break when another file changes.
func warnOfSenders(files []File) (ds hclfile.Diagnostics) {
	_, defaults := defaultsOf(files)
	for i := range files {
		for j := range files[i].Declared.Projects {
			p := &files[i].Declared.Projects[j]
			summary, hint := senderProblem(p, defaults)
			if summary == "" {
				continue
			}
			ref := catalog.Ref{Kind: catalog.KindSMTPConfig, ProjectID: p.Project.ID}
			if p.SMTP == nil {
				ref = catalog.Ref{Kind: catalog.KindProject, Name: p.Project.Slug}
			}
			ds = append(ds, files[i].positions().Diagnose(ref, hclfile.Warning, summary, hint))
		}
	}
	return ds
}

// senderProblem returns why a project cannot send through the relay that it counts on, "" if it can or does not.
func senderProblem(p *catalog.ProjectConfig, defaults *catalog.Defaults) (summary, hint string) {
	service, _ := defaults.InForce(p)
	hasRelay := defaults != nil && defaults.SMTP != nil
	switch {
	case catalog.SMTPInForce(p.SMTP, defaults) != nil:
	case p.SMTP != nil && !p.SMTP.Active: // mail is off on purpose
	case p.SMTP != nil && !hasRelay:
		return fmt.Sprintf("project %q cannot send mail: its smtp_config has no host, and the defaults block has no "+
				"smtp_config", p.Project.Slug),
			"add a host here, or an smtp_config block with a host to the defaults block"
	case hasRelay && (p.SMTP != nil || service.MailEnabled):
		return fmt.Sprintf("project %q cannot send mail: neither it nor the smtp_config of the defaults block has a "+
				"from_email", p.Project.Slug),
			`add smtp_config { from_email = "…" } to the project`
	}
	return "", ""
}

// warnOfOverlaps warns of wildcards above names of other projects.
func warnOfOverlaps(files []File) (ds hclfile.Diagnostics) {
	type declared struct {
		file   *File
		slug   string
		domain *catalog.Domain
	}
	domains := map[string]declared{}
	for i := range files {
		for j := range files[i].Declared.Projects {
			p := &files[i].Declared.Projects[j]
			for k := range p.Domains {
				domains[p.Domains[k].Name] = declared{&files[i], p.Project.Slug, &p.Domains[k]}
			}
		}
	}
	below := map[string][]names.Lower{} // by wildcard
	for name, lower := range domains {
		for wildcard := range names.Above(name) {
			if upper, found := domains[wildcard]; found && upper.domain.ProjectID != lower.domain.ProjectID {
				below[wildcard] = append(below[wildcard], names.Lower{Name: name, Slug: lower.slug, File: lower.file.Display})
			}
		}
	}
	for wildcard, lower := range below {
		upper := domains[wildcard]
		ds = append(ds, names.Overlap(upper.file.positions(), wildcard, upper.domain.ProjectID, lower))
	}
	return ds
}

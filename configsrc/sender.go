package configsrc

import (
	"fmt"

	"fingerpost/configsrc/hclfile"
	"fingerpost/resolver/catalog"
)

// warnOfSenders warns of projects that mean to send mail through the relay of the defaults block and cannot: there is
// no relay, or nobody names the sender. It is no error, because the two files may come with different branches, and a
// project must not break when another file changes.
func warnOfSenders(files []CheckedFile) (ds hclfile.Diagnostics) {
	var defaults *catalog.Defaults
	for i := range files {
		if d := files[i].Declared.Defaults; d != nil {
			defaults = d
		}
	}
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
	hasRelay := defaults != nil && defaults.SMTP != nil
	switch {
	case catalog.SMTPInForce(p.SMTP, defaults) != nil:
	case p.SMTP != nil && !p.SMTP.Active: // mail is off on purpose
	case p.SMTP != nil && !hasRelay:
		return fmt.Sprintf("project %q cannot send mail: its smtp_config has no host, and the defaults block has no "+
				"smtp_config", p.Project.Slug),
			"add a host here, or an smtp_config block with a host to the defaults block"
	case hasRelay && (p.SMTP != nil || inForce(p, defaults).Service.MailEnabled):
		return fmt.Sprintf("project %q cannot send mail: neither it nor the smtp_config of the defaults block has a "+
				"from_email", p.Project.Slug),
			`add smtp_config { from_email = "…" } to the project`
	}
	return "", ""
}

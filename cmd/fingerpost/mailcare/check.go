package mailcare

import (
	"errors"
	"net/netip"
	"slices"

	"github.com/spf13/cobra"

	"fingerpost/api/client"
	"fingerpost/cmd/fingerpost/cli"
	"fingerpost/configsrc/offline"
	"fingerpost/configsrc/verify/authdns"
	"fingerpost/mailer/sender"
	"fingerpost/resolver/catalog"
)

// fromFiles asks DNS from here about the senders of the files. slug "": all.
func (f *checkFlags) fromFiles(cmd *cobra.Command, slug string, address netip.Addr) (all []checked, err error) {
	lookUp, allow, err := f.dns.Parse()
	if err != nil {
		return nil, err
	}
	o := authdns.Options{Allow: allow}
	if lookUp.IsValid() {
		o.Resolver = lookUp.String()
	}
	checker, err := authdns.New(o)
	if err != nil {
		return nil, err
	}
	files, err := offline.Check(cli.ConfigDir(cmd))
	if err != nil {
		return nil, err
	}
	senders, err := sendersIn(files, slug)
	if err != nil {
		return nil, err
	}
	var shared []catalog.Template // the default ones
	for _, d := range files.Declarations() {
		shared = append(shared, d.Templates...)
	}
	for _, p := range senders {
		of := sender.SenderOf(p.SMTP, hasCategory(shared) || hasCategory(p.Templates))
		of.Address = address
		dns, end := checker.Lookup(cmd.Context(), p.Project.Slug, checkTime)
		lines := sender.Examine(dns, of)
		end()
		if err := cmd.Context().Err(); err != nil {
			return nil, err
		}
		all = append(all, checked{p.Project.Slug, of.From,
			catalog.SenderResult{State: sender.StateOf(lines), Lines: lines, CheckedAt: now()}})
	}
	return all, nil
}

// hasCategory reports whether an active template of a list has a category.
func hasCategory(list []catalog.Template) bool {
	return slices.ContainsFunc(list, func(t catalog.Template) bool { return t.Active && t.Category != "" })
}

// sendersIn lists the projects of the files that have a sender, with the SMTP config in force.
func sendersIn(files *offline.Checked, slug string) (list []catalog.ProjectConfig, err error) {
	var defaults *catalog.Defaults
	for i := range files.Files {
		if d := files.Files[i].Declared.Defaults; d != nil {
			defaults = d
		}
	}
	found := false
	for _, p := range files.Projects() {
		if slug != "" && p.Project.Slug != slug {
			continue
		}
		found = true
		c := *p
		if c.SMTP = catalog.SMTPInForce(p.SMTP, defaults); c.SMTP != nil {
			list = append(list, c)
		}
	}
	switch {
	case slug != "" && !found:
		return nil, cli.No("there is no project %q in the good files", slug)
	case slug != "" && len(list) == 0:
		return nil, cli.No("project %q has no SMTP config with a sender", slug)
	}
	return list, nil
}

// byServer has a server check senders. slug "": all that the key covers.
func (f *checkFlags) byServer(cmd *cobra.Command, slug string, address netip.Addr) (all []checked, err error) {
	o, err := f.Options()
	if err != nil {
		return nil, err
	}
	server := client.New(o)
	ctx := cmd.Context()
	var projects []catalog.Project
	if slug != "" {
		p, err := server.ProjectBySlug(ctx, slug)
		if err != nil {
			return nil, err
		}
		projects = append(projects, p)
	} else if projects, err = server.Projects(ctx); err != nil {
		return nil, err
	}
	text := ""
	if address.IsValid() {
		text = address.String()
	}
	for i := range projects {
		r, err := server.CheckSender(ctx, projects[i].ID, text)
		if slug == "" && isUnconfigured(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, checked{Project: projects[i].Slug, SenderResult: r})
	}
	return all, nil
}

// isUnconfigured reports whether a project has no SMTP config.
func isUnconfigured(err error) bool {
	var refusal *client.Error
	return errors.As(err, &refusal) && refusal.Code == catalog.CodeSMTPNotConfigured
}

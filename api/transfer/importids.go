package transfer

import (
	"fmt"
	"slices"
	"strings"

	"fingerpost/api/client"
	"fingerpost/configsrc/hcledit"
	"fingerpost/mailer/template"
	"fingerpost/resolver/catalog"
)

// identify sets the project's uuid and id to those that the file will have.
func (im *Import) identify(p *catalog.ProjectConfig) {
	if p.Project.UUID == (catalog.UUID{}) {
		p.Project.UUID = catalog.DeriveProjectUUID(p.Project.Slug)
		im.foreign = append(im.foreign, fmt.Sprintf("project %s has no uuid that can be read", hcledit.Quote(p.Project.Slug)))
	}
	p.Project.ID = im.pinned(catalog.KindProject, p.Project.UUID, p.Project.ID, "project "+hcledit.Quote(p.Project.Slug))
}

// pinned returns the id that a file can give an object: the server's, if it follows from the uuid or can be in a line.
func (im *Import) pinned(kind catalog.Kind, uuid catalog.UUID, id int64, who string) int64 {
	derived := catalog.DeriveID(kind, uuid)
	if id == derived || id >= 1 && id <= catalog.MaxDeclaredID {
		return id
	}
	im.foreign = append(im.foreign, fmt.Sprintf("%s has the id %d, files can pin 1 to %d: it becomes %d", who, id,
		catalog.MaxDeclaredID, derived))
	return derived
}

// domains sets names and identities. The API returns a domain's id and not its uuid.
func (im *Import) domains(who string, f *client.Project) {
	p := &f.ProjectConfig
	primary := ""
	for i := range p.Domains {
		d := &p.Domains[i]
		d.ProjectID = p.Project.ID
		if owner, taken := im.owner[d.Name]; taken {
			im.problem("%s: domain %s belongs to project %s, too", who, hcledit.Quote(d.Name), hcledit.Quote(owner))
		}
		im.owner[d.Name] = p.Project.Slug
		if d.Primary && primary != "" {
			im.problem("%s: domains %s and %s are both primary, one may be", who, hcledit.Quote(primary), hcledit.Quote(d.Name))
		}
		if d.Primary {
			primary = d.Name
		}
		d.UUID = catalog.DeriveDomainUUID(p.Project.UUID, d.Name)
		d.ID = im.pinned(catalog.KindDomain, d.UUID, d.ID, "domain "+hcledit.Quote(d.Name))
	}
	// By name: an order that every server with the same domains agrees on. The primary domain comes first, because readers
	// look for it.
	slices.SortFunc(p.Domains, func(a, b catalog.Domain) int {
		if a.Primary != b.Primary {
			if a.Primary {
				return -1
			}
			return 1
		}
		return strings.Compare(a.Name, b.Name)
	})
}

func (im *Import) templates(who string, f *client.Project) {
	p := &f.ProjectConfig
	kept := p.Templates[:0]
	for _, t := range p.Templates {
		if f.Untold.Bodies(t.Code) {
			continue // the coverage reports it
		}
		im.report(who+": template "+hcledit.Quote(t.Code), template.Validate(&t))
		t.ProjectID = p.Project.ID
		kept = append(kept, im.template(t, p.Project.UUID))
	}
	p.Templates = kept
	sortTemplates(p.Templates)
	for i := 1; i < len(kept); i++ {
		if kept[i].Code == kept[i-1].Code {
			im.problem("%s: template %s is there twice", who, hcledit.Quote(kept[i].Code))
		}
	}
}

func (im *Import) template(t catalog.Template, project catalog.UUID) catalog.Template {
	t.UUID = catalog.DeriveTemplateUUID(project, t.Code)
	t.ID = im.pinned(catalog.KindTemplate, t.UUID, t.ID, "template "+hcledit.Quote(t.Code))
	return t
}

func sortTemplates(ts []catalog.Template) {
	slices.SortFunc(ts, func(a, b catalog.Template) int { return strings.Compare(a.Code, b.Code) })
}

// shared makes the file of the default templates.
func (im *Import) shared(ts []catalog.Template) {
	var kept []catalog.Template
	for _, t := range ts {
		if im.cover.untold.Bodies(t.Code) {
			continue
		}
		im.report("default template "+hcledit.Quote(t.Code), template.Validate(&t))
		kept = append(kept, im.template(t, catalog.UUID{}))
	}
	if len(im.Problems) > 0 || len(kept) == 0 {
		return
	}
	sortTemplates(kept)
	content, err := hcledit.WriteTemplates(kept)
	if err != nil {
		im.problem("default templates: %v", err)
		return
	}
	im.files[templatesFile] = content
}

// fillSecrets names a variable for each secret that the project must have and the API does not return.
func (im *Import) fillSecrets(f *client.Project) {
	p := &f.ProjectConfig
	note := func(block, attr, name string) {
		im.secrets = append(im.secrets,
			fmt.Sprintf(`%s.hcl: %s %s = env("%s"): set the variable where the server runs, or put in what "fingerpost secrets seal %s %s" prints`,
				p.Project.Slug, block, attr, name, p.Project.Slug, attr))
	}
	if f.JWTSecret {
		name := variable(p.Project.Slug, "JWT_SECRET")
		p.Auth.Token.JWTSecret = catalog.Secret{Source: catalog.SecretEnv, Ref: name}
		note("auth_settings", "jwt_secret", name)
	}
	switch {
	case p.SMTP == nil:
	case p.SMTP.Auth == catalog.AuthXOAUTH2:
		name := variable(p.Project.Slug, "OAUTH_CLIENT_SECRET")
		p.SMTP.OAuth.Secret = catalog.Secret{Source: catalog.SecretEnv, Ref: name}
		note("smtp_config", "oauth_client_secret", name)
	case p.SMTP.Username != "": // a server that requires a name requires a password
		name := variable(p.Project.Slug, "SMTP_PASSWORD")
		p.SMTP.Password = catalog.Secret{Source: catalog.SecretEnv, Ref: name}
		note("smtp_config", "password", name)
	}
}

// webhooks makes the file of the webhooks, with a variable for the secret of each.
func (im *Import) webhooks(list []catalog.Webhook) {
	before := len(im.Problems)
	text := ""
	for i := range list {
		w := &list[i]
		name := variable(w.Name, "WEBHOOK_SECRET")
		w.Secrets = []catalog.Secret{{Source: catalog.SecretEnv, Ref: name}}
		im.report("webhook "+hcledit.Quote(w.Name), w.Validate(nil))
		im.secrets = append(im.secrets, fmt.Sprintf(`%s: webhook "%s" secret = env("%s"): set the variable where the server runs, `+
			`or put in what "fingerpost secrets seal --webhook %s" prints`, webhooksFile, w.Name, name, w.Name))
		if text != "" {
			text += "\n"
		}
		if len(im.Problems) == before {
			text += hcledit.WebhookBlock(w)
		}
	}
	if len(im.Problems) == before && text != "" {
		im.files[webhooksFile] = []byte(text)
	}
}

// variable returns the name of an environment variable for a project or webhook. It is unique for each slug.
func variable(slug, what string) string {
	name := strings.ToUpper(strings.ReplaceAll(slug, "-", "_")) + "_" + what
	if name[0] >= '0' && name[0] <= '9' {
		return "_" + name
	}
	return name
}

// lost lists what the files lack of the server.
func (im *Import) lost() []string {
	out := slices.Clone(im.foreign)
	c := &im.cover
	if c.projects == 0 {
		return append(out, "the server has no projects that this key may see")
	}
	out = append(out, "keys, logins, inbound blocks, and the ids of settings and SMTP configs: no API tells the first "+
		"three, and files do not give the others")
	if c.flatless > 0 {
		out = append(out, fmt.Sprintf("jwt_*, refresh_token_*, session_timeout, password_*, sms_provider and "+
			"audit_retention_days of %s: the server does not tell them", catalog.Count(c.flatless, "project")))
	}
	if c.flatless < c.projects {
		out = append(out, "a jwt_secret shows only to a key with the permission secrets: check that each project that "+
			"needs one has it")
	}
	if c.mailless > 0 {
		out = append(out, fmt.Sprintf("SMTP config and templates of %s: there is no mail API for them",
			catalog.Count(c.mailless, "project")))
	}
	if c.bodiless > 0 {
		out = append(out, fmt.Sprintf("%s: the server has no call that tells their bodies",
			catalog.Count(c.bodiless, "template")))
	}
	return out
}

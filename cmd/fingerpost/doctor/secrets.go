package doctor

import (
	"context"
	"fmt"
	"iter"

	"fingerpost/configsrc/folder"
	"fingerpost/configsrc/offline"
	"fingerpost/configsrc/seal"
	"fingerpost/resolver/catalog"
)

// secrets opens the secrets of the files as serve would.
func (p *patient) secrets(ctx context.Context) (rs []Result) {
	if err := p.Files.SealKeyError; err != nil {
		rs = append(rs, failure("make it an age identity file that the service may read, or leave it out", "%v", err))
	}
	if p.running != nil {
		return p.withTold("secrets", append(rs, ok("the server has opened every secret that it has needed"))...)
	}
	if p.checked == nil {
		return rs
	}
	o := p.opener()
	all := 0
	bad := map[catalog.SecretSource][]string{}
	for s := range secretsOf(p.checked) {
		if ctx.Err() != nil {
			break
		}
		all++
		text, err := o.Open(s.secret, s.context)
		if err == nil && s.rules != nil {
			_, err = s.rules.Key(text)
		}
		if err != nil {
			bad[s.secret.Source] = append(bad[s.secret.Source], fmt.Sprintf("%s, %s: %v", s.owner, s.field, err))
		}
	}
	for _, kind := range []struct {
		of   catalog.SecretSource
		say  func(todo, format string, args ...any) Result
		todo string
	}{
		{catalog.SecretSealed, failure, "give the key that they are sealed for (--seal-key), or run " +
			"\"fingerpost secrets reseal\" where that key is"},
		{catalog.SecretFile, failure, "put the file into the config folder or --secrets-dir, readable for the service"},
		{catalog.SecretEnv, warning, "set the variable for the service, in /etc/fingerpost/fingerpost.env for example, and " +
			"run this with the same variables"},
	} {
		if list := bad[kind.of]; len(list) > 0 {
			rs = append(rs, kind.say(kind.todo, "%s of the files cannot be opened; the first: %s",
				catalog.Count(len(list), "secret"), list[0]))
		}
	}
	if rs == nil {
		rs = []Result{ok("%s of the files can be opened", catalog.Count(all, "secret"))}
	}
	return rs
}

// opener opens secrets as serve does.
func (p *patient) opener() *seal.Secrets {
	s := &seal.Secrets{Dir: p.Files.Config, SecretsDir: p.Files.SecretsDir, Identities: p.Files.Identities}
	if p.Git.On {
		s.Clone, _ = folder.FindClone(p.Files.Config) // a failure is that of git, too
	}
	return s
}

// A secret is one of the files.
type secret struct {
	owner, field, context string
	secret                catalog.Secret
	rules                 *catalog.TokenRules // of a public key; nil: it is a secret
}

// secretsOf yields the secrets of the files.
func secretsOf(c *offline.Checked) iter.Seq[secret] {
	return func(yield func(secret) bool) {
		for i := range c.Files {
			f := &c.Files[i]
			if d := f.Declared.Defaults; d != nil {
				if !smtpSecrets("the defaults block", catalog.UUID{}, d.SMTP, yield) ||
					d.Auth != nil && !keyFiles("the defaults block", catalog.UUID{}, &d.Auth.Rules, yield) {
					return
				}
			}
			for j := range f.Declared.Webhooks {
				w := &f.Declared.Webhooks[j]
				for _, s := range w.Secrets {
					if !yield(secret{fmt.Sprintf("webhook %q", w.Name), "secret", w.SecretContext(), s, nil}) {
						return
					}
				}
			}
			for j := range f.Declared.Inbounds {
				b := &f.Declared.Inbounds[j]
				for _, s := range b.Secrets {
					if !yield(secret{fmt.Sprintf("inbound %q", b.Name), "secret", b.SecretContext(), s, nil}) {
						return
					}
				}
			}
			for j := range f.Declared.Logins {
				if !loginSecrets(&f.Declared.Logins[j], yield) {
					return
				}
			}
			for j := range f.Declared.Projects {
				p := &f.Declared.Projects[j]
				owner, jwt := fmt.Sprintf("project %q", p.Project.Slug), p.Auth.Token.JWTSecret
				if jwt.Source != catalog.SecretNone &&
					!yield(secret{owner, "jwt_secret", seal.Context(p.Project.UUID, "jwt_secret"), jwt, nil}) {
					return
				}
				if !keyFiles(owner, p.Project.UUID, &p.Auth.Rules, yield) {
					return
				}
				if p.SMTP.HasServer() && !smtpSecrets(owner, p.Project.UUID, p.SMTP, yield) {
					return
				}
			}
		}
	}
}

func loginSecrets(l *catalog.Login, yield func(secret) bool) bool {
	owner := fmt.Sprintf("login %q", l.Name)
	if l.ClientSecret.Source != catalog.SecretNone &&
		!yield(secret{owner, "client_secret", l.SecretContext(), l.ClientSecret, nil}) {
		return false
	}
	ca := catalog.Secret{Source: catalog.SecretFile, Ref: l.CAFile}
	return l.CAFile == "" || yield(secret{owner, "ca_file", l.UUID.String() + "/ca_file", ca, nil})
}

// keyFiles yields the files of public keys, which are no secrets and are opened like them.
func keyFiles(owner string, project catalog.UUID, r *catalog.TokenRules, yield func(secret) bool) bool {
	for _, key := range r.Keys {
		path, is := catalog.FilePath(key)
		file := catalog.Secret{Source: catalog.SecretFile, Ref: path}
		if is && !yield(secret{owner, "jwt_keys", seal.Context(project, "jwt_keys"), file, r}) {
			return false
		}
	}
	return true
}

func smtpSecrets(owner string, project catalog.UUID, c *catalog.SMTPConfig, yield func(secret) bool) bool {
	if c == nil {
		return true
	}
	for _, f := range c.Secrets() {
		if s, attr := *f.Value.(*catalog.Secret), f.Attribute(); s.Source != catalog.SecretNone &&
			!yield(secret{owner, "smtp_config." + attr, c.SecretContext(project, attr), s, nil}) {
			return false
		}
	}
	ca := catalog.Secret{Source: catalog.SecretFile, Ref: c.CAFile}
	return c.CAFile == "" || yield(secret{owner, "smtp_config.ca_file", c.SecretContext(project, "ca_file"), ca, nil})
}

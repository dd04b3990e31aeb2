package doctor

import (
	"context"
	"fmt"

	"fingerpost/mailer/smtp"
	"fingerpost/resolver/catalog"
)

// A relay is an SMTP server of the files.
type relay struct {
	server smtp.Server // without credentials
	caFile string      // instead of server.CA
	owners []string    // whose mail goes there, with the file
}

// owner names the first of the owners.
func (r *relay) owner() string {
	if more := len(r.owners) - 1; more > 0 {
		return fmt.Sprintf("%s and %d more", r.owners[0], more)
	}
	return r.owners[0]
}

// relays are the SMTP servers of the files that take mail, each once.
func (p *patient) relays() (all []*relay) {
	if p.checked == nil {
		return nil
	}
	known := map[relayKey]*relay{}
	add := func(c *catalog.SMTPConfig, owner string) {
		if !c.HasServer() || !c.Active {
			return
		}
		server := smtp.Server{Host: c.Host, Port: c.EffectivePort(), SSL: c.SSLEnabled, TLS: c.TLSEnabled,
			EHLOName: c.EHLOName}
		key := relayKey{server, c.CAFile}
		if known[key] == nil {
			known[key] = &relay{server: server, caFile: c.CAFile}
			all = append(all, known[key])
		}
		known[key].owners = append(known[key].owners, owner)
	}
	for i := range p.checked.Files {
		f := &p.checked.Files[i]
		if d := f.Declared.Defaults; d != nil {
			add(d.SMTP, "the defaults block in "+f.Display)
		}
		for j := range f.Declared.Projects {
			project := &f.Declared.Projects[j]
			if project.Project.Status != catalog.StatusSuspended {
				add(project.SMTP, fmt.Sprintf("project %q in %s", project.Project.Slug, f.Display))
			}
		}
	}
	return all
}

type relayKey struct {
	server smtp.Server
	caFile string
}

// smtp connects to every relay, if that was asked for.
func (p *patient) smtp(ctx context.Context) []Result {
	all := p.relays()
	switch {
	case p.Mail.Keep:
		return []Result{warning("leave it out where people wait for their mail",
			"--mail-sink keeps every mail and sends none; no relay is asked")}
	case len(all) == 0:
		return nil
	case !p.SMTP:
		return []Result{ok("%s of the files, not asked: --smtp connects to each", catalog.Count(len(all), "relay"))}
	}
	transport := smtp.NewTransport(smtp.TransportOptions{Allow: p.Mail.Allow, HelloName: p.Mail.EHLOName,
		Limits: smtp.Limits{Connect: patience, Greeting: patience, TLS: patience, Command: patience}})
	defer transport.Close()
	secrets := p.opener()
	found := make([]Result, len(all))
	each(indexes(all), func(i int) {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		r := all[i]
		server := r.server
		if r.caFile != "" {
			ca, err := secrets.Open(catalog.Secret{Source: catalog.SecretFile, Ref: r.caFile}, "")
			if err != nil {
				found[i] = failure("put the file of the CA there, readable for the service", "relay of %s: %v", r.owner(), err)
				return
			}
			server.CA = ca
		}
		found[i] = r.result(transport.Reach(ctx, server))
	})
	return found
}

func indexes[T any](list []T) []int {
	all := make([]int, len(list))
	for i := range all {
		all[i] = i
	}
	return all
}

func (r *relay) result(out smtp.Outcome) Result {
	if out.Class == smtp.Accepted {
		return ok("%s answers; relay of %s", r.server, r.owner())
	}
	todo := "see that the relay runs and can be reached from here, or change the SMTP config"
	if len(out.Problems) > 0 {
		todo = fmt.Sprintf("see %s in its SMTP config: %s", catalog.Snake(out.Problems[0].Path), out.Problems[0].Message)
	}
	return failure(todo, "%s, relay of %s: %s %s", r.server, r.owner(), out.Message, out.Reply)
}

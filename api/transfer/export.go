package transfer

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"fingerpost/api/client"
	"fingerpost/configsrc/hcledit"
	"fingerpost/resolver/catalog"
)

// The results of an Action.
const (
	Planned = "planned"
	Done    = "done"
	Failed  = "failed"
	Skipped = "skipped" // a step before it failed
	Ignored = "ignored" // the server answered success and kept a value
)

// An Action is a change that is made on the server.
type Action struct {
	Change
	Result string `json:"result"`
	Error  string `json:"error,omitempty"`
}

// Exported is the result of an Export. Its JSON is part of "export --json".
type Exported struct {
	Summary      Tally    `json:"summary"` // of the actions done, or planned
	Failed       int      `json:"failed"`
	Actions      []Action `json:"actions"`
	OnlyOnServer []Change `json:"onlyOnServer"`
	NotExported  []string `json:"notExported"`
	Problems     []string `json:"problems"` // why nothing was sent
}

// NewExported returns an Exported whose JSON has empty lists.
func NewExported() Exported {
	return Exported{Actions: []Action{}, OnlyOnServer: []Change{}, NotExported: []string{}, Problems: []string{}}
}

// The choices of SMTP passwords to send.
const (
	NeededPasswords = "needed" // with a config that is new or goes to another server
	AllPasswords    = "all"
	NoPasswords     = "none"
)

// ExportOptions configure an Export.
type ExportOptions struct {
	Passwords string // NeededPasswords, AllPasswords or NoPasswords
	Remove    bool   // remove objects of the server that the files do not have
	Parallel  int    // how many projects are handled at once, at least 1
}

// A job is the work for one project.
type job struct {
	pair
	found   *client.Project // nil: it must be created
	changes []Change
	secrets map[string]string // of the SMTP config, opened, by field; those that are to be sent
	sealed  error             // why one of them could not be opened
}

// An Export changes a server to match the files: PlanExport makes one, OpenPasswords and OpenWebhookSecrets complete it,
// Send does it.
type Export struct {
	remote  *client.Client
	options ExportOptions
	want    *Tree
	out     Exported
	jobs    []*job
	// webhooks come after the projects that they list.
	webhooks       []*webhookJob
	webhooksUntold bool

	mu       sync.Mutex // guards mailless
	mailless int        // projects whose SMTP config or templates the server cannot take
}

// PlanExport reads the server and determines what to do, and the problems that prevent it.
func PlanExport(ctx context.Context, c *client.Client, want *Tree, o ExportOptions, progress Progress) (*Export,
	error) {
	e := &Export{remote: c, options: o, want: want, out: NewExported()}
	haves, err := c.Projects(ctx)
	if err != nil {
		return nil, err
	}
	pairs := pairUp(haves, want.Projects)
	owners := owners{}
	err = client.InOrder(ctx, o.Parallel, len(pairs), readPairs(c, pairs), func(i int, have *client.Project) error {
		progress.set(i+1, len(pairs))
		e.plan(&job{pair: pairs[i], found: have, secrets: map[string]string{}}, owners)
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, j := range e.jobs {
		e.out.Problems = append(e.out.Problems, owners.conflicts(j)...)
	}
	return e, e.planWebhooks(ctx)
}

// plan determines what to do for one project.
func (e *Export) plan(j *job, owners owners) {
	have := j.found
	j.changes, _ = compareProject(have, j.want, view{})
	if j.want == nil {
		j.changes = j.changes[:1] // everything else goes with its project
	}
	owners.noteOwner(j, e.options.Remove)
	if !e.options.Remove {
		j.changes = slices.DeleteFunc(j.changes, func(c Change) bool {
			if c.Action == Removed {
				e.out.OnlyOnServer = append(e.out.OnlyOnServer, c)
			}
			return c.Action == Removed
		})
	}
	if len(j.changes) > 0 || e.options.Passwords == AllPasswords && j.want != nil && j.want.SMTP != nil {
		e.jobs = append(e.jobs, j)
	} else {
		j.found = nil // not needed any more
	}
	if have != nil && !have.Mail && j.want != nil && mails(j.want) {
		e.mailless++
	}
}

// Problems returns why nothing may be sent.
func (e *Export) Problems() []string { return e.out.Problems }

// Planned returns what Send would do: all actions are Planned.
func (e *Export) Planned() Exported {
	for _, j := range e.jobs {
		for _, c := range j.changes {
			e.out.Actions = append(e.out.Actions, Action{Change: c, Result: Planned})
		}
	}
	for _, j := range e.webhooks {
		e.out.Actions = append(e.out.Actions, Action{Change: j.change, Result: Planned})
	}
	return e.result()
}

func (e *Export) result() Exported {
	var done []Change
	for _, a := range e.out.Actions {
		switch a.Result {
		case Done, Planned:
			done = append(done, a.Change)
		case Failed, Skipped:
			e.out.Failed++
		}
	}
	e.out.Summary, e.out.NotExported = TallyOf(done), nonNil(e.unsayable())
	return e.out
}

// mails reports whether a project has configuration for the mail API.
func mails(p *catalog.ProjectConfig) bool { return p.SMTP != nil || len(p.Templates) > 0 }

// owners maps a domain to the project of the server that keeps it through an export.
type owners map[string]string

func (o owners) noteOwner(j *job, remove bool) {
	if j.found == nil {
		return
	}
	for i := range j.found.Domains {
		name := j.found.Domains[i].Name
		freed := j.want == nil || !slices.ContainsFunc(j.want.Domains, func(d catalog.Domain) bool { return d.Name == name })
		if !(freed && remove) {
			o[name] = j.found.Project.Slug
		}
	}
}

// conflicts lists the domains that a job adds and another project has.
func (o owners) conflicts(j *job) (problems []string) {
	for _, c := range j.changes {
		if c.Kind != catalog.KindDomain || c.Action != Added {
			continue
		}
		if owner, taken := o[c.Name]; taken && (j.found == nil || owner != j.found.Project.Slug) {
			problems = append(problems,
				fmt.Sprintf("domain %s of project %s belongs to project %s on the server, which does not have it in the files: "+
					"--delete takes it away there",
					hcledit.Quote(c.Name), hcledit.Quote(j.slug()), hcledit.Quote(client.Printable(owner))))
		}
	}
	return problems
}

// unsayable lists what the files declare and an export does not send: no API call takes it, or it has a secret of its
// own.
func (e *Export) unsayable() (out []string) {
	add := func(n int, noun, format string) {
		if n > 0 {
			out = append(out, fmt.Sprintf(format, catalog.Count(n, noun)))
		}
	}
	d := e.want
	add(len(d.Keys), "key", "%s")
	add(len(d.Edges), "edge", "%s")
	if e.webhooksUntold && len(d.Webhooks) > 0 {
		out = append(out, webhooksUntold)
	}
	add(len(d.Logins), "login", "%s")
	add(len(d.Inbounds), "inbound block", "%s")
	add(len(d.Templates), "default template", "%s")
	if d.Sealing != nil {
		out = append(out, "the sealing block")
	}
	var token, service, secrets, more, senders int
	for _, p := range d.Projects {
		auth := p.Auth
		if auth.Token.JWTSecret.Source != catalog.SecretNone {
			secrets++
		}
		if setsFlat(catalog.KindAuthSettings, auth.Fields()) {
			token++
		}
		if setsFlat(catalog.KindServiceSettings, p.Service.Fields()) {
			service++
		}
		if p.SMTP != nil && p.SMTP.CAFile != "" {
			more++
		}
		if p.SMTP != nil && !p.SMTP.HasServer() {
			senders++
		}
	}
	add(secrets, "project", "jwt_secret of %s")
	add(token, "project", "jwt_*, refresh_token_*, session_timeout or password_* of %s")
	add(service, "project", "sms_provider or audit_retention_days of %s")
	add(more, "project", "ca_file of %s")
	add(senders, "project", "the smtp_config without a host of %s")
	add(e.mailless, "project", "SMTP config and templates of %s: there is no mail API for them")
	return out
}

// setsFlat reports whether settings have a value other than the built-in one in what no call accepts.
func setsFlat(kind catalog.Kind, fields []catalog.Field) bool {
	flat := client.FlatFields(kind)
	return slices.ContainsFunc(catalog.FieldChanges(catalog.NewFields(kind), fields), func(f catalog.FieldChange) bool {
		return slices.Contains(flat, f.Field)
	})
}

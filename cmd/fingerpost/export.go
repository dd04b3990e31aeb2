package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"fingerpost/configsrc"
	"fingerpost/configsrc/hcledit"
	"fingerpost/configsrc/hclfile"
	"fingerpost/configsrc/seal"
	"fingerpost/resolver/catalog"
)

// exportFlags are the flags of export.
type exportFlags struct {
	remoteFlags
	sealKey, secretsDir    string
	passwords              string
	dryRun, remove, asJSON bool
}

func newExport(t terminal) *cobra.Command {
	var f exportFlags
	cmd := &cobra.Command{
		Use:   "export --url URL --key KEY",
		Short: "Bring a server to what the files say, over its API",
		Long: `Creates and updates on any service that speaks the platform API, and the mail API where there is one, what differs from the
files. Projects are found by uuid, then by slug; domains by name, then by id; templates by code. A second run does nothing.

What only the server has is listed and left alone, unless --delete says to remove it. All that can be known to go wrong is
reported before anything is sent. Where one project fails, the others go on.

Passwords cannot be compared, so they are sent with an SMTP config that is new or goes to another server (--passwords needed),
with each one (all) or never (none); env(), file() and sealed() values are opened here. What no API has a call for is listed
on stderr: keys, default templates, defaults and sealing blocks, jwt_secret and what else only files can say. uuid and id are
the server's to give.

The key needs the permissions read and write on every project. Exit codes: 0 done; 1 nothing was sent, because of problems
that are listed, or the server ignored a field; 2 wrong usage; 3 a request failed, or the server could not be asked.

--json prints one document:
  {"valid": true, "dryRun": false, "against": "https://platform.example",
   "summary": {"add": 2, "change": 0, "remove": 0}, "failed": 0,
   "actions": [{"action": "add", "kind": "project", "project": "acme", "name": "acme", "fields": [], "result": "done"}],
   "onlyOnServer": [], "notExported": ["1 key"], "problems": [], "diagnostics": []}
An action is a change as in "plan --json", with result planned, done, failed, skipped (a step before it failed) or ignored
(the server answered success and kept a value), and an error for the last three. With problems, nothing was sent.`,
		Example: `  FINGERPOST_KEY=… fingerpost export --url https://platform.example --dry-run
  FINGERPOST_KEY=… fingerpost export --url https://platform.example
  FINGERPOST_KEY=… fingerpost export --url https://platform.example --delete   # removes what the files do not have`,
		Args: cobra.NoArgs,
		RunE: command(func(cmd *cobra.Command, _ []string) error {
			if f.url == "" {
				return usage("export needs --url (or FINGERPOST_URL)")
			}
			if !slices.Contains([]string{"needed", "all", "none"}, f.passwords) {
				return usage("--passwords must be needed, all or none")
			}
			ctx, stop := interruptible(cmd.Context())
			defer stop()
			return runExport(ctx, t, configDir(cmd), f)
		}),
	}
	f.add(cmd, "read and write")
	fl := cmd.Flags()
	fl.BoolVar(&f.dryRun, "dry-run", false, "send nothing, show what would be done")
	fl.BoolVar(&f.remove, "delete", false, "remove from the server what the files do not have")
	fl.StringVar(&f.passwords, "passwords", "needed", "which SMTP passwords are sent: needed, all or none")
	fl.StringVar(&f.sealKey, "seal-key", "", "age identity that opens sealed passwords (default "+defaultSealKey()+")")
	fl.StringVar(&f.secretsDir, "secrets-dir", "", "where file() may find passwords outside the config folder")
	fl.BoolVar(&f.asJSON, "json", false, "one JSON document on stdout")
	return cmd
}

// What came of an action.
const (
	resultPlanned = "planned"
	resultDone    = "done"
	resultFailed  = "failed"
	resultSkipped = "skipped"
	resultIgnored = "ignored"
)

// An action is a change that is made on the server.
type action struct {
	change
	Result string `json:"result"`
	Error  string `json:"error,omitempty"`
}

// exported is what export --json prints.
type exported struct {
	Valid        bool                `json:"valid"`
	DryRun       bool                `json:"dryRun"`
	Against      string              `json:"against"`
	Summary      tally               `json:"summary"` // of what was done, or would be
	Failed       int                 `json:"failed"`
	Actions      []action            `json:"actions"`
	OnlyOnServer []change            `json:"onlyOnServer"`
	NotExported  []string            `json:"notExported"`
	Problems     []string            `json:"problems"` // why nothing was sent
	Diagnostics  hclfile.Diagnostics `json:"diagnostics"`
}

// A job is what is to be done for one project.
type job struct {
	pair
	found    *found // nil: it has to be made
	changes  []change
	password string // opened, where it is to be sent
	sealed   error  // why the password could not be opened
}

func runExport(ctx context.Context, t terminal, dir string, f exportFlags) error {
	out := exported{DryRun: f.dryRun, Against: f.url, Actions: []action{}, OnlyOnServer: []change{}, NotExported: []string{},
		Problems: []string{}, Diagnostics: hclfile.Diagnostics{}}
	want, diags, err := loadDesired(t, dir)
	if errors.Is(err, errInvalid) {
		return refuseInvalid(t, diags, f.asJSON, func(ds hclfile.Diagnostics) any { out.Diagnostics = ds; return out })
	}
	if err != nil {
		return err
	}
	out.Valid = true
	r, err := f.connect(t)
	if err != nil {
		return err
	}
	if f.remove && len(want.projects) == 0 {
		return no("%s declares no project, and --delete would remove all that the server has: nothing was sent", dir)
	}
	e := &exporter{remote: r, flags: f, want: want, out: &out}
	if err := e.prepare(ctx, dir); err != nil {
		return err
	}
	if len(e.problems) > 0 {
		if out.Problems = e.problems; f.asJSON {
			if err := printJSON(t.out, out); err != nil {
				return err
			}
		}
		for _, p := range e.problems {
			fmt.Fprintln(t.err, p)
		}
		return no("%s: nothing was sent", count(len(e.problems), "problem"))
	}
	if f.dryRun {
		e.foretell()
		return e.finish(t, nil)
	}
	// Nothing has been sent up to here.
	return e.finish(t, e.execute(ctx, t))
}

// An exporter brings a server to what the files say.
type exporter struct {
	remote   *remote
	flags    exportFlags
	want     *desired
	out      *exported
	jobs     []*job
	problems []string

	mu       sync.Mutex // guards mailless
	mailless int        // projects whose SMTP config or templates have nowhere to go
}

// prepare reads the server and finds out what is to be done, and what stands in the way.
func (e *exporter) prepare(ctx context.Context, dir string) error {
	haves, err := e.remote.projects(ctx)
	if err != nil {
		return err
	}
	pairs := pairUp(haves, e.want.projects)
	owners := owners{}
	get := func(ctx context.Context, i int) (*found, error) {
		if pairs[i].have == nil {
			return nil, nil
		}
		return e.remote.project(ctx, pairs[i].have)
	}
	read := e.remote.t.progress("projects read")
	defer read.end()
	err = inOrder(ctx, e.remote.parallel, len(pairs), get, func(i int, have *found) error {
		read.set(i+1, len(pairs))
		j := &job{pair: pairs[i], found: have}
		j.changes, _ = compareProject(have, j.want, apiView)
		if j.want == nil {
			j.changes = j.changes[:1] // all else goes with its project
		}
		owners.note(j, e.flags.remove)
		if !e.flags.remove {
			j.changes = slices.DeleteFunc(j.changes, func(c change) bool {
				if c.Action == actionRemove {
					e.out.OnlyOnServer = append(e.out.OnlyOnServer, c)
				}
				return c.Action == actionRemove
			})
		}
		if len(j.changes) > 0 || e.flags.passwords == "all" && j.want != nil && j.want.SMTP != nil {
			e.jobs = append(e.jobs, j)
		} else {
			j.found = nil // not needed any more
		}
		if have != nil && !have.mail && j.want != nil && mails(j.want) {
			e.mailless++
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, j := range e.jobs {
		e.problems = append(e.problems, owners.conflicts(j)...)
	}
	if e.flags.dryRun {
		return nil
	}
	return e.openPasswords(dir)
}

func mails(p *catalog.ProjectConfig) bool { return p.SMTP != nil || len(p.Templates) > 0 }

// apiView is what the API can set.
var apiView = view{project: projectFields, domain: domainFields, service: serviceFields, auth: authFields, smtp: smtpFields, template: templateFields}

// owners tells which project of the server keeps a domain through an export.
type owners map[string]string

func (o owners) note(j *job, remove bool) {
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

// conflicts lists the domains that a job is to add and another project has.
func (o owners) conflicts(j *job) (problems []string) {
	for _, c := range j.changes {
		if c.Kind != catalog.KindDomain || c.Action != actionAdd {
			continue
		}
		if owner, taken := o[c.Name]; taken && (j.found == nil || owner != j.found.Project.Slug) {
			problems = append(problems, fmt.Sprintf("domain %s of project %s belongs to project %s on the server, which does not have it in the files: --delete takes it away there",
				hcledit.Quote(c.Name), hcledit.Quote(j.slug()), hcledit.Quote(printable(owner))))
		}
	}
	return problems
}

// openPasswords opens those that are to be sent. It is a problem where one cannot be and the mail API is there to ask for
// it; where nobody knows yet whether it is, the step itself fails.
func (e *exporter) openPasswords(dir string) error {
	secrets := &configsrc.Secrets{Dir: dir, SecretsDir: e.flags.secretsDir}
	ids, err := openSealKey(e.flags.sealKey)
	if err != nil {
		return err
	}
	secrets.Identities = ids
	for _, j := range e.jobs {
		if !e.needsPassword(j) {
			continue
		}
		secret := j.want.SMTP.Password
		j.password, j.sealed = secrets.Open(secret, seal.Context(j.want.Project.UUID, "password"))
		if j.sealed == nil {
			e.remote.mail.veil.add(j.password)
			continue
		}
		j.sealed = fmt.Errorf("the password of smtp_config of project %s cannot be opened: %w (--passwords none sends the rest without)",
			hcledit.Quote(j.slug()), j.sealed)
		if e.remote.mailAnswers.Load() {
			e.problems = append(e.problems, j.sealed.Error())
		}
	}
	return nil
}

// destination are the fields to which a stored password is bound (contract http.md 4).
var destination = []string{"host", "port", "username", "ssl_enabled", "tls_enabled"}

func (e *exporter) needsPassword(j *job) bool {
	if e.remote.mail == nil || j.want == nil || j.want.SMTP == nil || j.want.SMTP.Password.Source == catalog.SecretNone ||
		j.found != nil && !j.found.mail || e.flags.passwords == "none" {
		return false
	}
	if e.flags.passwords == "all" {
		return true
	}
	return slices.ContainsFunc(j.changes, func(c change) bool {
		return c.Kind == catalog.KindSMTPConfig && (c.Action == actionAdd ||
			slices.ContainsFunc(c.Fields, func(f fieldChange) bool { return slices.Contains(destination, f.Field) }))
	})
}

// foretell turns the changes into planned actions.
func (e *exporter) foretell() {
	for _, j := range e.jobs {
		for _, c := range j.changes {
			e.out.Actions = append(e.out.Actions, action{change: c, Result: resultPlanned})
		}
	}
}

// unsayable lists what the files say and no call of the API takes.
func (e *exporter) unsayable() (out []string) {
	add := func(n int, noun, format string) {
		if n > 0 {
			out = append(out, fmt.Sprintf(format, count(n, noun)))
		}
	}
	d := e.want
	add(len(d.keys), "key", "%s")
	add(len(d.templates), "default template", "%s")
	if d.sealing != nil {
		out = append(out, "the sealing block")
	}
	var token, service, secrets, more int
	for _, p := range d.projects {
		auth, builtin := p.Auth, catalog.NewAuthSettings()
		if auth.Token.JWTSecret.Source != catalog.SecretNone {
			secrets++
		}
		if len(diffFields(builtin.Fields(), auth.Fields(), flatAuthFields)) > 0 {
			token++
		}
		if plain := catalog.NewServiceSettings(); len(diffFields(plain.Fields(), p.Service.Fields(), flatServiceFields)) > 0 {
			service++
		}
		if p.SMTP != nil && p.SMTP.CAFile != "" {
			more++
		}
	}
	add(secrets, "project", "jwt_secret of %s")
	add(token, "project", "jwt_*, refresh_token_*, session_timeout or password_* of %s")
	add(service, "project", "sms_provider or audit_retention_days of %s")
	add(more, "project", "ca_file of %s")
	add(e.mailless, "project", "SMTP config and templates of %s: there is no mail API for them")
	return out
}

// finish prints what came of it.
func (e *exporter) finish(t terminal, interrupted error) error {
	var done []change
	ignored := 0
	for _, a := range e.out.Actions {
		switch a.Result {
		case resultDone, resultPlanned:
			done = append(done, a.change)
		case resultFailed, resultSkipped:
			e.out.Failed++
		case resultIgnored:
			ignored++
		}
	}
	e.out.Summary, e.out.NotExported = tallyOf(done), nonNil(e.unsayable())
	if e.flags.asJSON {
		if err := printJSON(t.out, e.out); err != nil {
			return err
		}
	} else {
		e.print(t)
	}
	switch {
	case interrupted != nil:
		return fmt.Errorf("%w: the same command does the rest", interrupted)
	case e.out.Failed > 0:
		return &exitError{exitFailed, fmt.Errorf("%s not done; what is done stays, and the same command tries the rest", count(e.out.Failed, "action"))}
	case ignored > 0:
		return no("the server ignored %s", count(ignored, "action"))
	}
	return nil
}

func (e *exporter) print(t terminal) {
	if e.flags.dryRun {
		var changes []change
		for _, a := range e.out.Actions {
			changes = append(changes, a.change)
		}
		_ = writeChanges(t.out, changes, colour(t.out))
	}
	word := "export"
	if e.flags.dryRun {
		word = "export would be"
	}
	if len(e.out.Actions) == 0 {
		fmt.Fprintf(t.out, "no changes: %s has what the files say\n", e.out.Against)
	} else {
		fmt.Fprintf(t.out, "%s: %s\n", word, strings.NewReplacer("to add", "added", "to change", "changed", "to remove", "removed").Replace(e.out.Summary.String()))
	}
	for _, c := range e.out.OnlyOnServer {
		what := c.title()
		if c.Kind != catalog.KindProject {
			what += " of project " + hcledit.Quote(c.Project)
		}
		fmt.Fprintf(t.err, "only on the server, left alone: %s\n", what)
	}
	for _, text := range e.out.NotExported {
		fmt.Fprintf(t.err, "not exported: %s\n", text)
	}
}

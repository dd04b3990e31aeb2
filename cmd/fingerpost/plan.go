package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/spf13/cobra"

	"fingerpost/api/client"
	"fingerpost/configsrc/hclfile"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

// planFlags are the flags of plan.
type planFlags struct {
	remoteFlags
	data        string
	ids, asJSON bool
}

func newPlan(t terminal) *cobra.Command {
	var f planFlags
	cmd := &cobra.Command{
		Use:   "plan [--url URL --key KEY | --data DIR]",
		Short: "Show what would change if these files replaced what a server has",
		Long: `Compares the files with a running server (--url), over its API, or with the store of one that does not run (--data), and
changes nothing on either side. It prints what would be added (+), changed (~) and removed (-); a secret that differs is
shown as changed, never with a value.

Over the API only what it tells can be compared; what it does not tell is listed on stderr. uuid and id are compared with
--ids: leave it out for a server that gave out its own. The key needs the permission read (and mail's calls read, too).

Exit codes: 0 no changes; 1 changes, or files with errors ("valid": false in JSON); 2 wrong usage; 3 could not compare.

--json prints one document:
  {"valid": true, "changed": true, "against": "https://config.example",
   "summary": {"add": 1, "change": 1, "remove": 0},
   "changes": [{"action": "change", "kind": "auth_settings", "project": "acme",
                "fields": [{"field": "password_min_length", "old": 10, "new": 12},
                           {"field": "jwt_secret", "old": null, "new": null, "secret": true}]}],
   "renumbered": 0, "notCompared": ["keys: …"], "diagnostics": []}
kind is the block's name in the files; old and new are text, numbers, true, false or null; "renumbered" counts objects
whose uuid or id differ but were not compared; "diagnostics" are those of "validate --json".`,
		Example: `  FINGERPOST_KEY=fpk_… fingerpost plan --url https://config.example
  fingerpost plan --data .fingerpost          # the server must not run
  fingerpost plan --url https://config.example --json | jq '.changes[] | select(.action == "remove")'`,
		Args: cobra.NoArgs,
		RunE: command(func(cmd *cobra.Command, _ []string) error {
			if given(cmd, "data") {
				if given(cmd, "url") {
					return usage("give --url or --data, not both")
				}
				f.url = ""
			}
			ctx, stop := interruptible(cmd.Context())
			defer stop()
			return runPlan(ctx, t, configDir(cmd), f)
		}),
	}
	f.add(cmd, "read")
	cmd.Flags().StringVar(&f.data, "data", ".fingerpost", "the store's folder of a server that does not run; taken where there is no --url")
	cmd.Flags().BoolVar(&f.ids, "ids", false, "with --url: count differing uuids and ids as changes")
	cmd.Flags().BoolVar(&f.asJSON, "json", false, "one JSON document on stdout")
	return cmd
}

// planned is what plan --json prints.
type planned struct {
	Valid       bool                `json:"valid"`
	Changed     bool                `json:"changed"`
	Against     string              `json:"against"`
	Summary     tally               `json:"summary"`
	Changes     []change            `json:"changes"`
	Renumbered  int                 `json:"renumbered"`
	NotCompared []string            `json:"notCompared"`
	Diagnostics hclfile.Diagnostics `json:"diagnostics"`
}

func runPlan(ctx context.Context, t terminal, dir string, f planFlags) error {
	p := planned{Against: f.data, Changes: []change{}, NotCompared: []string{}, Diagnostics: hclfile.Diagnostics{}}
	if f.url != "" {
		p.Against = f.url
	}
	want, diags, err := loadDesired(t, dir)
	if errors.Is(err, errInvalid) {
		return refuseInvalid(t, diags, f.asJSON, func(ds hclfile.Diagnostics) any { p.Diagnostics = ds; return p })
	}
	if err != nil {
		return err
	}
	p.Valid = true
	if f.url != "" {
		err = p.compareRemote(ctx, t, f, want)
	} else {
		err = p.compareStored(ctx, f.data, want)
	}
	if err != nil {
		return err
	}
	p.Summary, p.Changed = tallyOf(p.Changes), len(p.Changes) > 0
	return p.print(t, f)
}

// refuseInvalid prints the problems of the files and ends the command.
func refuseInvalid(t terminal, ds hclfile.Diagnostics, asJSON bool, document func(hclfile.Diagnostics) any) error {
	if asJSON {
		if err := printJSON(t.out, document(ds)); err != nil {
			return err
		}
	} else if err := ds.WriteText(t.err, colour(t.err)); err != nil {
		return err
	}
	return errInvalid
}

func (p *planned) print(t terminal, f planFlags) error {
	if f.asJSON {
		if err := printJSON(t.out, p); err != nil {
			return err
		}
	} else {
		if err := writeChanges(t.out, p.Changes, colour(t.out)); err != nil {
			return err
		}
		if p.Changed {
			fmt.Fprintf(t.out, "plan: %s\n", p.Summary)
		} else {
			fmt.Fprintf(t.out, "no changes: the files say what %s has\n", p.Against)
		}
		for _, text := range p.NotCompared {
			fmt.Fprintf(t.err, "not compared: %s\n", text)
		}
		if p.Renumbered > 0 {
			fmt.Fprintf(t.err, "%s on the server have another uuid or id than these files give them (--ids shows which)\n", count(p.Renumbered, "object"))
		}
	}
	if p.Changed {
		return errNot
	}
	return nil
}

// compareRemote compares with a running server.
func (p *planned) compareRemote(ctx context.Context, t terminal, f planFlags, want *desired) error {
	r, err := f.connect()
	if err != nil {
		return err
	}
	haves, err := r.Projects(ctx)
	if err != nil {
		return err
	}
	pairs := pairUp(haves, want.projects)
	var c coverage
	get := func(ctx context.Context, i int) (*client.Project, error) {
		if pairs[i].have == nil {
			return nil, nil
		}
		return r.Project(ctx, pairs[i].have)
	}
	read := t.progress("projects read")
	defer read.end()
	err = client.InOrder(ctx, f.parallel, len(pairs), get, func(i int, have *client.Project) error {
		read.set(i+1, len(pairs))
		v := apiView()
		if have != nil {
			c.add(have)
			v = seenBy(have, f.ids)
		}
		changes, renumbered := compareProject(have, pairs[i].want, v)
		p.Changes = append(p.Changes, changes...)
		p.Renumbered += renumbered
		return nil
	})
	if err != nil {
		return err
	}
	if c.shared != nil {
		d := comparison{view: view{template: client.Fields(catalog.KindTemplate), ids: f.ids}}
		d.templates(c.shared, want.templates, c.untold)
		p.Changes = append(p.Changes, d.changes...)
		p.Renumbered += d.renumbered
	}
	p.NotCompared = c.blind()
	return nil
}

// coverage gathers what a server told of its projects.
type coverage struct {
	projects, flatless, mailless int
	untold                       client.Untold // of the default templates
	bodiless                     int
	ageless                      bool               // a template came without maxAge
	shared                       []catalog.Template // the default templates; nil: unknown
}

func (c *coverage) add(f *client.Project) {
	c.projects++
	if !f.Flat {
		c.flatless++
	}
	if !f.Mail {
		c.mailless++
	} else if c.shared == nil {
		c.shared, c.untold = slices.Concat(f.Shared, []catalog.Template{}), f.Untold
		if c.shared == nil {
			c.shared = []catalog.Template{}
		}
	}
	c.bodiless += f.Untold.Bodiless()
	c.ageless = c.ageless || len(f.Untold) > 0
}

// blind says what could not be compared.
func (c *coverage) blind() []string {
	out := []string{"keys, the defaults and sealing blocks, secrets and ca_file: no API tells them"}
	if c.ageless {
		out = append(out, "max_age of templates: the server does not tell it")
	}
	if c.flatless > 0 {
		out = append(out, fmt.Sprintf("jwt_*, refresh_token_*, session_timeout, password_*, sms_provider and audit_retention_days of %s: they show through an active domain of a project that is not suspended, where the server has the flat form of resolve",
			count(c.flatless, "project")))
	}
	if c.mailless > 0 || c.projects == 0 {
		out = append(out, fmt.Sprintf("SMTP config and templates of %s: there is no mail API for them", count(c.mailless, "project")))
	}
	if c.bodiless > 0 {
		out = append(out, fmt.Sprintf("the bodies of %s: the server has no call that tells them", count(c.bodiless, "template")))
	}
	return out
}

// compareStored compares with the store of a server that does not run.
func (p *planned) compareStored(ctx context.Context, dir string, want *desired) error {
	s, err := resolver.OpenStored(dir, slog.New(slog.DiscardHandler))
	if err != nil {
		return fmt.Errorf("%w (--data reads the store of a server that does not run; compare with one that runs by --url)", err)
	}
	defer s.Close()
	haves, err := s.Projects()
	if err != nil {
		return err
	}
	for _, pair := range pairUp(haves, want.projects) {
		if err := ctx.Err(); err != nil {
			return err
		}
		var have *client.Project
		if pair.have != nil {
			config, err := s.Project(pair.have.ID)
			if err != nil {
				return err
			}
			if config.SMTP != nil {
				config.SMTP.Port = config.SMTP.EffectivePort()
			}
			have = &client.Project{ProjectConfig: *config, Mail: true}
		}
		changes, _ := compareProject(have, pair.want, everything)
		p.Changes = append(p.Changes, changes...)
	}
	return p.compareRest(s, want)
}

// compareRest compares what stands outside projects.
func (p *planned) compareRest(s *resolver.Stored, want *desired) error {
	templates, err1 := s.Templates(0)
	keys, err2 := s.Keys()
	defaults, err3 := s.Defaults()
	sealing, err4 := s.Sealing()
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return err
	}
	c := comparison{view: everything}
	c.templates(templates, want.templates, nil)
	p.Changes = slices.Concat(p.Changes, c.changes, compareDefaults(defaults, want.defaults), compareKeys(keys, want.keys),
		compareSealing(sealing, want.sealing))
	return nil
}

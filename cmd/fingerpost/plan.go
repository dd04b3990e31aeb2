package main

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"fingerpost/api/transfer"
	"fingerpost/cmd/fingerpost/cli"
	"fingerpost/resolver/catalog"
	"fingerpost/resolver/datadir"
)

// planFlags are the flags of plan.
type planFlags struct {
	cli.RemoteFlags
	data, base  string
	ids, asJSON bool
	allows      cli.AllowFlags
}

func newPlan(t cli.Terminal) *cobra.Command {
	var f planFlags
	cmd := &cobra.Command{
		Use:   "plan [--url URL --key KEY | --data DIR | --base REV]",
		Short: "Show what would change if these files replaced what a server has",
		Long: `Compares the files with a running server (--url), over its API, or with the store of one that does not run (--data), and
changes nothing on either side. It prints what would be added (+), changed (~) and removed (-); a secret that differs is
shown as changed, never with a value.

With --base REV the files are compared with a revision in git, without a server: what a pull request would change. They are
checked as by a server that runs on that revision, so a renamed slug that would become a new project is found.

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
  fingerpost plan --base origin/main          # in CI of a pull request
  fingerpost plan --data .fingerpost          # the server must not run
  fingerpost plan --url https://config.example --json | jq '.changes[] | select(.action == "remove")'`,
		Args: cobra.NoArgs,
		RunE: cli.Interruptible(func(cmd *cobra.Command, _ []string) error {
			if cli.Given(cmd, "base") {
				if cli.Given(cmd, "data") || cli.Given(cmd, "url") || cli.Given(cmd, "ids") {
					return cli.Usage("--base compares with a revision in git: leave out --url, --data and --ids")
				}
				return planBase(cmd.Context(), t, cli.ConfigDir(cmd), f)
			}
			if cli.Given(cmd, "data") {
				if cli.Given(cmd, "url") {
					return cli.Usage("give --url or --data, not both")
				}
				f.URL = ""
			}
			return runPlan(cmd.Context(), t, cli.ConfigDir(cmd), f)
		}),
	}
	f.Add(cmd, "read")
	cmd.Flags().StringVar(&f.data, "data", ".fingerpost",
		"folder of the store of a server that does not run; used without --url")
	cmd.Flags().StringVar(&f.base, "base", "", "branch, tag or commit whose files are compared, such as origin/main")
	cmd.Flags().BoolVar(&f.ids, "ids", false, "count differing uuids and ids as changes, with --url")
	f.allows.Add(cmd.Flags())
	cmd.Flags().BoolVar(&f.asJSON, "json", false, "print one JSON document on stdout")
	return cmd
}

// planned is what plan prints.
type planned struct{ transfer.Document }

func runPlan(ctx context.Context, t cli.Terminal, dir string, f planFlags) error {
	p := planned{transfer.NewDocument(f.data)}
	if f.URL != "" {
		p.Against = f.URL
	}
	allow, err := f.allows.Parse()
	if err != nil {
		return err
	}
	want, err := loadTree(t, dir, allow, f.asJSON, &p, &p.Diagnostics)
	if err != nil {
		return err
	}
	if f.URL != "" {
		p.Plan, err = planServer(ctx, t, f, want)
	} else {
		p.Plan, err = planStore(ctx, f.data, want)
	}
	if err != nil {
		return err
	}
	p.Complete()
	return p.print(t, f)
}

func planServer(ctx context.Context, t cli.Terminal, f planFlags, want *transfer.Tree) (transfer.Plan, error) {
	c, err := f.Connect()
	if err != nil {
		return transfer.Plan{}, err
	}
	read := t.Progress("projects read")
	defer read.End()
	return transfer.PlanServer(ctx, c, want, f.ids, f.Parallel, read.Set)
}

func planStore(ctx context.Context, dir string, want *transfer.Tree) (transfer.Plan, error) {
	s, err := datadir.OpenStored(dir, slog.New(slog.DiscardHandler))
	if err != nil {
		return transfer.Plan{},
			fmt.Errorf("%w (--data reads the store of a server that does not run; compare with one that runs by --url)", err)
	}
	defer s.Close()
	return transfer.PlanStore(ctx, s, want)
}

func (p *planned) print(t cli.Terminal, f planFlags) error {
	if f.asJSON {
		if err := cli.PrintJSON(t.Out, p); err != nil {
			return err
		}
	} else {
		if err := transfer.WriteChanges(t.Out, p.Changes, colour(t.Out)); err != nil {
			return err
		}
		if p.Changed {
			fmt.Fprintf(t.Out, "plan: %s\n", p.Summary)
		} else {
			fmt.Fprintf(t.Out, "no changes: the files say what %s has\n", p.Against)
		}
		for _, text := range p.NotCompared {
			fmt.Fprintf(t.Err, "not compared: %s\n", text)
		}
		if p.Renumbered > 0 {
			fmt.Fprintf(t.Err, "%s on the server have another uuid or id than these files give them (--ids shows which)\n",
				catalog.Count(p.Renumbered, "object"))
		}
	}
	if p.Changed {
		return cli.ErrNot
	}
	return nil
}

package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"fingerpost/api/transfer"
	"fingerpost/cmd/fingerpost/cli"
	"fingerpost/configsrc/hcledit"
	"fingerpost/configsrc/hclfile"
	"fingerpost/configsrc/seal"
	"fingerpost/resolver/catalog"
)

// exportFlags are the flags of export.
type exportFlags struct {
	cli.RemoteFlags
	sealKey, secretsDir    string
	passwords              string
	dryRun, remove, asJSON bool
}

func newExport(t cli.Terminal) *cobra.Command {
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

A new webhook gets the newest of its secrets, so that its receiver goes on verifying. From then on both servers tell the
receiver what changes on them: write active = false where that is not meant. Secrets of webhooks that the server has stay.

The key needs the permissions read and write on every project, and secrets for webhooks. Exit codes: 0 done; 1 nothing was sent, because of problems
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
		RunE: cli.Interruptible(func(cmd *cobra.Command, _ []string) error {
			if f.URL == "" {
				return cli.Usage("export needs --url (or FINGERPOST_URL)")
			}
			if !slices.Contains([]string{transfer.NeededPasswords, transfer.AllPasswords, transfer.NoPasswords}, f.passwords) {
				return cli.Usage("--passwords must be needed, all or none")
			}
			return runExport(cmd.Context(), t, cli.ConfigDir(cmd), f)
		}),
	}
	f.Add(cmd, "read and write")
	fl := cmd.Flags()
	fl.BoolVar(&f.dryRun, "dry-run", false, "show what would be done, and send nothing")
	fl.BoolVar(&f.remove, "delete", false, "remove from the server what the files do not have")
	fl.StringVar(&f.passwords, "passwords", "needed", "SMTP passwords that are sent: needed, all or none")
	fl.StringVar(&f.sealKey, "seal-key", "", "age identity that opens sealed passwords (default "+defaultSealKey()+")")
	fl.StringVar(&f.secretsDir, "secrets-dir", "", "folder outside the config folder in which file() may find passwords")
	fl.BoolVar(&f.asJSON, "json", false, "print one JSON document on stdout")
	return cmd
}

// exported is what export --json prints.
type exported struct {
	Valid   bool   `json:"valid"`
	DryRun  bool   `json:"dryRun"`
	Against string `json:"against"`
	transfer.Exported
	Diagnostics hclfile.Diagnostics `json:"diagnostics"`
}

func runExport(ctx context.Context, t cli.Terminal, dir string, f exportFlags) error {
	out := exported{DryRun: f.dryRun, Against: f.URL, Exported: transfer.NewExported(), Diagnostics: hclfile.Diagnostics{}}
	want, err := loadTree(t, dir, catalog.Allows{}, f.asJSON, &out, &out.Diagnostics)
	if err != nil {
		return err
	}
	out.Valid = true
	e, err := planExport(ctx, t, dir, f, want)
	if err != nil {
		return err
	}
	if problems := e.Problems(); len(problems) > 0 {
		out.Problems = problems
		return cli.EndWithProblems(t, f.asJSON, out, problems, "sent")
	}
	if f.dryRun {
		out.Exported = e.Planned()
		return out.finish(t, f, nil)
	}
	// Up to here nothing has been sent.
	out.Exported, err = send(ctx, t, f, e)
	return out.finish(t, f, err)
}

// planExport does everything before the first change.
func planExport(ctx context.Context, t cli.Terminal, dir string, f exportFlags, want *transfer.Tree) (*transfer.Export,
	error) {
	c, err := f.Connect()
	if err != nil {
		return nil, err
	}
	if f.remove && len(want.Projects) == 0 {
		return nil, cli.No("%s declares no project, and --delete would remove all that the server has: nothing was sent", dir)
	}
	read := t.Progress("projects read")
	defer read.End()
	e, err := transfer.PlanExport(ctx, c, want, transfer.ExportOptions{Passwords: f.passwords, Remove: f.remove,
		Parallel: f.Parallel}, read.Set)
	if err != nil || f.dryRun {
		return e, err
	}
	ids, err := openSealKey(f.sealKey)
	if err != nil {
		return nil, err
	}
	secrets := &seal.Secrets{Dir: dir, SecretsDir: f.secretsDir, Identities: ids}
	e.OpenPasswords(func(p *catalog.ProjectConfig, f *catalog.Field) (string, error) {
		return secrets.Open(*f.Value.(*catalog.Secret), seal.Context(p.Project.UUID, f.Attribute()))
	})
	e.OpenWebhookSecrets(func(w *catalog.Webhook) (string, error) {
		return secrets.Open(w.Secrets[0], w.SecretContext())
	})
	return e, nil
}

// send makes the changes and shows each when it is done.
func send(ctx context.Context, t cli.Terminal, f exportFlags, e *transfer.Export) (transfer.Exported, error) {
	sent := t.Progress("projects sent")
	defer sent.End()
	return e.Send(ctx, sent.Set, func(actions []transfer.Action) {
		if f.asJSON {
			return
		}
		sent.Above(func() {
			for _, a := range actions {
				if a.Result == transfer.Done {
					fmt.Fprintf(t.Out, "%s %s\n", a.Mark(), titleOf(&a.Change))
				} else {
					fmt.Fprintf(t.Err, "%s: %s: %s\n", a.Result, titleOf(&a.Change), a.Error)
				}
			}
		})
	})
}

// titleOf names what a change is about, and its project.
func titleOf(c *transfer.Change) string {
	if c.Kind == catalog.KindProject || c.Project == "" {
		return c.Title()
	}
	return c.Title() + " of project " + hcledit.Quote(c.Project)
}

// finish prints the result. interrupted is the error that has kept Send from its end.
func (out *exported) finish(t cli.Terminal, f exportFlags, interrupted error) error {
	if f.asJSON {
		if err := cli.PrintJSON(t.Out, out); err != nil {
			return err
		}
	} else {
		out.print(t)
	}
	ignored := 0
	for _, a := range out.Actions {
		if a.Result == transfer.Ignored {
			ignored++
		}
	}
	switch {
	case interrupted != nil:
		return fmt.Errorf("%w: the same command does the rest", interrupted)
	case out.Failed > 0:
		return fmt.Errorf("%s not done; what is done stays, and the same command tries the rest",
			catalog.Count(out.Failed, "action"))
	case ignored > 0:
		return cli.No("the server ignored %s", catalog.Count(ignored, "action"))
	}
	return nil
}

func (out *exported) print(t cli.Terminal) {
	word := "export"
	if out.DryRun {
		word = "export would be"
		var changes []transfer.Change
		for _, a := range out.Actions {
			changes = append(changes, a.Change)
		}
		_ = transfer.WriteChanges(t.Out, changes, colour(t.Out))
	}
	if len(out.Actions) == 0 {
		fmt.Fprintf(t.Out, "no changes: %s has what the files say\n", out.Against)
	} else {
		fmt.Fprintf(t.Out, "%s: %s\n", word, strings.NewReplacer("to add", "added", "to change", "changed", "to remove",
			"removed").Replace(out.Summary.String()))
	}
	for _, c := range out.OnlyOnServer {
		fmt.Fprintf(t.Err, "only on the server, left alone: %s\n", titleOf(&c))
	}
	for _, text := range out.NotExported {
		fmt.Fprintf(t.Err, "not exported: %s\n", text)
	}
}

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

	"fingerpost/api/client"
	"fingerpost/api/transfer"
	"fingerpost/cmd/fingerpost/cli"
	"fingerpost/resolver/catalog"
)

func newPropose(t cli.Terminal) *cobra.Command {
	var subs []*cobra.Command
	seen, comment := "", "" // the commit that the caller has decided about, and what is said about it
	sub := func(use, short, keyMay string, args cobra.PositionalArgs, run func(ctx context.Context, c *client.Client,
		args []string, asJSON bool) error) {
		var f cli.ConnectFlags
		asJSON := false
		one := &cobra.Command{Use: use, Short: short, Args: args, RunE: cli.Interruptible(func(cmd *cobra.Command,
			args []string) error {
			o, err := f.Options()
			if err != nil {
				return err
			}
			o.NoMail = true
			return run(cmd.Context(), client.New(o), args, asJSON)
		})}
		f.Add(one, keyMay)
		f.Local(one)
		one.Flags().BoolVar(&asJSON, "json", false, "print one JSON document on stdout")
		subs = append(subs, one)
	}
	sub("list", "List the open proposals", "read", cobra.NoArgs, func(ctx context.Context, c *client.Client, _ []string,
		asJSON bool) error {
		list, err := c.Proposals(ctx)
		if err != nil {
			return err
		}
		if asJSON {
			return cli.PrintJSON(t.Out, append([]client.Proposal{}, list...))
		}
		for _, p := range list {
			state := "can be applied"
			if !p.Mergeable {
				state = "in conflict"
			}
			fmt.Fprintf(t.Out, "%s  %.12s  %s  %s  %s  %s\n", p.Name, p.Commit, p.CreatedAt, printable(p.Author), state,
				printable(p.Title))
		}
		return nil
	})
	sub("show NAME", "Show what a proposal would change", "read", cli.WantsNamed("NAME"), func(ctx context.Context,
		c *client.Client, args []string, asJSON bool) error {
		p, err := c.Proposal(ctx, args[0])
		switch {
		case client.Status(err, http.StatusNotFound):
			return cli.No("there is no proposal %q", args[0])
		case err != nil:
			return err
		case asJSON:
			return cli.PrintJSON(t.Out, p)
		}
		return showProposal(t, &p)
	})
	sub("apply NAME", "Make a proposal live", "write", cli.WantsNamed("NAME"), func(ctx context.Context, c *client.Client,
		args []string, asJSON bool) error {
		commit, err := c.ApplyProposal(ctx, args[0], seen, comment)
		switch {
		case err != nil:
			return err
		case asJSON:
			return cli.PrintJSON(t.Out, map[string]string{"name": args[0], "commit": commit})
		}
		fmt.Fprintln(t.Out, commit)
		return nil
	})
	subs[len(subs)-1].Flags().StringVar(&comment, "comment", "", "text that is kept in the message of the merge")
	sub("approve NAME", "Approve of a proposal of others, as it is now", "write", cli.WantsNamed("NAME"),
		func(ctx context.Context, c *client.Client, args []string, asJSON bool) error {
			list, needed, err := c.ApproveProposal(ctx, args[0], seen)
			switch {
			case err != nil:
				return err
			case asJSON:
				return cli.PrintJSON(t.Out, map[string]any{"name": args[0], "approvals": list, "approvalsNeeded": needed})
			}
			for _, a := range list {
				fmt.Fprintf(t.Out, "%s  %s\n", a.CreatedAt, printable(a.By))
			}
			return nil
		})
	sub("update NAME", "Take the values of a proposal that conflicts onto what is live", "write or propose",
		cli.WantsNamed("NAME"), func(ctx context.Context, c *client.Client, args []string, asJSON bool) error {
			commit, err := c.UpdateProposal(ctx, args[0], seen)
			switch {
			case err != nil:
				return err
			case asJSON:
				return cli.PrintJSON(t.Out, map[string]string{"name": args[0], "commit": commit})
			}
			fmt.Fprintln(t.Out, commit)
			return nil
		})
	sub("drop NAME", "Remove a proposal", "write, or has made it", cli.WantsNamed("NAME"), func(ctx context.Context,
		c *client.Client, args []string, asJSON bool) error {
		err := c.DropProposal(ctx, args[0], seen)
		if err == nil && asJSON {
			return cli.PrintJSON(t.Out, map[string]string{"dropped": args[0]})
		}
		return err
	})
	for _, one := range subs[len(subs)-4:] {
		one.Flags().StringVar(&seen, "commit", "",
			"commit that must be the proposal's last one, as show prints it; else nothing is done (default any)")
	}
	return cli.Group("propose", "List, show, update, approve, apply and drop the proposals of a running server",
		"A write of the API with the header X-Propose: NAME changes nothing that is live: it is committed to the "+
			"branch propose/NAME\n"+
			"of the server's git repository. These commands deal with what was proposed.", subs...)
}

// showProposal prints a proposal: its commits, the plan, and why it cannot be applied.
func showProposal(t cli.Terminal, p *client.ProposalLook) error {
	var plan struct{ Changes []transfer.Change }
	if err := json.Unmarshal(p.Plan, &plan); err != nil {
		return err
	}
	if p.CompareURL != nil {
		fmt.Fprintln(t.Err, *p.CompareURL)
	}
	for _, c := range p.Commits {
		first, _, _ := strings.Cut(c.Message, "\n")
		fmt.Fprintf(t.Err, "%s  %s  %s  %s\n", c.Commit, c.CreatedAt, printable(c.Author), printable(first))
	}
	if p.Refusal != nil {
		fmt.Fprintf(t.Err, "It cannot be applied: %s\n", printable(p.Refusal.Message))
	}
	for i := range p.Conflicts {
		fmt.Fprintf(t.Err, "  %s\n", printable(conflictText(&p.Conflicts[i])))
	}
	if more := p.ConflictCount - len(p.Conflicts); more > 0 {
		fmt.Fprintf(t.Err, "  and %d more\n", more)
	}
	for _, a := range p.Approvals {
		fmt.Fprintf(t.Err, "Approved by %s, %s\n", printable(a.By), a.CreatedAt)
	}
	for _, problem := range p.Problems {
		fmt.Fprintf(t.Err, "It would bring a warning: %s\n", printable(problem.Summary))
	}
	return transfer.WriteChanges(t.Out, plan.Changes, colour(t.Out))
}

// conflictText says in one line what conflicts.
func conflictText(c *client.FieldConflict) string {
	title := transfer.Change{Kind: catalog.Kind(c.Kind), Name: c.Object}
	text := title.Title()
	value := func(v any) string {
		b, err := json.Marshal(v)
		if err != nil {
			return "?"
		}
		return string(b)
	}
	field := ""
	if c.Field != nil {
		field = catalog.AttributeOf(catalog.Kind(c.Kind), *c.Field)
	}
	switch {
	case c.Field == nil && !c.Removes:
		text += ": is not live any more"
	case c.Field == nil:
		text += ": is removed in the proposal, and has changed since"
	case c.Secret:
		text += ": " + field + ": a secret, which both have changed"
	default:
		text += fmt.Sprintf(": %s: was %s, is live %s, proposed %s", field, value(c.Was), value(c.Live), value(c.Proposed))
	}
	if c.By != nil && c.At != nil {
		text += " (by " + *c.By + ", " + *c.At + ")"
	}
	return text
}

// printable leaves out the characters that steer a terminal: people write what they like into commits.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) {
			return -1
		}
		return r
	}, s)
}

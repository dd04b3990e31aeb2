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
)

func newPropose(t terminal) *cobra.Command {
	var subs []*cobra.Command
	seen := "" // the commit that the caller has decided about
	sub := func(use, short, keyMay string, args cobra.PositionalArgs, run func(ctx context.Context, c *client.Client,
		args []string, asJSON bool) error) {
		var f connectFlags
		asJSON := false
		one := &cobra.Command{Use: use, Short: short, Args: args, RunE: interruptible(func(cmd *cobra.Command,
			args []string) error {
			o, err := f.options()
			if err != nil {
				return err
			}
			o.NoMail = true
			return run(cmd.Context(), client.New(o), args, asJSON)
		})}
		f.add(one, keyMay)
		f.local(one)
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
			return printJSON(t.out, append([]client.Proposal{}, list...))
		}
		for _, p := range list {
			state := "can be applied"
			if !p.Mergeable {
				state = "in conflict"
			}
			fmt.Fprintf(t.out, "%s  %.12s  %s  %s  %s  %s\n", p.Name, p.Commit, p.CreatedAt, printable(p.Author), state,
				printable(p.Title))
		}
		return nil
	})
	sub("show NAME", "Show what a proposal would change", "read", wantsNamed("NAME"), func(ctx context.Context,
		c *client.Client, args []string, asJSON bool) error {
		p, err := c.Proposal(ctx, args[0])
		switch {
		case client.Status(err, http.StatusNotFound):
			return no("there is no proposal %q", args[0])
		case err != nil:
			return err
		case asJSON:
			return printJSON(t.out, p)
		}
		return t.showProposal(&p)
	})
	sub("apply NAME", "Make a proposal live", "write", wantsNamed("NAME"), func(ctx context.Context, c *client.Client,
		args []string, asJSON bool) error {
		commit, err := c.ApplyProposal(ctx, args[0], seen)
		switch {
		case err != nil:
			return err
		case asJSON:
			return printJSON(t.out, map[string]string{"name": args[0], "commit": commit})
		}
		fmt.Fprintln(t.out, commit)
		return nil
	})
	sub("drop NAME", "Remove a proposal", "write, or has made it", wantsNamed("NAME"), func(ctx context.Context,
		c *client.Client, args []string, asJSON bool) error {
		err := c.DropProposal(ctx, args[0], seen)
		if err == nil && asJSON {
			return printJSON(t.out, map[string]string{"dropped": args[0]})
		}
		return err
	})
	for _, one := range subs[len(subs)-2:] {
		one.Flags().StringVar(&seen, "commit", "",
			"commit that must be the proposal's last one, as show prints it; else nothing is done (default any)")
	}
	return group("propose", "List, show, apply and drop the proposals of a running server",
		"A write of the API with the header X-Propose: NAME changes nothing that is live: it is committed to the "+
			"branch propose/NAME\n"+
			"of the server's git repository. These commands deal with what was proposed.", subs...)
}

// showProposal prints a proposal: its commits, the plan, and why it cannot be applied.
func (t terminal) showProposal(p *client.ProposalLook) error {
	var plan struct{ Changes []transfer.Change }
	if err := json.Unmarshal(p.Plan, &plan); err != nil {
		return err
	}
	if p.CompareURL != nil {
		fmt.Fprintln(t.err, *p.CompareURL)
	}
	for _, c := range p.Commits {
		first, _, _ := strings.Cut(c.Message, "\n")
		fmt.Fprintf(t.err, "%s  %s  %s  %s\n", c.Commit, c.CreatedAt, printable(c.Author), printable(first))
	}
	if p.Refusal != nil {
		fmt.Fprintf(t.err, "It cannot be applied: %s\n", printable(p.Refusal.Message))
	}
	for _, problem := range p.Problems {
		fmt.Fprintf(t.err, "It would bring a warning: %s\n", printable(problem.Summary))
	}
	return transfer.WriteChanges(t.out, plan.Changes, colour(t.out))
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

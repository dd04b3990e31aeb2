package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"fingerpost/api/client"
	"fingerpost/api/transfer"
)

func newPropose(t terminal) *cobra.Command {
	var subs []*cobra.Command
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
			fmt.Fprintf(t.out, "%s  %.12s  %s  %s  %s\n", p.Name, p.Commit, p.CreatedAt, p.Author, state)
		}
		return nil
	})
	sub("show NAME", "Show what a proposal would change", "read", wantsNamed("NAME"), func(ctx context.Context,
		c *client.Client, args []string, asJSON bool) error {
		list, err := c.Proposals(ctx)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(list, func(p client.Proposal) bool { return p.Name == args[0] })
		if i < 0 {
			return no("there is no proposal %q", args[0])
		}
		if asJSON {
			return printJSON(t.out, list[i])
		}
		var plan struct{ Changes []transfer.Change }
		if err := json.Unmarshal(list[i].Plan, &plan); err != nil {
			return err
		}
		if list[i].CompareURL != nil {
			fmt.Fprintln(t.err, *list[i].CompareURL)
		}
		return transfer.WriteChanges(t.out, plan.Changes, colour(t.out))
	})
	sub("apply NAME", "Make a proposal live", "write", wantsNamed("NAME"), func(ctx context.Context, c *client.Client,
		args []string, asJSON bool) error {
		commit, err := c.ApplyProposal(ctx, args[0])
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
		err := c.DropProposal(ctx, args[0])
		if err == nil && asJSON {
			return printJSON(t.out, map[string]string{"dropped": args[0]})
		}
		return err
	})
	return group("propose", "List, show, apply and drop the proposals of a running server",
		"A write of the API with the header X-Propose: NAME changes nothing that is live: it is committed to the "+
			"branch propose/NAME\n"+
			"of the server's git repository. These commands deal with what was proposed.", subs...)
}

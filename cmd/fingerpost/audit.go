package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"fingerpost/api/client"
)

// auditFlags are the flags of audit.
type auditFlags struct {
	connectFlags
	trailFlags
	actor, action string
	data          string
}

func newAudit(t terminal) *cobra.Command {
	var f auditFlags
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Show who changed what",
		Long: "Prints the newest entries of the audit trail, the latest one last. With --follow it goes on until Ctrl-C.\n\n" +
			"With --json one array, or with --follow one object a line. --data reads the store of a server that does not run.",
		Args: wantsCommand,
		RunE: interruptible(func(cmd *cobra.Command, _ []string) error {
			if !given(cmd, "data") {
				f.data = "" // the variable is that of serve, whose store is open while it runs
			}
			return audit(cmd.Context(), t, f)
		}),
	}
	f.connectFlags.add(cmd, "read")
	f.trailFlags.add(cmd, &f.connectFlags, "changes", "everything")
	cmd.Flags().StringVar(&f.actor, "actor", "", "actor of the changes that are listed, or the name of the key")
	cmd.Flags().StringVar(&f.action, "action", "", "action of the changes that are listed, such as domain.update")
	cmd.Flags().StringVar(&f.data, "data", "", "folder of the store of a server that does not run")
	cmd.AddCommand(newAuditVerify(t))
	return cmd
}

func audit(ctx context.Context, t terminal, f auditFlags) error {
	if err := f.check(nil); err != nil {
		return err
	}
	if f.data != "" {
		return storedAudit(ctx, t, f)
	}
	o, err := f.options()
	if err != nil {
		return err
	}
	o.NoMail = true
	tail := client.AuditTail{Client: client.New(o), Projects: []int64{0},
		Query: client.AuditQuery{Actor: f.actor, Action: f.action, From: f.from()}}
	if f.projects != nil {
		tail.Projects = nil
		err = f.find(ctx, tail.Client, func(id int64, _ string) { tail.Projects = append(tail.Projects, id) })
		if err != nil {
			return err
		}
	}
	tr := trail[client.AuditEntry]{tail.Newest, tail.News, auditLine}
	return tr.show(ctx, t, &f.trailFlags)
}

// maxShown is how much of a value a line shows, in bytes.
const maxShown = 60

// auditLine returns the entry for people.
func auditLine(e *client.AuditEntry) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-26s  %-18s", e.Time, e.Action)
	if object := orEmpty(e.Object); object != "" {
		fmt.Fprintf(&b, "  %s", object)
	}
	by := orEmpty(e.Actor)
	if key := orEmpty(e.Key); key != "" && key != by {
		by += " with " + key
	}
	fmt.Fprintf(&b, "  by %s", cmp.Or(by, e.Door))
	for i, c := range e.Changes {
		sep := ", "
		if i == 0 {
			sep = "  "
		}
		b.WriteString(sep + c.Field)
		if !c.Secret {
			fmt.Fprintf(&b, " %s → %s", shorten(c.Before), shorten(c.After))
		}
	}
	if commit := orEmpty(e.Commit); commit != "" {
		fmt.Fprintf(&b, "  commit %.12s", commit)
	}
	fmt.Fprintf(&b, "  #%d", e.ID)
	return b.String()
}

func shorten(value json.RawMessage) string {
	text := string(value)
	if len(text) <= maxShown {
		return text
	}
	return strings.ToValidUTF8(text[:maxShown], "") + "…"
}

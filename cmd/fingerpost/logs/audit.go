package logs

import (
	"context"

	"github.com/spf13/cobra"

	"fingerpost/api/client"
	"fingerpost/cmd/fingerpost/cli"
)

// auditFlags are the flags of audit.
type auditFlags struct {
	cli.ConnectFlags
	trailFlags
	actor, action string
	data          string
}

// NewAudit returns the command audit.
func NewAudit(t cli.Terminal) *cobra.Command {
	var f auditFlags
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Show who changed what",
		Long: "Prints the newest entries of the audit trail, the latest one last. With --follow it goes on until Ctrl-C.\n\n" +
			"With --json one array, or with --follow one object a line. --data reads the store of a server that does not run.",
		Args: cli.WantsCommand,
		RunE: cli.Interruptible(func(cmd *cobra.Command, _ []string) error {
			if !cli.Given(cmd, "data") {
				f.data = "" // the variable is that of serve, whose store is open while it runs
			}
			return audit(cmd.Context(), t, f)
		}),
	}
	f.ConnectFlags.Add(cmd, "read")
	f.trailFlags.add(cmd, &f.ConnectFlags, "changes", "everything")
	cmd.Flags().StringVar(&f.actor, "actor", "",
		"actor of the changes that are listed (the name or the address will do), or the name of the key")
	cmd.Flags().StringVar(&f.action, "action", "", "action of the changes that are listed, such as domain.update")
	cmd.Flags().StringVar(&f.data, "data", "", "folder of the store of a server that does not run")
	cmd.AddCommand(newVerify(t))
	return cmd
}

func audit(ctx context.Context, t cli.Terminal, f auditFlags) error {
	if err := f.check(nil); err != nil {
		return err
	}
	if f.data != "" {
		return storedAudit(ctx, t, f)
	}
	o, err := f.Options()
	if err != nil {
		return err
	}
	o.NoMail = true
	found := client.AuditTail{Client: client.New(o), Projects: []int64{0},
		Query: client.AuditQuery{Actor: f.actor, Action: f.action, From: f.from()}}
	if f.projects != nil {
		found.Projects = nil
		err = f.find(ctx, found.Client, func(id int64, _ string) { found.Projects = append(found.Projects, id) })
		if err != nil {
			return err
		}
	}
	log := tail[client.AuditEntry]{newest: found.Newest, news: found.News, line: auditLine, passes: cli.Passing}
	return log.show(ctx, t.Out, t.Err, f.printing())
}

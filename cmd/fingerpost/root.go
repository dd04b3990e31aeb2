package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"fingerpost/cmd/fingerpost/cli"
	"fingerpost/cmd/fingerpost/domains"
	"fingerpost/cmd/fingerpost/logs"
	"fingerpost/cmd/fingerpost/mailcare"
	"fingerpost/cmd/fingerpost/webhooks"
)

// runContext is main without the process: it parses, runs and returns the exit code.
func runContext(ctx context.Context, args []string, t cli.Terminal) int {
	root := newRoot(t)
	root.SetArgs(args)
	root.SetIn(t.In)
	root.SetOut(t.Out)
	root.SetErr(t.Err)
	code := cli.ExitUsage // for what cobra refuses before it calls a command
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		code = cli.ExitFailed
		if cmd.Name() != cobra.ShellCompRequestCmd {
			cli.WarnOfVariables(t.Err, root)
			if err := cli.UsePackage(t.Err, cmd, cli.PackageDir); err != nil {
				return err
			}
		}
		return cli.FlagsFromEnv(cmd.Flags())
	}
	err := root.ExecuteContext(ctx)
	if err == nil {
		return cli.ExitOK
	}
	var exit *cli.ExitError
	if errors.As(err, &exit) {
		code = exit.Code
	}
	if msg := err.Error(); msg != "" {
		fmt.Fprintf(t.Err, "fingerpost: %s\n", msg)
		if code == cli.ExitUsage {
			fmt.Fprintln(t.Err, `Run "fingerpost help" for usage.`)
		}
	}
	return code
}

func newRoot(t cli.Terminal) *cobra.Command {
	root := &cobra.Command{
		Use:   "fingerpost",
		Short: "Which project does this domain belong to, and how is it configured",
		Long: "fingerpost serves projects, domains and their settings from HCL files kept in git.\n\n" +
			"Every flag has an environment variable: --log-format is FINGERPOST_LOG_FORMAT. The flag wins.\n" +
			"Exit codes: 0 done; 1 the thing asked about is not so; 2 wrong usage; 3 could not run.",
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       versionLine(),
		Args:          cli.WantsCommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cmd.SetOut(t.Err)
			_ = cmd.Help()
			return cli.Usage("")
		},
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetFlagErrorFunc(cli.FlagError)
	root.SetHelpCommand(cli.NewHelp())
	root.PersistentFlags().String("config", "projects.d", "folder of the HCL files")
	root.AddCommand(newServe(t), newValidate(t), newFmt(t), newResolve(t), newKeys(t), newProjects(t), newRename(t),
		newSecrets(t), newInit(t), newReload(t), newConsoleLink(t), logs.NewMail(t), logs.NewAudit(t), newPlan(t),
		newPropose(t), newImport(t), newExport(t), newBackup(t), newRestore(t), domains.New(t), mailcare.NewMail(t),
		webhooks.New(t), mailcare.NewSuppressions(t), newEdges(t), newDoctor(t), newClusterServer(t), newDocs(t),
		newVersion(t))
	return root
}

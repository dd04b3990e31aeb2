package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
)

// runContext is main without the process: it parses, runs and returns the exit code.
func runContext(ctx context.Context, args []string, t terminal) int {
	root := newRoot(t)
	root.SetArgs(args)
	root.SetIn(t.in)
	root.SetOut(t.out)
	root.SetErr(t.err)
	code := exitUsage // for what cobra refuses before it calls a command
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		code = exitFailed
		if cmd.Name() != cobra.ShellCompRequestCmd {
			warnOfVariables(t.err, root)
		}
		return flagsFromEnv(cmd.Flags())
	}
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	var exit *exitError
	if errors.As(err, &exit) {
		code = exit.code
	}
	if msg := err.Error(); msg != "" {
		fmt.Fprintf(t.err, "fingerpost: %s\n", msg)
		if code == exitUsage {
			fmt.Fprintln(t.err, `Run "fingerpost help" for usage.`)
		}
	}
	return code
}

func newRoot(t terminal) *cobra.Command {
	root := &cobra.Command{
		Use:   "fingerpost",
		Short: "Which project does this domain belong to, and how is it configured",
		Long: "fingerpost serves projects, domains and their settings from HCL files kept in git.\n\n" +
			"Every flag has an environment variable: --log-format is FINGERPOST_LOG_FORMAT. The flag wins.\n" +
			"Exit codes: 0 done; 1 the thing asked about is not so; 2 wrong usage; 3 could not run.",
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       versionLine(),
		Args:          wantsCommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cmd.SetOut(t.err)
			_ = cmd.Help()
			return usage("")
		},
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetFlagErrorFunc(flagError)
	root.SetHelpCommand(newHelp())
	root.PersistentFlags().String("config", "projects.d", "folder of the HCL files")
	root.AddCommand(newServe(t), newValidate(t), newFmt(t), newResolve(t), newKeys(t), newRename(t), newSecrets(t),
		newInit(t),
		newReload(t), newLogs(t), newAudit(t), newPlan(t), newPropose(t), newImport(t), newExport(t), newBackup(t),
		newRestore(t), newDomains(t), newEdges(t), newDoctor(t), newClusterServer(t), newDocs(t), newVersion(t))
	return root
}

package main

import (
	"github.com/spf13/cobra"
)

func newServe(t terminal) *cobra.Command {
	var f serveFlags
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the service",
		Long:  "With no flags, serves ./projects.d on 127.0.0.1:8080 and prints a curl line to try.",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.config = configDir(cmd)
			if err := f.clusterFlags.check(cmd, &f); err != nil {
				return err
			}
			return serve(cmd.Context(), t, f)
		},
	}
	fl := cmd.Flags()
	inGroup(fl, groupFiles, f.addFiles)
	inGroup(fl, groupListen, f.addListen)
	inGroup(fl, groupConsole, f.consoleFlags.add)
	inGroup(fl, groupMail, f.mailFlags.add)
	inGroup(fl, groupGit, f.gitFlags.add)
	inGroup(fl, groupCluster, f.clusterFlags.add)
	inGroup(fl, groupLimits, f.addLimits)
	inGroup(fl, groupLogs, f.addLogs)
	helpInGroups(cmd, groupFiles, groupListen, groupConsole, groupMail, groupGit, groupCluster, groupLimits, groupLogs)
	_ = cmd.RegisterFlagCompletionFunc("log-format", cobra.FixedCompletions([]string{"json", "text"},
		cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

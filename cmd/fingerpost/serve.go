package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"fingerpost/cmd/fingerpost/node"
	"fingerpost/configsrc/atomicfile"
)

func newServe(t terminal) *cobra.Command {
	var f serveFlags
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the service",
		Long:  "With no flags, serves ./projects.d on 127.0.0.1:8080 and prints a curl line to try.",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.Files.Config = configDir(cmd)
			if err := usageAll(f.CheckCluster(cmd.Flags().Changed)); err != nil {
				return err
			}
			return serve(cmd.Context(), t, &f)
		},
	}
	fl := cmd.Flags()
	inGroup(fl, groupFiles, f.addFiles)
	inGroup(fl, groupListen, f.addListen)
	inGroup(fl, groupConsole, f.addConsole)
	inGroup(fl, groupMail, f.addMail)
	inGroup(fl, groupGit, f.addGit)
	inGroup(fl, groupCluster, f.addCluster)
	inGroup(fl, groupLimits, f.addLimits)
	inGroup(fl, groupLogs, f.addLogs)
	helpInGroups(cmd, groupFiles, groupListen, groupConsole, groupMail, groupGit, groupCluster, groupLimits, groupLogs)
	_ = cmd.RegisterFlagCompletionFunc("log-format", cobra.FixedCompletions([]string{"json", "text"},
		cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// diskKey is the context key of an atomicfile.Disk, with which a test replaces the real one.
type diskKey struct{}

func serve(ctx context.Context, t terminal, f *serveFlags) error {
	if err := f.parse(t); err != nil {
		return err
	}
	if _, err := os.Stat(f.Files.Config); err != nil && !f.Cluster.IsEdge() {
		return fmt.Errorf("open config folder %s: %w (\"fingerpost init\" writes an example)", f.Files.Config,
			errors.Unwrap(err))
	}
	f.Files.SealKey = defaultSealKey()
	if f.Files.Identities, f.Files.SealKeyError = openSealKey(f.sealKey); f.Files.SealKeyError != nil && f.sealKey != "" {
		return f.Files.SealKeyError
	}
	if f.Cluster.Listen != "" {
		var err error
		if f.ServerCommand, err = serverCommand(); err != nil {
			return err
		}
	}
	built := builtAs()
	f.Build, f.Out = node.Build{Version: built.version, Commit: built.commit}, t.out
	f.Disk, _ = ctx.Value(diskKey{}).(atomicfile.Disk)
	err := node.Run(ctx, f.Options)
	if malformed := (node.AddressError{}); errors.As(err, &malformed) {
		return usage("%v", err)
	}
	return err
}

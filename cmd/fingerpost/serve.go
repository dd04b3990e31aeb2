package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"fingerpost/cmd/fingerpost/cli"
	"fingerpost/cmd/fingerpost/node"
	"fingerpost/configsrc/atomicfile"
)

func newServe(t cli.Terminal) *cobra.Command {
	var f serveFlags
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the service",
		Long:  "With no flags, serves ./projects.d on 127.0.0.1:8080 and prints a curl line to try.",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.Files.Config, f.Listen.Given = cli.ConfigDir(cmd), differs(cmd)
			if err := cli.UsageAll(f.CheckCluster(differs(cmd))); err != nil {
				return err
			}
			if err := cli.UsageAll(f.CheckConnection()); err != nil {
				return err
			}
			return serve(cmd.Context(), t, &f)
		},
	}
	f.add(cmd)
	return cmd
}

// diskKey is the context key of an atomicfile.Disk, with which a test replaces the real one.
type diskKey struct{}

func serve(ctx context.Context, t cli.Terminal, f *serveFlags) error {
	if err := f.parse(t); err != nil {
		return err
	}
	built := builtAs()
	if err := f.openTraces(built.version); err != nil {
		return err
	}
	if f.Terminal = cli.IsTerminal(t.Out); f.Console.Link && !f.Terminal {
		return cli.Usage("--console-link prints a link with which its first reader may do everything: it needs a terminal " +
			"as stdout")
	}
	if _, err := os.Stat(f.Files.Config); err != nil && !f.Cluster.IsEdge() {
		return fmt.Errorf("open config folder %s: %w (\"fingerpost init\" writes an example)", f.Files.Config,
			errors.Unwrap(err))
	}
	if f.readSealKey(); f.Files.SealKeyError != nil && f.sealKey != "" {
		return f.Files.SealKeyError
	}
	if f.Cluster.Listen != "" {
		var err error
		if f.ServerCommand, err = serverCommand(); err != nil {
			return err
		}
	}
	f.Build, f.Out = node.Build{Version: built.version, Commit: built.commit,
		Docs: newDocuments(built.version, f.Logger)}, t.Out
	f.Disk, _ = ctx.Value(diskKey{}).(atomicfile.Disk)
	err := node.Run(ctx, f.Options)
	if malformed := (node.AddressError{}); errors.As(err, &malformed) {
		return cli.Usage("%v", err)
	}
	return err
}

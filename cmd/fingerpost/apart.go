package main

import (
	"context"
	"os"
	"os/exec"
	"runtime"

	"github.com/spf13/cobra"

	"fingerpost/configsrc"
	"fingerpost/resolver"
)

// decodeCommand is what this program calls itself with, to decode many files beside the one that serves.
const decodeCommand = "decode-files"

func newDecodeFiles(t terminal) *cobra.Command {
	return &cobra.Command{
		Use:    decodeCommand,
		Short:  "Decode files for a serve that has started this",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: command(func(*cobra.Command, []string) error {
			return configsrc.DecodeFiles("/proc/self/fd/3", os.NewFile(4, "spool"), (*resolver.Resolver)(nil).Pack, t.in, t.out)
		}),
	}
}

type apartKey struct{}

// withApart says that this process is fingerpost itself, which can be started once more, and not a test of it.
func withApart(ctx context.Context) context.Context { return context.WithValue(ctx, apartKey{}, true) }

// apartOf is configsrc.Options.Apart, nil where it cannot be had. The process gets none of the environment: it has no
// use for the secrets that may stand there.
func apartOf(ctx context.Context) func(context.Context) *exec.Cmd {
	if self, _ := ctx.Value(apartKey{}).(bool); !self || runtime.GOOS != "linux" {
		return nil
	}
	return func(ctx context.Context) *exec.Cmd {
		cmd := exec.CommandContext(ctx, "/proc/self/exe")
		cmd.Args = []string{os.Args[0], decodeCommand}
		cmd.Env = []string{"GOMAXPROCS=1"}
		return cmd
	}
}

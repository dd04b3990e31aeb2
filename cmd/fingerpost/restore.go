package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"fingerpost/cmd/fingerpost/cli"
	"fingerpost/resolver/datadir"
)

// restoreFlags are the flags of restore.
type restoreFlags struct {
	data               string
	force, check, json bool
}

func newRestore(t cli.Terminal) *cobra.Command {
	var f restoreFlags
	cmd := &cobra.Command{
		Use:   "restore FILE",
		Short: "Make the store out of a backup",
		Long: "Builds the store out of a file that \"fingerpost backup\" has written (- for stdin) beside the data " +
			"folder, checks every\n" +
			"byte and reads the store through, and only then puts it in place. No server may run on the folder. With " +
			"--force, a\n" +
			"store that is there is moved aside, never deleted. Config files are not touched: the server takes up those that\n" +
			"differ from what the backup knows when it starts. Mail that waited in the backup's queue is sent then, marked as\n" +
			"uncertain: it may have been sent since.",
		Args: cli.WantsNamed("FILE"),
		RunE: cli.Interruptible(func(cmd *cobra.Command, args []string) error {
			return restore(cmd.Context(), t, args[0], f)
		}),
	}
	cmd.Flags().StringVar(&f.data, "data", ".fingerpost", "folder of the store")
	cmd.Flags().BoolVar(&f.force, "force", false, "replace the store that exists, which is moved aside")
	cmd.Flags().BoolVar(&f.check, "check", false, "find out whether the backup can be restored, and restore nothing")
	cmd.Flags().BoolVar(&f.json, "json", false, "print what is in the backup, and where the former store is now, as JSON")
	return cmd
}

func restore(ctx context.Context, t cli.Terminal, file string, f restoreFlags) error {
	in := t.In
	if file != "-" {
		opened, err := os.Open(file)
		if err != nil {
			return err
		}
		defer opened.Close()
		in = opened
	}
	options := datadir.RestoreOptions{Replace: f.force, Check: f.check, Now: time.Now()}
	done, err := datadir.Restore(f.data, untilDone{ctx, in}, options)
	pid, held := datadir.HeldBy(err)
	switch {
	case held:
		return fmt.Errorf("%w: stop the server (process %d) first; nothing was changed", err, pid)
	case errors.Is(err, datadir.ErrInTheWay) && !f.force:
		return cli.No("%v; nothing was changed. --force moves a store that is there aside", err)
	case errors.Is(err, datadir.ErrInTheWay), errors.Is(err, datadir.ErrArchive):
		return cli.No("%v; nothing was changed", err)
	case err != nil:
		return err
	}
	if f.json {
		return cli.PrintJSON(t.Out, map[string]any{"backup": done.Manifest, "aside": done.Aside})
	}
	if f.check {
		fmt.Fprintf(t.Out, "%s can be restored: %s\n", file, summary(done.Manifest))
		return nil
	}
	fmt.Fprintf(t.Out, "%s restored: %s\n", f.data, summary(done.Manifest))
	if done.Aside != "" {
		fmt.Fprintf(t.Out, "the former store is in %s\n", done.Aside)
	}
	return nil
}

// untilDone ends reading with the context, so that an interrupt leaves no files behind.
type untilDone struct {
	ctx context.Context
	r   io.Reader
}

func (u untilDone) Read(p []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	return u.r.Read(p)
}

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"github.com/rogpeppe/go-internal/diff"
	"github.com/spf13/cobra"

	"fingerpost/cmd/fingerpost/cli"
	"fingerpost/configsrc/atomicfile"
	"fingerpost/configsrc/folder"
	"fingerpost/configsrc/hclfile"
)

func newFmt(t cli.Terminal) *cobra.Command {
	var check, showDiff bool
	cmd := &cobra.Command{
		Use:   "fmt [PATH…]",
		Short: "Format the files, in place",
		Long: "Brings the files of the config folder, or the files and folders given, into canonical form.\n" +
			"With --check nothing is written and the exit code is 1 when a file is not in that form; --diff shows what differs.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				args = []string{cli.ConfigDir(cmd)}
			}
			return format(t, args, check, showDiff)
		},
	}
	cmd.Flags().BoolVar(&check, "check", false, "name the files that are not formatted, and change nothing")
	cmd.Flags().BoolVar(&showDiff, "diff", false, "show the differences, and change nothing")
	return cmd
}

func format(t cli.Terminal, paths []string, check, showDiff bool) error {
	files, err := folder.ConfigFiles(paths)
	if err != nil {
		return err
	}
	differs, broken := false, false
	for _, name := range files {
		src, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		out, diags := hclfile.Format(src)
		if diags.HasErrors() {
			for i := range diags {
				diags[i].File = name
			}
			_ = diags.WriteText(t.Err, colour(t.Err))
			broken = true
			continue
		}
		if bytes.Equal(src, out) {
			continue
		}
		differs = true
		if showDiff {
			// The output may end up in a CI log.
			_, _ = t.Out.Write(diff.Diff(name, hclfile.Redact(src), name+" (formatted)", hclfile.Redact(out)))
		} else {
			fmt.Fprintln(t.Out, name)
		}
		if !check && !showDiff {
			err := atomicfile.Edit(filepath.Dir(name), filepath.Base(name), func(src []byte) ([]byte, error) {
				out, diags := hclfile.Format(src)
				if diags.HasErrors() {
					return nil, fmt.Errorf("format %s: %s", name, diags[0].Summary)
				}
				return out, nil
			})
			if err != nil {
				return err
			}
		}
	}
	if broken || differs && check {
		return cli.ErrNot
	}
	return nil
}

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"fingerpost/cmd/fingerpost/cli"
	"fingerpost/resolver/catalog"
)

func newDocs(t cli.Terminal) *cobra.Command {
	return cli.Group("docs", "Write the manual of the commands", "", &cobra.Command{
		Use:   "man [DIR]",
		Short: "Write a man page for every command into a folder",
		Long: "Writes fingerpost.1, fingerpost-serve.1 and so on into DIR, or into the folder man, which is made where " +
			"there is none.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := "man"
			if len(args) > 0 {
				dir = args[0]
			}
			return writeManPages(t, cmd.Root(), dir)
		},
	})
}

func writeManPages(t cli.Terminal, root *cobra.Command, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	built := builtAs()
	header := &doc.GenManHeader{Section: "1", Source: "fingerpost " + built.version, Manual: "fingerpost"}
	// The date of the commit, so that a build always writes the same pages.
	if at, err := time.Parse(time.RFC3339, built.date); err == nil {
		header.Date = &at
	}
	root.DisableAutoGenTag = true
	if err := doc.GenManTree(root, header, dir); err != nil {
		return err
	}
	pages, err := filepath.Glob(filepath.Join(dir, "fingerpost*.1"))
	if err != nil {
		return err
	}
	fmt.Fprintf(t.Err, "%s in %s\n", catalog.Count(len(pages), "man page"), dir)
	return nil
}

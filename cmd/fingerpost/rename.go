package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"fingerpost/cmd/fingerpost/cli"
	"fingerpost/cmd/fingerpost/node"
	"fingerpost/configsrc/atomicfile"
	"fingerpost/configsrc/hclfile"
	"fingerpost/configsrc/offline"
	"fingerpost/resolver/catalog"
)

func newRename(t cli.Terminal) *cobra.Command {
	return &cobra.Command{
		Use:   "rename OLD NEW",
		Short: "Give a project another slug in the files",
		Long: `Renames the project's block, its file where that has the slug's name, and the slug in the lists of keys. The block gets a
uuid line, so the project keeps its ids; comments and formatting stay. A running server takes it up as the same project.

Prints the files that it has changed. Exit code 1 where there is no project OLD, NEW is taken or the files have errors.`,
		Args:              cli.WantsNamed("OLD", "NEW"),
		ValidArgsFunction: cli.CompleteArgs((*offline.Checked).Slugs, cli.Fixed()),
		RunE: cli.Interruptible(func(cmd *cobra.Command, args []string) error {
			from, to := args[0], args[1]
			if msg := catalog.CheckSlug(to); msg != "" {
				return cli.Usage("%q is no slug: it %s", to, msg)
			}
			if from == to {
				return cli.Usage("rename needs two different slugs")
			}
			return renameProject(cmd.Context(), t, cli.ConfigDir(cmd), from, to)
		}),
	}
}

func renameProject(ctx context.Context, t cli.Terminal, dir, from, to string) error {
	checked, err := checkSound(dir, "keys")
	if err != nil {
		return err
	}
	file, project := checked.Project(from)
	if project == nil {
		return cli.No("no project has the slug %q%s", from, cli.Suggestion("`%s`", hclfile.Nearest(from, checked.Slugs())))
	}
	if there, taken := checked.Project(to); taken != nil {
		return cli.No("the slug %q is taken by the project in %s:%d", to, there.Display,
			there.Line(catalog.Ref{Kind: catalog.KindProject, Name: to}))
	}
	shown := t.Progress("files read")
	uuid, changed, err := node.RenameProject(ctx, dir, from, to, shown.Set)
	shown.End()
	if err != nil {
		return err
	}
	note := ""
	if path.Base(file.Path) == from+".hcl" {
		moved := path.Join(path.Dir(file.Path), to+".hcl")
		switch err := atomicfile.Move(dir, file.Path, moved); {
		case err == nil:
			changed[slices.Index(changed, file.Path)] = moved
		case errors.Is(err, fs.ErrExist):
			note = fmt.Sprintf("%s keeps its name: %s is there already\n", file.Display, filepath.Join(dir,
				filepath.FromSlash(moved)))
		default:
			return err
		}
	}
	for _, name := range changed {
		fmt.Fprintln(t.Out, filepath.Join(dir, filepath.FromSlash(name)))
	}
	fmt.Fprintf(t.Err, "%sproject %q is %q now, with the uuid %s that it had\n", note, from, to, uuid)
	return nil
}

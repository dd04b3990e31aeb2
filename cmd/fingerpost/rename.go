package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"fingerpost/configsrc"
	"fingerpost/configsrc/atomicfile"
	"fingerpost/configsrc/hclfile"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

func newRename(t terminal) *cobra.Command {
	return &cobra.Command{
		Use:   "rename OLD NEW",
		Short: "Give a project another slug in the files",
		Long: `Renames the project's block, its file where that has the slug's name, and the slug in the lists of keys. The block gets a
uuid line, so the project keeps its ids; comments and formatting stay. A running server takes it up as the same project.

Prints the files that it has changed. Exit code 1 where there is no project OLD, NEW is taken or the files have errors.`,
		Args:              wantsNamed("OLD", "NEW"),
		ValidArgsFunction: completeArgs(projectSlugs, fixed()),
		RunE: interruptible(func(cmd *cobra.Command, args []string) error {
			from, to := args[0], args[1]
			if msg := catalog.CheckSlug(to); msg != "" {
				return usage("%q is no slug: it %s", to, msg)
			}
			if from == to {
				return usage("rename needs two different slugs")
			}
			return renameProject(cmd.Context(), t, configDir(cmd), from, to)
		}),
	}
}

func renameProject(ctx context.Context, t terminal, dir, from, to string) error {
	checked, err := checkSound(dir, "keys")
	if err != nil {
		return err
	}
	file, project := checked.Project(from)
	if project == nil {
		return no("no project has the slug %q%s", from, suggestion("`%s`", hclfile.Nearest(from, projectSlugs(checked))))
	}
	if there, taken := checked.Project(to); taken != nil {
		return no("the slug %q is taken by the project in %s:%d", to, there.Display,
			there.Line(catalog.Ref{Kind: catalog.KindProject, Name: to}))
	}
	uuid, changed, err := t.renameInFiles(ctx, dir, from, to)
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
		fmt.Fprintln(t.out, filepath.Join(dir, filepath.FromSlash(name)))
	}
	fmt.Fprintf(t.err, "%sproject %q is %q now, with the uuid %s that it had\n", note, from, to, uuid)
	return nil
}

// renameInFiles makes the change the way a server does for an API call, so that all files are old or all are new,
// whatever happens. It returns the project's uuid and the written files.
func (t terminal) renameInFiles(ctx context.Context, dir, from, to string) (uuid catalog.UUID, changed []string,
	err error) {
	log := slog.New(slog.DiscardHandler)
	r, err := resolver.Open(resolver.Options{CacheBytes: 1 << 20, Logger: log})
	if err != nil {
		return uuid, nil, err
	}
	defer r.Close()
	shown := t.progress("files read")
	defer shown.End()
	s := configsrc.New(configsrc.Options{Dir: dir, Sink: r, Logger: log, MaxDelete: 1, OnProgress: shown.Set})
	if err := s.Load(ctx); err != nil {
		return uuid, nil, err
	}
	project, err := r.ProjectBySlug(from) // only now, because uuid = "new" has been replaced
	if err != nil {
		return uuid, nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	change := func(p *catalog.ProjectConfig) error {
		p.Project.Slug = to
		return nil
	}
	out, err := s.Write(ctx, &catalog.Edit{By: catalog.Author{Door: catalog.DoorCLI},
		Project: &catalog.ProjectEdit{UUID: project.UUID, Change: change}})
	cancel()
	return project.UUID, out.Paths, errors.Join(err, <-ended)
}

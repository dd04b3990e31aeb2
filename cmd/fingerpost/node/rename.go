package node

import (
	"context"
	"errors"
	"log/slog"

	"fingerpost/configsrc"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

// RenameProject gives a project another slug in the files of a folder. It does so the way a node does for an API call, so
// that all files are old or all are new, whatever happens. It returns the project's uuid and the written files.
func RenameProject(ctx context.Context, dir, from, to string, onProgress func(done, total int)) (uuid catalog.UUID,
	changed []string, err error) {
	log := slog.New(slog.DiscardHandler)
	r, err := resolver.Open(resolver.Options{CacheBytes: 1 << 20, Logger: log})
	if err != nil {
		return uuid, nil, err
	}
	defer r.Close()
	s := configsrc.New(configsrc.Options{Dir: dir, Sink: r, Logger: log, MaxDelete: 1,
		Hooks: configsrc.Hooks{OnProgress: onProgress}})
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

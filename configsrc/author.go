package configsrc

import (
	"context"
	"path/filepath"
)

// An Author is on whose behalf a write is made.
type Author struct {
	Key       string // the API key's name
	RequestID string
}

// A Written is one file that a write has changed, made or removed.
type Written struct {
	Path string // slash-separated below the config folder, links followed
	By   Author
}

type authorKey struct{}

// A Coverage reports whether an API key reaches the project with the id; nil: the key reaches every project. Such a key
// alone may declare any domain, see MayClaim, and is told who has what another one wants.
type Coverage func(project int64) bool

type coverageKey struct{}

// WithCoverage tells the writes that are made under the context which projects their key reaches.
func WithCoverage(ctx context.Context, covers Coverage) context.Context {
	return context.WithValue(ctx, coverageKey{}, covers)
}

func coverageOf(ctx context.Context) Coverage {
	covers, _ := ctx.Value(coverageKey{}).(Coverage)
	return covers
}

// WithAuthor tells the writes that are made under the context who makes them.
func WithAuthor(ctx context.Context, a Author) context.Context {
	return context.WithValue(ctx, authorKey{}, a)
}

// tell passes on what was committed. Whether the Sink took it does not matter: the files are changed.
func (s *Source) tell(round []*update) {
	if s.o.OnWrite == nil || len(round) == 0 {
		return
	}
	root, err := filepath.EvalSymlinks(s.o.Dir)
	written := make([]Written, 0, len(round))
	for _, u := range round {
		for _, target := range u.targets() {
			w := Written{Path: u.c.path, By: u.by}
			if rel, relErr := filepath.Rel(root, target); err == nil && relErr == nil {
				w.Path = filepath.ToSlash(rel)
			}
			written = append(written, w)
		}
	}
	s.o.OnWrite(written)
}

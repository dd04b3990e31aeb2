package configsrc

import (
	"cmp"
	"context"
	"path/filepath"

	"fingerpost/resolver/catalog"
)

// An Author identifies the client that makes a write.
type Author struct {
	Key       string // the API key's name
	RequestID string
	Actor     string // who the client says it acts for (X-Actor); "": the key
	Message   string // what the client says about the change (X-Change-Message); "": nothing
	// Noted, if set, gets the id of the write in the Journal, once the write is in its files. It is not called if there is
	// no Journal.
	Noted func(id int64)
}

// audited returns the author for the audit trail.
func (a Author) audited() *catalog.Author {
	return &catalog.Author{Door: catalog.DoorAPI, Actor: cmp.Or(a.Actor, a.Key), Key: a.Key, RequestID: a.RequestID}
}

// A Written is one file that a write has changed, created or removed.
type Written struct {
	Path string // slash-separated below the config folder, links resolved
	By   Author
}

// A Coverage reports whether an API key reaches the project with the id; nil: the key reaches every project. Only such
// a key may declare any domain, see MayClaim, and learns which project has a domain that it wants.
type Coverage func(project int64) bool

type writerKey struct{}

// A writer is the client of a write.
type writer struct {
	author Author
	covers Coverage
}

// WithAuthor attaches the author, and the coverage of the author's key, to the writes under the context.
func WithAuthor(ctx context.Context, a Author, covers Coverage) context.Context {
	return context.WithValue(ctx, writerKey{}, writer{a, covers})
}

func writerOf(ctx context.Context) writer {
	w, _ := ctx.Value(writerKey{}).(writer)
	return w
}

// tell reports committed writes to OnWrite. It does so even if the Sink refused them: the files are changed.
func (s *Source) tell(round []*update) {
	if s.o.Journal != nil {
		for _, u := range round {
			u.note.Generation = s.o.Sink.Generation()
			u.noted = true
			s.o.Journal.End(u.note, true)
		}
	}
	if s.o.OnWrite == nil || len(round) == 0 {
		return
	}
	root, err := s.realDir()
	written := make([]Written, 0, len(round))
	for _, u := range round {
		for _, f := range u.files {
			w := Written{Path: u.c.path, By: u.by.author}
			if rel, relErr := filepath.Rel(root, f.Target); err == nil && relErr == nil {
				w.Path = filepath.ToSlash(rel)
			}
			written = append(written, w)
		}
	}
	s.o.OnWrite(written)
}

// broughtBy returns who has brought a file that was found in the folder, or a file that it names: nil if somebody has
// saved it here.
func (s *Source) broughtBy(c *candidate) *catalog.Author {
	if s.o.AuthorOf == nil || c.by != nil {
		return nil
	}
	if by := s.o.AuthorOf(c.path, c.bytes); by != nil {
		return by
	}
	for path, content := range c.texts {
		if by := s.o.AuthorOf(path, content); by != nil {
			return by
		}
	}
	return nil
}

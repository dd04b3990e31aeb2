package configsrc

import (
	"context"
	"fmt"
	"os"
	"slices"

	"fingerpost/configsrc/atomicfile"
	"fingerpost/configsrc/edits"
	"fingerpost/configsrc/folder"
	"fingerpost/configsrc/hclfile"
	"fingerpost/configsrc/judge"
	"fingerpost/resolver/catalog"
)

// A Judged is a file of a folder that a service with a given store would load.
type Judged struct {
	Path     string            // below the folder, slash-separated
	Display  string            // in messages
	Bytes    []byte            // nil: it cannot be read, or is gone
	Declared *catalog.Declared // nil: it is refused, or gone
	Problems hclfile.Diagnostics
}

// Known is the file table of a service's store.
type Known interface {
	Files(yield func(path string, row *catalog.FileRow) bool) error
	File(path string) (*catalog.FileRow, error)
}

// Judge loads a folder like a service with a given store, nil for an empty one, with the same decoder and the same
// rules, and changes nothing. It needs no secrets. written, by path below the folder, takes the place of files. allow is as in Options. progress
// is called, from several goroutines, with the number of files read; it may be nil. An error means that the folder
// cannot be read.
func Judge(dir string, written map[string][]byte, known Known, allow catalog.Allows,
	progress func(done, total int)) ([]Judged, error) {
	if info, err := os.Stat(dir); err != nil {
		return nil, fmt.Errorf("open config folder %s: %w", dir, atomicfile.Cause(err))
	} else if !info.IsDir() {
		return nil, fmt.Errorf("open config folder %s: it is no folder", dir)
	}
	t, err := folder.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("open config folder %s: %w", dir, atomicfile.Cause(err))
	}
	defer t.Close()
	s := newBase(Options{Dir: dir, Allow: allow})
	s.redecode = true // so that gather finds every file
	find := &finder{base: s, states: newPathStates(s), beforeList: func(string) {}, progress: progress}
	row := func(string) (*catalog.FileRow, error) { return nil, os.ErrNotExist }
	if known != nil {
		row = known.File
		if err := known.Files(func(path string, row *catalog.FileRow) bool {
			s.Table.Put(judge.NewFile(path, row, true))
			return true
		}); err != nil {
			return nil, fmt.Errorf("read the file table: %w", err)
		}
	}
	found, err := find.gather(context.Background(), t, scope{Seen: folder.Seen{All: true}})
	if err != nil {
		return nil, err
	}
	candidates := slices.DeleteFunc(found.candidates, func(c *judge.Candidate) bool {
		_, replaced := written[c.Path]
		return replaced
	})
	for path, b := range written {
		candidates = append(candidates, s.imagineFile(t, path, b))
	}
	judge.SortByPath(candidates)
	j := &judge.Case{
		Table: s.Table, Candidates: candidates, Display: s.Display, Row: row,
		Locate: func(p string) (*hclfile.Result, error) {
			if content, ok := written[p]; ok {
				return judge.Positions(s.Display(p), content), nil
			}
			return edits.Locate(t, s.Display(p), p)
		},
	}
	j.Run()
	judged := make([]Judged, len(candidates))
	for i, c := range candidates {
		judged[i] = Judged{Path: c.Path, Display: s.Display(c.Path), Bytes: c.Bytes, Declared: c.Declared,
			Problems: slices.Concat(c.Diags, c.Cross)}
		if c.Rejected {
			judged[i].Declared = nil
		}
	}
	return judged, nil
}

// imagineFile decodes a file that does not exist yet.
func (s *base) imagineFile(t *folder.Tree, path string, b []byte) *judge.Candidate {
	c := &judge.Candidate{Path: path, Content: judge.Content{Bytes: b}}
	if len(b) > folder.MaxFileBytes {
		c.Diags = hclfile.Diagnostics{hclfile.FileProblem(s.Display(path),
			fmt.Sprintf("the file would have %d bytes, %d are allowed", len(b), folder.MaxFileBytes), "")}
		return c
	}
	c.Decode(s.Display(path), t, s.Rules())
	return c
}

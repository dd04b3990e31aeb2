package configsrc

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"fingerpost/configsrc/atomicfile"
	"fingerpost/configsrc/folder"
	"fingerpost/configsrc/hclfile"
	"fingerpost/configsrc/names"
	"fingerpost/configsrc/watch"
	"fingerpost/resolver/catalog"
)

// Checked is the content of a folder, loaded from the files alone.
type Checked struct {
	Problems hclfile.Diagnostics
	Files    []CheckedFile // files without errors, in path order
	Broken   []BrokenFile  // the others that could be read, in path order
}

// A BrokenFile is a file with errors.
type BrokenFile struct {
	Display string // the path in messages
	Source  []byte
}

// Mentions reports whether the file seems to declare a block of a type with a label: what stands in it is not known
// before it is mended.
func (f *BrokenFile) Mentions(kind, label string) bool {
	return regexp.MustCompile(`(?m)^\s*` + kind + `\s+"` + regexp.QuoteMeta(label) + `"`).Match(f.Source)
}

// brokenProject finds the slugs of projects in a file with errors.
var brokenProject = regexp.MustCompile(`(?m)^\s*project\s+"([^"\n]+)"`)

// A CheckedFile is one file without errors.
type CheckedFile struct {
	Path     string // below the folder, slash-separated
	Display  string // the path in messages
	Declared *catalog.Declared
	source   []byte
	decoded  *hclfile.Result // of source, once a position was asked for
}

// Line returns the line at which the file declares an object.
func (f *CheckedFile) Line(ref catalog.Ref) int {
	return f.positions().Position(ref).Line
}

func (f *CheckedFile) positions() *hclfile.Result {
	if f.decoded == nil {
		f.decoded = positions(f.Display, f.source)
	}
	return f.decoded
}

// Project returns the project with the slug, nil if there is none.
func (c *Checked) Project(slug string) (*CheckedFile, *catalog.ProjectConfig) {
	for i := range c.Files {
		projects := c.Files[i].Declared.Projects
		for j := range projects {
			if projects[j].Project.Slug == slug {
				return &c.Files[i], &projects[j]
			}
		}
	}
	return nil, nil
}

// Check loads a folder like a service with an empty store, with the same decoder and the same rules, and changes
// nothing. It needs no secrets. An error means that the folder cannot be read.
func Check(dir string) (*Checked, error) { return check(dir, nil, nil, nil) }

// CheckWith is Check for the folder as it would be after writing these contents, by path below it.
func CheckWith(dir string, written map[string][]byte) (*Checked, error) {
	return check(dir, written, nil, nil)
}

// Known is the file table of a service's store.
type Known interface {
	Files(yield func(path string, row *catalog.FileRow) bool) error
	File(path string) (*catalog.FileRow, error)
}

// CheckAgainst is Check against the store of a service: which of two files keeps a name depends on which had it before,
// and a renamed project is distinguished from a new one. A nil Known is an empty store. If progress is not nil, it is
// called, from several goroutines, with the number of files read.
func CheckAgainst(dir string, known Known, progress func(done, total int)) (*Checked, error) {
	return check(dir, nil, known, progress)
}

func check(dir string, written map[string][]byte, known Known, progress func(done, total int)) (*Checked, error) {
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
	s := New(Options{Dir: dir})
	s.redecode, s.progress = true, progress // so that gather finds every file
	row := func(string) (*catalog.FileRow, error) { return nil, os.ErrNotExist }
	if known != nil {
		row = known.File
		if err := known.Files(func(path string, row *catalog.FileRow) bool {
			s.table.put(newFile(path, row, true))
			return true
		}); err != nil {
			return nil, fmt.Errorf("read the file table: %w", err)
		}
	}
	found, err := s.gather(context.Background(), t, scope{Seen: watch.Seen{All: true}})
	if err != nil {
		return nil, err
	}
	candidates := slices.DeleteFunc(found.candidates, func(c *candidate) bool {
		_, replaced := written[c.path]
		return replaced
	})
	for path, b := range written {
		candidates = append(candidates, s.imagine(t, path, b))
	}
	sortByPath(candidates)
	j := &judge{
		table: s.table, candidates: candidates, display: s.display, row: row,
		locate: func(p string) (*hclfile.Result, error) {
			if content, ok := written[p]; ok {
				return positions(s.display(p), content), nil
			}
			return locate(t, s.display(p), p)
		},
	}
	j.run()
	out := &Checked{}
	slugs := map[string]bool{}
	for _, c := range candidates {
		out.Problems = append(append(out.Problems, c.diags...), c.cross...)
		if c.rejected && c.prev != nil { // its last declaration stays
			if was, err := row(c.path); err == nil {
				for _, ref := range was.Refs {
					slugs[ref.Name] = slugs[ref.Name] || ref.Kind == catalog.KindProject
				}
			}
		}
		if c.out() && c.bytes != nil {
			out.Broken = append(out.Broken, BrokenFile{s.display(c.path), c.bytes})
			for _, m := range brokenProject.FindAllSubmatch(c.bytes, -1) {
				slugs[string(m[1])] = true // a key that names it is not wrong because the file is
			}
		}
		if !c.out() && !c.gone {
			out.Files = append(out.Files, CheckedFile{Path: c.path, Display: s.display(c.path),
				Declared: c.declared, source: c.bytes})
			for i := range c.declared.Projects {
				slugs[c.declared.Projects[i].Project.Slug] = true
			}
		}
	}
	for i := range out.Files {
		out.Problems = append(out.Problems, out.Files[i].unknownProjects(slugs)...)
	}
	out.Problems = append(out.Problems, warnOfOverlaps(out.Files)...)
	out.Problems = append(out.Problems, warnOfSenders(out.Files)...)
	out.Problems.Sort()
	return out, nil
}

// imagine decodes a file that does not exist yet.
func (s *Source) imagine(t *folder.Tree, path string, b []byte) *candidate {
	c := &candidate{path: path, content: content{bytes: b}}
	if len(b) > folder.MaxFileBytes {
		c.diags = hclfile.Diagnostics{hclfile.FileProblem(s.display(path),
			fmt.Sprintf("the file would have %d bytes, %d are allowed", len(b), folder.MaxFileBytes), "")}
		return c
	}
	c.decode(s.display(path), t)
	return c
}

// unknownProjects warns of keys that list projects that do not exist.
func (f *CheckedFile) unknownProjects(slugs map[string]bool) (ds hclfile.Diagnostics) {
	for _, k := range f.Declared.Keys {
		for _, slug := range slices.Compact(slices.Sorted(slices.Values(k.Projects))) {
			if slugs[slug] {
				continue
			}
			ds = append(ds, names.UnknownSlug(f.positions(), catalog.UnknownSlug{Key: k.Name, Slug: slug},
				func(slug string) bool { return slugs[slug] }))
		}
	}
	return ds
}

// Within returns the problems of the files at or below the given paths, which are relative to the working directory.
func (c *Checked) Within(paths []string) hclfile.Diagnostics {
	var out hclfile.Diagnostics
	for _, d := range c.Problems {
		for _, p := range paths {
			if rel, err := filepath.Rel(filepath.Clean(p), d.File); err == nil && rel != ".." && !strings.HasPrefix(rel,
				".."+string(filepath.Separator)) {
				out = append(out, d)
				break
			}
		}
	}
	return out
}

package configsrc

import (
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"fingerpost/configsrc/hclfile"
	"fingerpost/resolver/catalog"
)

// Checked is what a folder declares, loaded from the files alone.
type Checked struct {
	Problems hclfile.Diagnostics
	Files    []CheckedFile // the good ones, in path order
}

// A CheckedFile is one file without errors.
type CheckedFile struct {
	Path     string // below the folder, slash-separated
	Display  string // as messages name it
	Declared *catalog.Declared
	source   []byte
}

// Line tells where the file declares an object.
func (f *CheckedFile) Line(ref catalog.Ref) int {
	r, _ := hclfile.Decode(f.Display, f.source, hclfile.Options{})
	if r == nil {
		return 0
	}
	return r.Position(ref).Line
}

// Check loads a folder as a service with an empty store would, with the same decoder and the same rules, and changes
// nothing. It needs no secrets. An error means that the folder cannot be read.
func Check(dir string) (*Checked, error) { return CheckWith(dir, nil) }

// CheckWith is Check for the folder as it would be with these contents, by path below it, written into it.
func CheckWith(dir string, written map[string][]byte) (*Checked, error) {
	if info, err := os.Stat(dir); err != nil {
		return nil, fmt.Errorf("open config folder %s: %w", dir, cause(err))
	} else if !info.IsDir() {
		return nil, fmt.Errorf("open config folder %s: it is no folder", dir)
	}
	t, err := openTree(dir)
	if err != nil {
		return nil, fmt.Errorf("open config folder %s: %w", dir, cause(err))
	}
	defer t.Close()
	var entries []entry
	err = t.list(nil, func(e entry) {
		if _, replaced := written[e.path]; !replaced {
			entries = append(entries, e)
		}
	})
	if err != nil {
		return nil, err
	}
	for path := range written {
		entries = append(entries, entry{path: path})
	}
	sort.Slice(entries, func(i, j int) bool { return entries[i].path < entries[j].path })
	candidates := make([]*candidate, len(entries))
	s := New(Options{Dir: dir})
	parallel(len(entries), func(i int) {
		if content, ok := written[entries[i].path]; ok {
			candidates[i] = s.imagine(t, entries[i].path, content)
		} else {
			candidates[i], _ = s.examineOne(t, entries[i])
		}
	})
	candidates = present(candidates)
	j := &judge{
		table: newTable(), candidates: candidates, display: s.display, pace: s.pace(0),
		row: func(string) (*catalog.FileRow, error) { return nil, os.ErrNotExist },
		locate: func(p string) (*hclfile.Result, error) {
			if content, ok := written[p]; ok {
				r, _ := hclfile.Decode(s.display(p), content, hclfile.Options{})
				return r, nil
			}
			return locate(t, s.display(p), p)
		},
	}
	j.run()
	out := &Checked{}
	slugs := map[string]bool{}
	for _, c := range candidates {
		out.Problems = append(append(out.Problems, c.diags...), c.cross...)
		if !c.out() {
			out.Files = append(out.Files, CheckedFile{c.path, s.display(c.path), c.declared, c.bytes})
			for i := range c.declared.Projects {
				slugs[c.declared.Projects[i].Project.Slug] = true
			}
		}
	}
	for i := range out.Files {
		out.Problems = append(out.Problems, out.Files[i].unknownProjects(slugs)...)
	}
	out.Problems.Sort()
	return out, nil
}

// imagine decodes a file that is not there yet.
func (s *Source) imagine(t *tree, path string, content []byte) *candidate {
	c := &candidate{path: path, bytes: content}
	if len(content) > MaxFileBytes {
		c.diags = hclfile.Diagnostics{hclfile.FileProblem(s.display(path), fmt.Sprintf("the file would have %d bytes, %d are allowed", len(content), MaxFileBytes), "")}
		return c
	}
	c.decode(s.display(path), t)
	return c
}

// unknownProjects warns of keys that name projects that are not there. It is no error: the project may come with
// another branch, and a key without it can do less, not more.
func (f *CheckedFile) unknownProjects(slugs map[string]bool) (ds hclfile.Diagnostics) {
	for _, k := range f.Declared.Keys {
		var missing []string
		for _, slug := range k.Projects {
			if !slugs[slug] {
				missing = append(missing, fmt.Sprintf("%q", slug))
			}
		}
		if len(missing) == 0 {
			continue
		}
		r, _ := hclfile.Decode(f.Display, f.source, hclfile.Options{})
		ds = append(ds, r.Diagnose(catalog.Ref{Kind: catalog.KindKey, Name: k.Name, KeyID: k.ID}, hclfile.Warning,
			fmt.Sprintf("key %q names projects that no file declares: %s", k.Name, strings.Join(missing, ", ")), ""))
	}
	return ds
}

// Within keeps the problems of the files at or below the given paths, named from where the process runs.
func (c *Checked) Within(paths []string) hclfile.Diagnostics {
	var out hclfile.Diagnostics
	for _, d := range c.Problems {
		for _, p := range paths {
			if rel, err := filepath.Rel(filepath.Clean(p), d.File); err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
				out = append(out, d)
				break
			}
		}
	}
	return out
}

func present(cs []*candidate) []*candidate {
	out := cs[:0]
	for _, c := range cs {
		if c != nil {
			out = append(out, c)
		}
	}
	return out
}

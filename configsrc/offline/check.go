package offline

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"fingerpost/configsrc"
	"fingerpost/configsrc/hclfile"
	"fingerpost/configsrc/names"
	"fingerpost/resolver/catalog"
)

// Checked is the content of a folder, loaded from the files alone.
type Checked struct {
	Problems hclfile.Diagnostics
	Files    []File       // files without errors, in path order
	Broken   []BrokenFile // the others that could be read, in path order
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

// A File is one file without errors.
type File struct {
	Path     string // below the folder, slash-separated
	Display  string // the path in messages
	Declared *catalog.Declared
	source   []byte
	decoded  *hclfile.Result // of source, once a position was asked for
}

// Line returns the line at which the file declares an object.
func (f *File) Line(ref catalog.Ref) int {
	return f.positions().Position(ref).Line
}

func (f *File) positions() *hclfile.Result {
	if f.decoded == nil {
		f.decoded, _ = hclfile.Decode(f.Display, f.source, hclfile.Options{})
	}
	return f.decoded
}

// Project returns the project with the slug, nil if there is none.
func (c *Checked) Project(slug string) (*File, *catalog.ProjectConfig) {
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

// Defaults returns the defaults block, nil if there is none.
func (c *Checked) Defaults() (*File, *catalog.Defaults) { return defaultsOf(c.Files) }

func defaultsOf(files []File) (*File, *catalog.Defaults) {
	for i := range files {
		if d := files[i].Declared.Defaults; d != nil {
			return &files[i], d
		}
	}
	return nil, nil
}

// Check loads a folder like a service with an empty store, with the same decoder and the same rules, and changes
// nothing. It needs no secrets. An error means that the folder cannot be read.
func Check(dir string) (*Checked, error) { return CheckWith(dir, Options{}) }

// Options of CheckWith. The zero Options are those of Check.
type Options struct {
	Written map[string][]byte // contents, by path below the folder, that it would have
	// Known is the store of a service: which of two files keeps a name depends on which had it before, and a renamed
	// project is distinguished from a new one. Nil is an empty store.
	Known configsrc.Known
	// Allow says to which addresses attributes may lead with http; nil: that is not known, and each is a warning.
	Allow catalog.Allows
	// Progress is called, from several goroutines, with the number of files read. It may be nil.
	Progress func(done, total int)
}

// CheckWith is Check with what else is known of the service or of the folder.
func CheckWith(dir string, o Options) (*Checked, error) {
	known := o.Known
	judged, err := configsrc.Judge(dir, o.Written, known, o.Allow.OrUnsure(), o.Progress)
	if err != nil {
		return nil, err
	}
	out := &Checked{}
	slugs := map[string]bool{}
	for i := range judged {
		f := &judged[i]
		out.Problems = append(out.Problems, f.Problems...)
		if f.Declared != nil {
			out.Files = append(out.Files, File{Path: f.Path, Display: f.Display, Declared: f.Declared, source: f.Bytes})
			for j := range f.Declared.Projects {
				slugs[f.Declared.Projects[j].Project.Slug] = true
			}
			continue
		}
		if f.Problems.HasErrors() && known != nil { // its last declaration stays
			if was, err := known.File(f.Path); err == nil {
				for _, ref := range was.Refs {
					slugs[ref.Name] = slugs[ref.Name] || ref.Kind == catalog.KindProject
				}
			}
		}
		if f.Bytes != nil {
			out.Broken = append(out.Broken, BrokenFile{f.Display, f.Bytes})
			for _, m := range brokenProject.FindAllSubmatch(f.Bytes, -1) {
				slugs[string(m[1])] = true // a key that names it is not wrong because the file is
			}
		}
	}
	for i := range out.Files {
		out.Problems = append(out.Problems, out.Files[i].unknownProjects(slugs)...)
	}
	out.Problems = append(out.Problems, warnOfOverlaps(out.Files)...)
	out.Problems = append(out.Problems, warnOfSenders(out.Files)...)
	out.Problems = append(out.Problems, warnOfSharedTokens(out.Files)...)
	out.Problems.Sort()
	return out, nil
}

// unknownProjects warns of lists with projects that do not exist.
func (f *File) unknownProjects(slugs map[string]bool) (ds hclfile.Diagnostics) {
	there := func(slug string) bool { return slugs[slug] }
	for holder, list := range f.Declared.Lists() {
		for _, slug := range slices.Compact(slices.Sorted(slices.Values(list))) {
			if !there(slug) {
				ds = append(ds, names.UnknownSlug(f.positions(), catalog.UnknownSlug{ListHolder: holder, Slug: slug}, there))
			}
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

// Explain is configsrc.Source.Explain for the files alone. Paths are those of messages. It returns nil for an unknown
// slug.
func (c *Checked) Explain(slug string) *catalog.Explained {
	file, p := c.Project(slug)
	if p == nil {
		return nil
	}
	var defaults hclfile.PlacedResult
	if f, _ := c.Defaults(); f != nil {
		defaults = hclfile.PlacedResult{Path: f.Display, Result: f.positions()}
	}
	return hclfile.Explain(p, hclfile.PlacedResult{Path: file.Display, Result: file.positions()}, defaults)
}

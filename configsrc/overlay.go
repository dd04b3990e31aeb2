package configsrc

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io/fs"
	"slices"

	"fingerpost/configsrc/atomicfile"
	"fingerpost/configsrc/compare"
	"fingerpost/configsrc/folder"
	"fingerpost/configsrc/judge"
	"fingerpost/resolver/catalog"
)

// An Overlay is what is live with the files of a proposal over it (api/README.md, Proposals). Its writes are edited
// and judged as those of its Source are, on the files of the proposal's branch; they are noted, and change no file. It
// costs the decoding of the files that differ, with any number of projects: without it a proposal needs a folder and a
// store of its own, or is checked against what is live alone.
//
// It is for one call, and not for concurrent use.
type Overlay struct {
	writer
	origins
	layer   Layer
	branch  stored            // the files of the proposal's branch
	changed map[string][]byte // of these, what was written; nil: removed
	writes  []*catalog.FileWrite
}

// A Layer is Facts of which some files are replaced; *resolver.Overlay implements it.
type Layer interface {
	Facts
	// Put makes a change of files part of the Layer. A file without a Row is gone or cannot be read.
	Put(files ...catalog.FileChange) error
}

// Overlay returns what is live with a Difference from it. layer must have no files yet.
func (s *Source) Overlay(d *compare.Difference, layer Layer) (*Overlay, error) {
	o := &Overlay{layer: layer, changed: map[string][]byte{}}
	o.branch = over(o.changed, d.After)
	s.base.known.RLock()
	under := s.base.table
	s.base.known.RUnlock()
	b := newBase(s.base.o)
	b.facts, b.committing, b.known = layer, s.base.committing, s.base.known
	o.writer, o.origins = writer{base: b, ws: o, submit: o.submit}, origins{b}
	o.table.LieOver(under)
	files, err := o.candidatesOf(d, o.branch)
	if err != nil {
		return nil, err
	}
	return o, o.putFiles(files...)
}

// putFiles makes files of the branch part of the Overlay.
func (o *Overlay) putFiles(files ...*judge.Candidate) error {
	changes := make([]catalog.FileChange, len(files))
	for i, c := range files {
		changes[i].Path = c.Path
		o.table.Drop(c.Path)
		delete(o.quarantine, c.Path)
		o.table.Hide(c.Path)
		switch {
		case c.Gone:
		case c.Declared == nil:
			o.quarantine[c.Path] = &judge.Quarantined{Diags: c.Diags}
		default:
			changes[i].Row = &catalog.FileRow{Stamp: c.Stamp, Deps: c.Deps}
			changes[i].Declared, changes[i].Bytes = c.Declared, c.Bytes
			o.table.Put(&judge.File{Path: c.Path, Stamp: c.Stamp, Deps: c.Deps, Claims: c.Claims, Objects: len(c.Refs),
				Counts: c.Counts})
		}
	}
	if err := o.layer.Put(changes...); err != nil {
		return err
	}
	sealing := o.layer.Sealing()
	o.sealed = sealing != nil && sealing.Require
	return nil
}

// Bring makes a project's file part of the Overlay if the branch has another than is live: somebody has saved it, and
// not committed it yet. Without it, the ETags of reads are not those that writes compare with.
func (o *Overlay) Bring(project catalog.UUID) error {
	path, found := o.fileOf(judge.ProjectClaim(project))
	if !found || o.table.Hides(path) {
		return nil
	}
	is, err := o.branch(path)
	if err != nil || is == nil {
		return err // what is nowhere in the branch is shown as it is live
	}
	live, err := o.facts.LastGood(path)
	if err != nil {
		return err
	}
	f := o.fileAt(path)
	same := f != nil && bytes.Equal(live, is)
	for i := 0; same && i < len(f.Deps); i++ {
		text, err := o.branch(f.Deps[i].Path)
		if err != nil {
			return err
		}
		same = text != nil && sha256.Sum256(text) == f.Deps[i].Stamp.Hash
	}
	if same {
		return nil
	}
	c := &judge.Candidate{Path: path, Prev: f, Content: judge.Content{Bytes: is}}
	c.Decode(o.display(path), o.branch, o.rules())
	return o.putFiles(c)
}

// Broken lists the files of the branch that do not load.
func (o *Overlay) Broken() (paths []string) {
	for path := range o.quarantine {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	return paths
}

// Writes returns the writes so far.
func (o *Overlay) Writes() []*catalog.FileWrite { return o.writes }

func (o *Overlay) runPatiently(ctx context.Context, write func(context.Context) error) error {
	return write(ctx)
}

func (o *Overlay) openFiles() (contents, error) { return o.branch, nil }

func (o *Overlay) openSwap(t contents, path string) (f *fileSwap, src []byte, err error) {
	src, stamp, err := t.Read(path, folder.MaxFileBytes)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil, &catalog.Error{Code: catalog.CodeFileChanged,
			Message: path + " is in no commit of the proposal's branch; commit it first, or propose without it"}
	case err != nil:
		return nil, nil, err
	}
	return &fileSwap{path: path, stamp: stamp, had: src, Swap: atomicfile.Swap{Name: path, Old: stamp.Hash}}, src, nil
}

func (o *Overlay) createSwap(path string) (*fileSwap, error) {
	content, err := o.branch(path)
	if err == nil && (content != nil || o.fileAt(path) != nil) {
		err = fs.ErrExist
	}
	if err != nil {
		return nil, err
	}
	return &fileSwap{path: path, Swap: atomicfile.Swap{Name: path, Creates: true}}, nil
}

func (o *Overlay) makeFolder(string) error { return nil }

// noteDomains implements workspace: a proposal makes no record.
func (o *Overlay) noteDomains(*domainNotes) error { return nil }

// forgetDomains implements workspace.
func (o *Overlay) forgetDomains(*domainNotes) {}

func (o *Overlay) dropFolder(string) {}

func (o *Overlay) isLink(string) bool { return false }

// submit judges an update, and notes it.
func (o *Overlay) submit(_ context.Context, update *update) (id int64, err error) {
	u := newSubmission(update)
	if u.dry != nil {
		return 0, o.previewUpdate(u, o.branch)
	}
	if err := o.admitUpdate(u); err != nil {
		return 0, err
	}
	o.writes = append(o.writes, u.fileWrite())
	for _, f := range u.files {
		o.changed[f.Name] = f.Content
		if f.Removes {
			o.changed[f.Name] = nil
		}
	}
	return 0, o.putFiles(u.changed...)
}

package edits

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
	Origins
	base    *Base
	writer  Writer
	layer   Layer
	branch  Stored            // the files of the proposal's branch
	changed map[string][]byte // of these, what was written; nil: removed
	writes  []*catalog.FileWrite
}

// A Layer is Facts of which some files are replaced; *resolver.Overlay implements it.
type Layer interface {
	Facts
	// Put makes a change of files part of the Layer. A file without a Row is gone or cannot be read.
	Put(files ...catalog.FileChange) error
}

// NewOverlay returns what is live with a Difference from it. layer must have no files yet.
func NewOverlay(live *Base, d *compare.Difference, layer Layer) (*Overlay, error) {
	o := &Overlay{layer: layer, changed: map[string][]byte{}}
	o.branch = Over(o.changed, d.After)
	live.Known.RLock()
	under := live.Table
	live.Known.RUnlock()
	o.base = NewBase(live.o)
	o.base.Facts, o.base.Committing, o.base.Known = layer, live.Committing, live.Known
	o.base.Table.LieOver(under)
	o.writer, o.Origins = Writer{Base: o.base, ws: onBranch{o}, submit: o.submit}, OriginsOf(o.base)
	files, err := o.base.candidatesOf(d, o.branch)
	if err != nil {
		return nil, err
	}
	return o, o.putFiles(files...)
}

// Write is Writer.Write for the files of the branch: the writes are noted, and change no file.
func (o *Overlay) Write(ctx context.Context, e *catalog.Edit) (Outcome, error) {
	return o.writer.Write(ctx, e)
}

// putFiles makes files of the branch part of the Overlay.
func (o *Overlay) putFiles(files ...*judge.Candidate) error {
	changes := make([]catalog.FileChange, len(files))
	for i, c := range files {
		changes[i].Path = c.Path
		o.base.Table.Drop(c.Path)
		delete(o.base.Quarantine, c.Path)
		o.base.Table.Hide(c.Path)
		switch {
		case c.Gone:
		case c.Declared == nil:
			o.base.Quarantine[c.Path] = &judge.Quarantined{Diags: c.Diags}
		default:
			changes[i].Row = &catalog.FileRow{Stamp: c.Stamp, Deps: c.Deps}
			changes[i].Declared, changes[i].Bytes = c.Declared, c.Bytes
			o.base.Table.Put(&judge.File{Path: c.Path, Stamp: c.Stamp, Deps: c.Deps, Claims: c.Claims, Objects: len(c.Refs),
				Counts: c.Counts})
		}
	}
	if err := o.layer.Put(changes...); err != nil {
		return err
	}
	sealing := o.layer.Sealing()
	o.base.Sealed = sealing != nil && sealing.Require
	return nil
}

// Bring makes a project's file part of the Overlay if the branch has another than is live: somebody has saved it, and
// not committed it yet. Without it, the ETags of reads are not those that writes compare with.
func (o *Overlay) Bring(project catalog.UUID) error {
	path, found := o.base.FileOf(judge.ProjectClaim(project))
	if !found || o.base.Table.Hides(path) {
		return nil
	}
	is, err := o.branch(path)
	if err != nil || is == nil {
		return err // what is nowhere in the branch is shown as it is live
	}
	live, err := o.base.Facts.LastGood(path)
	if err != nil {
		return err
	}
	f := o.base.FileAt(path)
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
	c.Decode(o.base.Display(path), o.branch, o.base.Rules())
	return o.putFiles(c)
}

// Broken lists the files of the branch that do not load.
func (o *Overlay) Broken() (paths []string) {
	for path := range o.base.Quarantine {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	return paths
}

// Writes returns the writes so far.
func (o *Overlay) Writes() []*catalog.FileWrite { return o.writes }

// onBranch is the Workspace of an Overlay.
type onBranch struct{ *Overlay }

func (o onBranch) RunPatiently(ctx context.Context, write func(context.Context) error) error {
	return write(ctx)
}

func (o onBranch) OpenFiles() (Contents, error) { return o.branch, nil }

func (o onBranch) OpenSwap(t Contents, path string) (f *Swap, src []byte, err error) {
	src, stamp, err := t.Read(path, folder.MaxFileBytes)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil, &catalog.Error{Code: catalog.CodeFileChanged,
			Message: path + " is in no commit of the proposal's branch; commit it first, or propose without it"}
	case err != nil:
		return nil, nil, err
	}
	return &Swap{Path: path, Stamp: stamp, Had: src, Swap: atomicfile.Swap{Name: path, Old: stamp.Hash}}, src, nil
}

func (o onBranch) CreateSwap(path string) (*Swap, error) {
	content, err := o.branch(path)
	if err == nil && (content != nil || o.base.FileAt(path) != nil) {
		err = fs.ErrExist
	}
	if err != nil {
		return nil, err
	}
	return &Swap{Path: path, Swap: atomicfile.Swap{Name: path, Creates: true}}, nil
}

func (o onBranch) MakeFolder(string) error { return nil }

// NoteDomains implements Workspace: a proposal makes no record.
func (o onBranch) NoteDomains(*DomainNotes) error { return nil }

// ForgetDomains implements Workspace.
func (o onBranch) ForgetDomains(*DomainNotes) {}

func (o onBranch) DropFolder(string) {}

func (o onBranch) IsLink(string) bool { return false }

// submit judges an update, and notes it.
func (o *Overlay) submit(_ context.Context, u *Update) (id int64, err error) {
	if u.Preview != nil {
		return 0, o.base.Describe(u, o.branch)
	}
	if err := o.base.Admit(u); err != nil {
		return 0, err
	}
	o.writes = append(o.writes, u.FileWrite())
	for _, f := range u.Files {
		o.changed[f.Name] = f.Content
		if f.Removes {
			o.changed[f.Name] = nil
		}
	}
	return 0, o.putFiles(u.Changed...)
}

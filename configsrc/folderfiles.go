package configsrc

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"fingerpost/configsrc/atomicfile"
	"fingerpost/configsrc/edits"
	"fingerpost/configsrc/folder"
	"fingerpost/configsrc/names"
)

// A configFolder is the edits.Workspace of what is accepted.
type configFolder struct {
	*base
	report *reporter
	git    *gitGuard
	folder atomicfile.Folder // config files and the files next to them
}

func newConfigFolder(b *base, report *reporter) *configFolder {
	return &configFolder{base: b, report: report, git: newGitGuard(b.realDir),
		folder: atomicfile.Folder{Dir: b.o.Clone.Dir(b.o.Dir), Disk: b.o.Disk, Log: b.o.Logger}}
}

// OpenFiles implements edits.Workspace.
func (d *configFolder) OpenFiles() (edits.Contents, error) {
	t, err := d.OpenTree()
	if errors.Is(err, fs.ErrNotExist) { // such as during a checkout
		return nil, edits.Busy("the config folder is not there")
	}
	return t, err
}

// RunPatiently implements edits.Workspace.
func (d *configFolder) RunPatiently(ctx context.Context, write func(context.Context) error) error {
	if err := d.checkWritable(d.report); err != nil {
		return err
	}
	return d.git.runPatiently(ctx, write)
}

// OpenSwap implements edits.Workspace.
func (d *configFolder) OpenSwap(t edits.Contents, path string) (f *edits.Swap, src []byte, err error) {
	root, err := d.realDir()
	if err != nil {
		return nil, nil, edits.WriteFault("open the config folder", err)
	}
	target, err := atomicfile.Target(d.folder.Dir, path)
	if err != nil {
		return nil, nil, edits.WriteFault("edit "+path, err)
	}
	src, stamp, err := t.Read(path, folder.MaxFileBytes)
	if err != nil {
		return nil, nil, edits.WriteFault("read "+path, err)
	}
	info, err := d.o.Disk.Stat(target)
	if err != nil {
		return nil, nil, edits.WriteFault("edit "+path, err)
	}
	f = &edits.Swap{Path: path, Stamp: stamp, Had: src, Swap: atomicfile.Swap{Folder: &d.folder, Name: path,
		Target: target, Like: info, Old: stamp.Hash}}
	if rel, err := filepath.Rel(root, target); err == nil {
		f.Path = filepath.ToSlash(rel)
	}
	return f, src, nil
}

// CreateSwap implements edits.Workspace.
func (d *configFolder) CreateSwap(path string) (*edits.Swap, error) {
	name := filepath.FromSlash(path)
	if _, err := os.Lstat(filepath.Join(d.folder.Dir, name)); err == nil {
		return nil, fs.ErrExist
	}
	root, err := d.realDir()
	if err != nil {
		return nil, edits.WriteFault("open the config folder", err)
	}
	return &edits.Swap{Path: path, Swap: atomicfile.Swap{Folder: &d.folder, Name: path,
		Target: filepath.Join(root, name), Creates: true}}, nil
}

// IsLink implements edits.Workspace.
func (d *configFolder) IsLink(path string) bool {
	info, err := os.Lstat(filepath.Join(d.folder.Dir, filepath.FromSlash(path)))
	return err == nil && info.Mode()&fs.ModeSymlink != 0
}

// MakeFolder implements edits.Workspace, durably.
func (d *configFolder) MakeFolder(name string) error {
	root, err := d.o.Clone.Open(d.o.Dir)
	if err != nil {
		return edits.WriteFault("open the config folder", err)
	}
	defer root.Close()
	switch err := root.Mkdir(name, 0o777); {
	case errors.Is(err, fs.ErrExist):
		return nil
	case err != nil:
		return edits.WriteFault("make the folder "+name, err)
	}
	return atomicfile.SyncFolder(d.o.Disk, d.folder.Dir)
}

// DropFolder implements edits.Workspace.
func (d *configFolder) DropFolder(name string) {
	if root, err := d.o.Clone.Open(d.o.Dir); err == nil {
		_ = atomicfile.RemoveFolder(root, name)
		root.Close()
	}
}

// NoteDomains implements edits.Workspace.
func (d *configFolder) NoteDomains(n *edits.DomainNotes) error {
	return d.setDomainNotes(n, n.Is)
}

// ForgetDomains implements edits.Workspace: the write was refused.
func (d *configFolder) ForgetDomains(n *edits.DomainNotes) {
	if err := d.setDomainNotes(n, n.Had); err != nil {
		d.o.Logger.Warn("what was noted for a write that was refused stays", "error", err)
	}
}

// setDomainNotes gives the names of n.Is the notes in to.
func (d *configFolder) setDomainNotes(n *edits.DomainNotes, to map[string]string) error {
	values := map[string][]byte{}
	for name := range n.Is {
		var value []byte
		if note := to[name]; note != "" {
			value = []byte(note)
		}
		values[names.NoteName(n.Project, name)] = value
	}
	if len(values) == 0 {
		return nil
	}
	return d.o.Sink.SetNamed(values)
}

package configsrc

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"fingerpost/configsrc/atomicfile"
	"fingerpost/configsrc/folder"
	"fingerpost/configsrc/names"
)

// A configFolder is the workspace of what is accepted.
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

// openFiles implements workspace.
func (d *configFolder) openFiles() (contents, error) {
	t, err := d.openTree()
	if errors.Is(err, fs.ErrNotExist) { // such as during a checkout
		return nil, busy("the config folder is not there")
	}
	return t, err
}

// runPatiently implements workspace.
func (d *configFolder) runPatiently(ctx context.Context, write func(context.Context) error) error {
	if err := d.checkWritable(d.report); err != nil {
		return err
	}
	return d.git.runPatiently(ctx, write)
}

// openSwap implements workspace.
func (d *configFolder) openSwap(t contents, path string) (f *fileSwap, src []byte, err error) {
	root, err := d.realDir()
	if err != nil {
		return nil, nil, writeFault("open the config folder", err)
	}
	target, err := atomicfile.Target(d.folder.Dir, path)
	if err != nil {
		return nil, nil, writeFault("edit "+path, err)
	}
	src, stamp, err := t.Read(path, folder.MaxFileBytes)
	if err != nil {
		return nil, nil, writeFault("read "+path, err)
	}
	info, err := d.o.Disk.Stat(target)
	if err != nil {
		return nil, nil, writeFault("edit "+path, err)
	}
	f = &fileSwap{path: path, stamp: stamp, had: src, Swap: atomicfile.Swap{Folder: &d.folder, Name: path, Target: target,
		Like: info, Old: stamp.Hash}}
	if rel, err := filepath.Rel(root, target); err == nil {
		f.path = filepath.ToSlash(rel)
	}
	return f, src, nil
}

// createSwap implements workspace.
func (d *configFolder) createSwap(path string) (*fileSwap, error) {
	name := filepath.FromSlash(path)
	if _, err := os.Lstat(filepath.Join(d.folder.Dir, name)); err == nil {
		return nil, fs.ErrExist
	}
	root, err := d.realDir()
	if err != nil {
		return nil, writeFault("open the config folder", err)
	}
	return &fileSwap{path: path, Swap: atomicfile.Swap{Folder: &d.folder, Name: path, Target: filepath.Join(root, name),
		Creates: true}}, nil
}

// isLink implements workspace.
func (d *configFolder) isLink(path string) bool {
	info, err := os.Lstat(filepath.Join(d.folder.Dir, filepath.FromSlash(path)))
	return err == nil && info.Mode()&fs.ModeSymlink != 0
}

// makeFolder implements workspace, durably.
func (d *configFolder) makeFolder(name string) error {
	root, err := d.o.Clone.Open(d.o.Dir)
	if err != nil {
		return writeFault("open the config folder", err)
	}
	defer root.Close()
	switch err := root.Mkdir(name, 0o777); {
	case errors.Is(err, fs.ErrExist):
		return nil
	case err != nil:
		return writeFault("make the folder "+name, err)
	}
	return atomicfile.SyncFolder(d.o.Disk, d.folder.Dir)
}

// dropFolder implements workspace.
func (d *configFolder) dropFolder(name string) {
	if root, err := d.o.Clone.Open(d.o.Dir); err == nil {
		_ = atomicfile.RemoveFolder(root, name)
		root.Close()
	}
}

// noteDomains implements workspace.
func (d *configFolder) noteDomains(n *domainNotes) error {
	return d.setDomainNotes(n, n.is)
}

// forgetDomains implements workspace: the write was refused.
func (d *configFolder) forgetDomains(n *domainNotes) {
	if err := d.setDomainNotes(n, n.had); err != nil {
		d.o.Logger.Warn("what was noted for a write that was refused stays", "error", err)
	}
}

// setDomainNotes gives the names of n.is the notes in to.
func (d *configFolder) setDomainNotes(n *domainNotes, to map[string]string) error {
	values := map[string][]byte{}
	for name := range n.is {
		var value []byte
		if note := to[name]; note != "" {
			value = []byte(note)
		}
		values[names.NoteName(n.project, name)] = value
	}
	if len(values) == 0 {
		return nil
	}
	return d.o.Sink.SetNamed(values)
}

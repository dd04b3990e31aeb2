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

// The files of the config folder, for writes: Source is the workspace of its own base.

// open implements workspace.
func (s *Source) open() (contents, error) {
	t, err := s.openTree()
	if errors.Is(err, fs.ErrNotExist) { // such as during a checkout
		return nil, busy("the config folder is not there")
	}
	return t, err
}

// patient implements workspace.
func (s *Source) patient(ctx context.Context, write func(context.Context) error) error {
	if err := s.ready(s.reporter); err != nil {
		return err
	}
	return s.git.patient(ctx, write)
}

// swap implements workspace.
func (s *Source) swap(t contents, path string) (f *fileSwap, src []byte, err error) {
	root, err := s.realDir()
	if err != nil {
		return nil, nil, writeFault("open the config folder", err)
	}
	target, err := atomicfile.Target(s.folder.Dir, path)
	if err != nil {
		return nil, nil, writeFault("edit "+path, err)
	}
	src, stamp, err := t.Read(path, folder.MaxFileBytes)
	if err != nil {
		return nil, nil, writeFault("read "+path, err)
	}
	info, err := s.o.Disk.Stat(target)
	if err != nil {
		return nil, nil, writeFault("edit "+path, err)
	}
	f = &fileSwap{path: path, stamp: stamp, had: src, Swap: atomicfile.Swap{Folder: &s.folder, Name: path, Target: target,
		Like: info, Old: stamp.Hash}}
	if rel, err := filepath.Rel(root, target); err == nil {
		f.path = filepath.ToSlash(rel)
	}
	return f, src, nil
}

// create implements workspace.
func (s *Source) create(path string) (*fileSwap, error) {
	name := filepath.FromSlash(path)
	if _, err := os.Lstat(filepath.Join(s.folder.Dir, name)); err == nil {
		return nil, fs.ErrExist
	}
	root, err := s.realDir()
	if err != nil {
		return nil, writeFault("open the config folder", err)
	}
	return &fileSwap{path: path, Swap: atomicfile.Swap{Folder: &s.folder, Name: path, Target: filepath.Join(root, name),
		Creates: true}}, nil
}

// isLink implements workspace.
func (s *Source) isLink(path string) bool {
	info, err := os.Lstat(filepath.Join(s.folder.Dir, filepath.FromSlash(path)))
	return err == nil && info.Mode()&fs.ModeSymlink != 0
}

// makeFolder implements workspace, durably.
func (s *Source) makeFolder(name string) error {
	root, err := s.o.Clone.Open(s.o.Dir)
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
	return atomicfile.SyncFolder(s.o.Disk, s.folder.Dir)
}

// dropFolder implements workspace.
func (s *Source) dropFolder(name string) {
	if root, err := s.o.Clone.Open(s.o.Dir); err == nil {
		_ = atomicfile.RemoveFolder(root, name)
		root.Close()
	}
}

// noteDomains implements workspace.
func (s *Source) noteDomains(n *domainNotes) error {
	return s.setDomainNotes(n, n.is)
}

// forgetNotes implements workspace: the write was refused.
func (s *Source) forgetNotes(n *domainNotes) {
	if err := s.setDomainNotes(n, n.had); err != nil {
		s.o.Logger.Warn("what was noted for a write that was refused stays", "error", err)
	}
}

// setDomainNotes gives the names of n.is the notes in to.
func (s *Source) setDomainNotes(n *domainNotes, to map[string]string) error {
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
	return s.o.Sink.SetNamed(values)
}

// clearLeftovers finishes or undoes what interrupted writes have left, on a node that may write, and returns the files
// that this changes.
func (s *Source) clearLeftovers(paths []string) (changed []string) {
	if s.o.ReadOnly {
		return nil
	}
	return s.folder.Clear(paths)
}

package api_test

import (
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"fingerpost/configsrc/atomicfile"
)

// An inode is a file's content, and whether it survives a power cut.
type inode struct {
	data   string
	synced bool
}

// names are a folder's files.
type names map[string]*inode

// A crashDisk does the steps of writes in a real folder, and models what a power cut would leave at this moment: of a
// file that was not synced, anything or nothing; of the changes of a folder since its last sync, a prefix as long as
// the journal has got.
type crashDisk struct {
	atomicfile.OSDisk
	root string // with links followed
	// Faults to inject, which the tests must detect.
	noFileSync, noFolderSync, plainRename bool
	before                                func(step string) // is called before each step, as a person might come in
	after                                 func(step string) // is called after each step, with mu held

	mu      sync.Mutex             // held during each step, so that the folder and this are always in step
	history map[string][]names     // by folder: its states since its last sync, the oldest first
	was     map[string]string      // by temporary file: what its target held when it was made
	looked  map[string]fs.FileInfo // by name: the file that was there when it was looked at last
}

// begin takes the folder's content as synced.
func (d *crashDisk) begin(dir string) (err error) {
	if d.root, err = filepath.EvalSymlinks(dir); err != nil {
		return err
	}
	d.history, d.was = map[string][]names{}, map[string]string{}
	d.looked = map[string]fs.FileInfo{}
	return filepath.WalkDir(d.root, func(name string, e os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir():
			d.history[name] = []names{{}}
		case e.Type().IsRegular():
			b, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			d.newest(filepath.Dir(name))[filepath.Base(name)] = &inode{string(b), true}
		}
		return nil
	})
}

func (d *crashDisk) newest(dir string) names { return d.history[dir][len(d.history[dir])-1] }

// step runs do and then follow, which updates the model.
func (d *crashDisk) step(what string, do func() error, follow func()) error {
	if d.before != nil {
		d.before(what)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := do(); err != nil {
		return err
	}
	follow()
	if d.after != nil {
		d.after(what)
	}
	return nil
}

// change records a new state of the folder that contains name.
func (d *crashDisk) change(name string, f func(n names)) {
	dir := filepath.Dir(name)
	next := maps.Clone(d.newest(dir))
	f(next)
	d.history[dir] = append(d.history[dir], next)
}

func (d *crashDisk) CreateTemp(dir, pattern string, perm fs.FileMode) (f atomicfile.TempFile, err error) {
	node := new(inode)
	err = d.step("create", func() (err error) { f, err = d.OSDisk.CreateTemp(dir, pattern, perm); return err }, func() {
		d.change(f.Name(), func(n names) { n[filepath.Base(f.Name())] = node })
	})
	if err != nil {
		return nil, err
	}
	return &crashTemp{f, d, node}, nil
}

// A crashTemp is a temporary file of a crashDisk.
type crashTemp struct {
	atomicfile.TempFile
	d    *crashDisk
	node *inode
}

func (f *crashTemp) Write(b []byte) (n int, err error) {
	err = f.d.step("write", func() (err error) { n, err = f.TempFile.Write(b); return err }, func() {
		f.node.data, f.node.synced = f.node.data+string(b[:n]), false
	})
	return n, err
}

func (f *crashTemp) Sync() error {
	return f.d.step("sync", f.TempFile.Sync, func() { f.node.synced = !f.d.noFileSync })
}

func (d *crashDisk) Rename(from, to string) error {
	var was string
	var hide bool // a removal, of which nobody sees what it has taken away
	move := func() error {
		was, hide = d.was[to]
		hide = hide && d.plainRename
		if err := d.OSDisk.Rename(from, to); err != nil || !hide {
			return err
		}
		return os.WriteFile(to, []byte(was), 0o644)
	}
	return d.step("rename", move, func() {
		a, b := filepath.Base(from), filepath.Base(to)
		d.change(to, func(n names) {
			n[b] = n[a]
			delete(n, a)
			if hide {
				n[b], d.looked[to] = &inode{was, true}, d.looked[from]
			}
		})
		if parts := strings.SplitN(strings.TrimSuffix(b, ".tmp"), "-", 5); len(parts) == 5 {
			if target := d.newest(filepath.Dir(to))[parts[4]]; target != nil {
				d.was[to] = target.data
			}
		}
	})
}

func (d *crashDisk) Exchange(a, b string) error {
	swap := d.OSDisk.Exchange
	if d.plainRename {
		swap = d.replace
	}
	return d.step("exchange", func() error { return swap(a, b) }, func() {
		d.looked[a], d.looked[b] = d.looked[b], nil
		d.change(a, func(n names) {
			n[filepath.Base(a)], n[filepath.Base(b)] = n[filepath.Base(b)], n[filepath.Base(a)]
		})
	})
}

// replace renames a over b and pretends that the content that b had when a was made has come out.
func (d *crashDisk) replace(a, b string) error {
	if err := d.OSDisk.Rename(a, b); err != nil {
		return err
	}
	return os.WriteFile(a, []byte(d.was[a]), 0o644)
}

// Lstat takes what an exchange has brought under a name for what was looked at before, with plainRename.
func (d *crashDisk) Lstat(name string) (fs.FileInfo, error) {
	info, err := d.OSDisk.Lstat(name)
	d.mu.Lock()
	defer d.mu.Unlock()
	if was := d.looked[name]; d.plainRename && was != nil {
		return was, nil
	}
	if err == nil {
		d.looked[name] = info
	}
	return info, err
}

func (d *crashDisk) Link(from, to string) error {
	return d.step("link", func() error { return d.OSDisk.Link(from, to) }, func() {
		d.change(to, func(n names) { n[filepath.Base(to)] = n[filepath.Base(from)] })
	})
}

func (d *crashDisk) Remove(name string) error {
	return d.step("remove", func() error { return d.OSDisk.Remove(name) }, func() {
		d.change(name, func(n names) { delete(n, filepath.Base(name)) })
	})
}

func (d *crashDisk) SyncFolder(dir string) error {
	return d.step("sync folder", func() error { return d.OSDisk.SyncFolder(dir) }, func() {
		if !d.noFolderSync {
			d.history[dir] = []names{d.newest(dir)}
		}
	})
}

func (d *crashDisk) ReadFile(name string) (b []byte, err error) {
	err = d.step("read back", func() (err error) { b, err = d.OSDisk.ReadFile(name); return err }, func() {
	})
	return b, err
}

// save replaces a file as a careful editor does, and calls saved in the same step, so that no power cut comes between
// the two. It must not be called within a step.
func (d *crashDisk) save(name, content string, saved func()) error {
	name = filepath.Join(d.root, name)
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := os.WriteFile(name+"~", []byte(content), 0o644); err != nil {
		return err
	}
	if err := os.Rename(name+"~", name); err != nil {
		return err
	}
	d.change(name, func(n names) { n[filepath.Base(name)] = &inode{content, true} })
	d.history[filepath.Dir(name)] = []names{d.newest(filepath.Dir(name))}
	saved()
	return nil
}

// The states in which unsynced content may survive a power cut.
var tears = []func(data string) string{
	func(data string) string { return data },
	func(data string) string { return "" },
	func(data string) string { return data[:len(data)/2] },
	func(data string) string { return strings.Repeat("\x00", len(data)) },
}

// images returns the trees that a power cut at this moment may leave: content by path. The first is what a kill leaves.
// The caller holds mu.
func (d *crashDisk) images() (all []map[string]string) {
	most := 1
	for _, h := range d.history {
		most = max(most, len(h))
	}
	for back := range most { // how many changes the journal has not got to
		if back > 6 && back < most-6 && back%5 != 0 {
			continue // of many writes at the same time
		}
		for i, tear := range tears {
			image, torn := map[string]string{}, false
			for dir, h := range d.history {
				for name, node := range h[max(len(h)-1-back, 0)] {
					content := node.data
					if !node.synced {
						content, torn = tear(content), true
					}
					rel, _ := filepath.Rel(d.root, filepath.Join(dir, name))
					image[filepath.ToSlash(rel)] = content
				}
			}
			if i == 0 || torn {
				all = append(all, image)
			}
		}
	}
	return all
}

// fold writes a tree as one text.
func fold(tree map[string]string) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(tree)) {
		b.WriteString(path.Clean(name) + "\x00" + tree[name] + "\x00")
	}
	return b.String()
}

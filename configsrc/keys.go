package configsrc

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"slices"

	"fingerpost/configsrc/atomicfile"
	"fingerpost/configsrc/hcledit"
	"fingerpost/configsrc/hclfile"
	"fingerpost/resolver/catalog"
)

// KeysFile is the file of the first key. Every other key goes to the first file, by path, that declares one.
const KeysFile = "keys.hcl"

// EdgesFile is the file of the first edge. Every other edge goes to the last file, by path, that declares one.
const EdgesFile = "edges.hcl"

// The writes below change keys and have the promises of the writes in write.go. permit decides whether the change is
// allowed. It runs directly before the files change, on the goroutine that looks, while no other key changes; its error
// is returned as it is.

// CreateKey declares a new key.
func (s *Source) CreateKey(ctx context.Context, k *catalog.Key, permit func() error) error {
	if _, taken := s.fileOf(claimOf("key", k.Name)); taken {
		return KeyTaken(k.Name)
	}
	path := KeysFile
	if files := s.filesOfKeys(s.o.Sink.KeyNames()); len(files) > 0 {
		path = files[0]
	}
	return s.editKeys(ctx, path, permit, func(src []byte, keys []catalog.Key) ([]byte, []catalog.Key, error) {
		if findKey(keys, k.Name) >= 0 {
			return nil, nil, KeyTaken(k.Name)
		}
		src, err := hcledit.AddKey(src, k)
		return src, append(keys, *k), err
	})
}

// RotateKey replaces the key with the name by the two keys that rotate returns. rotate gets the key as its file
// declares it now; it may run again, on newer content.
func (s *Source) RotateKey(ctx context.Context, name string, rotate func(k catalog.Key) (*catalog.Rotation, error),
	permit func() error) error {
	return s.editKey(ctx, name, permit, func(src []byte, keys []catalog.Key, at int) ([]byte, []catalog.Key, error) {
		r, err := rotate(keys[at])
		if err != nil {
			return nil, nil, err
		}
		src, err = hcledit.RotateKey(src, name, r)
		keys[at] = r.Old
		return src, append(keys, r.New), err
	})
}

// RevokeKey removes the key with the name, and its file if that declares nothing else.
func (s *Source) RevokeKey(ctx context.Context, name string, permit func() error) error {
	return s.editKey(ctx, name, permit, func(src []byte, keys []catalog.Key, at int) ([]byte, []catalog.Key, error) {
		src, err := hcledit.RemoveKey(src, name)
		return src, slices.Delete(keys, at, at+1), err
	})
}

// KeyTaken is the CONFLICT with a key that exists.
func KeyTaken(name string) error {
	e := &catalog.Error{Code: catalog.CodeConflict, Message: fmt.Sprintf("there is a key %q already", name)}
	e.Problems.Addf("name", "is taken by another key: revoke or rotate that one, or choose another name")
	return e
}

// NearestWord returns the option that got was probably meant to be, "" if none is near.
func NearestWord(got string, options []string) string { return hclfile.Nearest(got, options) }

// filesOfKeys lists the files that declare the keys with these names, in path order.
func (s *Source) filesOfKeys(names []string) (paths []string) {
	for _, name := range names {
		if path, ok := s.fileOf(claimOf("key", name)); ok {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

func findKey(keys []catalog.Key, name string) int {
	return slices.IndexFunc(keys, func(k catalog.Key) bool { return k.Name == name })
}

// A keyEdit returns the new content of a file, and the keys that it must declare. It may change keys, which are those
// that src declares.
type keyEdit func(src []byte, keys []catalog.Key) ([]byte, []catalog.Key, error)

// editKey edits the file that declares the key with the name.
func (s *Source) editKey(ctx context.Context, name string, permit func() error,
	rewrite func(src []byte, keys []catalog.Key, at int) ([]byte, []catalog.Key, error)) error {
	path, ok := s.fileOf(claimOf("key", name))
	if !ok {
		return &catalog.Error{Code: catalog.CodeNotFound, Message: "no such key"}
	}
	return s.editKeys(ctx, path, permit, func(src []byte, keys []catalog.Key) ([]byte, []catalog.Key, error) {
		at := findKey(keys, name)
		if at < 0 {
			return nil, nil, &catalog.Error{Code: catalog.CodeFileChanged,
				Message: "the key is no longer in " + path + ", where it was; try again when the files have been reloaded"}
		}
		return rewrite(src, keys, at)
	})
}

// editKeys changes the keys of one file. A write that lost against a save at the same time is repeated once.
func (s *Source) editKeys(ctx context.Context, path string, permit func() error, rewrite keyEdit) error {
	if err := s.ready(); err != nil {
		return err
	}
	for lost := 0; ; lost++ {
		err := s.patient(ctx, func() error { return s.editKeysOnce(ctx, path, permit, rewrite) })
		switch {
		case !errors.Is(err, atomicfile.ErrChanged) && !errors.Is(err, fs.ErrExist):
			return err
		case lost > 0:
			return &catalog.Error{Code: catalog.CodeFileChanged, Message: err.Error()}
		}
	}
}

func (s *Source) editKeysOnce(ctx context.Context, path string, permit func() error, rewrite keyEdit) error {
	defer s.writers.lock(path)()
	t, err := s.open()
	if err != nil {
		return writeFault("edit "+path, err)
	}
	defer t.close()
	u := &update{permit: permit, done: make(chan error, 1)}
	if u.file, u.was, err = s.openKeys(t, path, writerOf(ctx).covers); err != nil {
		return err
	}
	want := *u.was.declared
	out, keys, err := rewrite(u.was.bytes, slices.Clone(want.Keys))
	switch {
	case errors.Is(err, hcledit.ErrExists): // a person has given another key the name that a rotation gives
		e := &catalog.Error{Code: catalog.CodeConflict, Message: "the name that the change gives is taken"}
		e.Problems.Addf("name", "%v", err)
		return e
	case err != nil:
		return err
	}
	// Decode the result as a reload does, and prove that it contains the intended change and nothing else.
	c := &candidate{path: path, bytes: out, stamp: u.was.stamp}
	c.decode(s.display(path), t)
	if want.Keys = keys; len(keys) == 0 {
		want.Keys = nil
	}
	switch {
	case c.fault != nil:
		return c.fault
	case c.declared == nil:
		return s.wouldBreak(c.diags, writerOf(ctx).covers)
	case !reflect.DeepEqual(&want, c.declared):
		return fmt.Errorf("edit %s: %w", path, hcledit.ErrVerify)
	}
	if len(c.refs) == 0 && !s.isLink(path) {
		c = &candidate{path: path, gone: true}
		u.file.Removes, u.file.Like = true, nil
	}
	u.c, u.file.c, u.file.Content = c, c, c.bytes
	u.files = []*fileSwap{u.file}
	return s.submit(ctx, u)
}

// openKeys opens a file that gets or has keys. One that does not exist is empty.
func (s *Source) openKeys(t contents, path string, covers Coverage) (f *fileSwap, was *candidate, err error) {
	if path == KeysFile {
		if f, err = s.create(path); !errors.Is(err, fs.ErrExist) {
			return f, &candidate{declared: new(catalog.Declared)}, err
		}
	}
	f, was, _, err = s.openFile(t, path, covers)
	return f, was, err
}

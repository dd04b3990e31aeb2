package edits

import (
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"slices"

	"fingerpost/configsrc/hcledit"
	"fingerpost/configsrc/judge"
	"fingerpost/resolver/catalog"
)

// KeysFile is the file of the first key. Every other key goes to the first file, by path, that declares one.
const KeysFile = "keys.hcl"

// EdgesFile is the file of the first edge. Every other edge goes to the last file, by path, that declares one.
const EdgesFile = "edges.hcl"

// A keyTarget is the block of a key.
type keyTarget struct {
	edit *catalog.KeyEdit
	want []catalog.Key // the keys of the file after the edit
}

func (k *keyTarget) find(w *attempt) (path string, err error) {
	path, exists := w.FileOf(judge.ClaimOf("key", k.edit.Name))
	switch {
	case k.edit.Create == nil && !exists:
		return "", catalog.NotFound("key")
	case k.edit.Create == nil:
		return path, nil
	case exists:
		return "", KeyTaken(k.edit.Name)
	}
	var holders []catalog.ListHolder
	for _, name := range w.Facts.KeyNames() {
		holders = append(holders, catalog.ListHolder{Kind: catalog.KindKey, Name: name})
	}
	return w.firstOf(holders, KeysFile), nil
}

// firstOf returns the first file, by path, that declares one of some keys or webhooks; else the path of a new one.
func (s *Base) firstOf(holders []catalog.ListHolder, path string) string {
	if files := s.filesOf(holders); len(files) > 0 {
		return files[0]
	}
	return path
}

func (k *keyTarget) read(w *attempt) error {
	return w.readOrCreate(k.edit.Create != nil && w.path == KeysFile)
}

// readOrCreate reads the file of a key or webhook. creates says that it may not exist yet.
func (w *attempt) readOrCreate(creates bool) (err error) {
	if creates {
		if w.file, err = w.ws.CreateSwap(w.path); !errors.Is(err, fs.ErrExist) {
			w.was = &judge.Content{Declared: new(catalog.Declared)}
			return err
		}
	}
	w.file, w.was, w.decoded, err = w.openFile(w.path)
	return err
}

func (k *keyTarget) change(w *attempt) ([]byte, error) {
	w.update.permit = k.edit.Permit
	src, keys := w.was.Bytes, slices.Clone(w.was.Declared.Keys)
	at := findKey(keys, k.edit.Name)
	switch {
	case k.edit.Create != nil && at >= 0:
		return nil, KeyTaken(k.edit.Name)
	case k.edit.Create != nil:
		k.want = append(keys, *k.edit.Create)
		return hcledit.AddKey(src, k.edit.Create)
	case at < 0:
		return nil, &catalog.Error{Code: catalog.CodeFileChanged, Message: "the key is no longer in " + w.path +
			", where it was; try again when the files have been reloaded"}
	case k.edit.Rotate == nil:
		k.want = slices.Delete(keys, at, at+1)
		return hcledit.RemoveKey(src, k.edit.Name)
	}
	r, err := k.edit.Rotate(keys[at])
	if err != nil {
		return nil, err
	}
	keys[at] = r.Old
	k.want = append(keys, r.New)
	content, err := hcledit.RotateKey(src, k.edit.Name, r)
	if errors.Is(err, hcledit.ErrExists) { // a person has given another key the name that the rotation gives
		e := &catalog.Error{Code: catalog.CodeConflict, Message: "the name that the change gives is taken"}
		e.Problems.Addf("name", "%v", err)
		return nil, e
	}
	return content, err
}

func (k *keyTarget) prove(w *attempt, result *judge.Candidate) error {
	want := *w.was.Declared
	if want.Keys = k.want; len(want.Keys) == 0 {
		want.Keys = nil
	}
	return w.proveDeclares(result, &want)
}

// proveDeclares refuses an edit whose file does not declare exactly what is wanted.
func (w *attempt) proveDeclares(result *judge.Candidate, want *catalog.Declared) error {
	switch {
	case result.Declared == nil:
		return w.wouldBreak(result.Diags, w.edit.Covers)
	case !reflect.DeepEqual(want, result.Declared):
		return fmt.Errorf("edit %s: %w", w.path, hcledit.ErrVerify)
	}
	return nil
}

func findKey(keys []catalog.Key, name string) int {
	return slices.IndexFunc(keys, func(k catalog.Key) bool { return k.Name == name })
}

// KeyTaken is the CONFLICT with a key that exists.
func KeyTaken(name string) error {
	e := &catalog.Error{Code: catalog.CodeConflict, Message: fmt.Sprintf("there is a key %q already", name)}
	e.Problems.Addf("name", "is taken by another key: revoke or rotate that one, or choose another name")
	return e
}

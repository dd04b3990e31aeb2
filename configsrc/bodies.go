package configsrc

import (
	"bytes"
	"fmt"
	"path"

	"fingerpost/configsrc/atomicfile"
	"fingerpost/configsrc/hcledit"
	"fingerpost/resolver/catalog"
)

// A bodySwap is new content for a further file of an update: text that a template takes by file(), or a config file
// with keys, see keyfiles.go.
type bodySwap struct {
	c     *candidate // what a config file then declares; nil for text
	path  string     // below the config folder
	stamp catalog.Stamp
	file  atomicfile.Swap
}

// bodySwaps reads the files that hold the draft's bodies and makes their new contents.
func (s *Source) bodySwaps(t *tree, e *edit) (swaps []*bodySwap, err error) {
	for _, b := range e.draft.Bodies() {
		if err := s.soleUse(e, b); err != nil {
			return nil, err
		}
		target, err := atomicfile.Target(s.o.Dir, b.Path)
		if err != nil {
			return nil, writeFault("edit "+b.Path, err)
		}
		now, stamp, err := t.readNamed(b.Path, maxBodyFileBytes)
		if err != nil {
			return nil, writeFault("read "+b.Path, err)
		}
		if !e.read(b.Path, stamp.Hash) {
			return nil, atomicfile.ErrChanged // since the config file was decoded
		}
		info, err := s.o.Disk.Stat(target)
		if err != nil {
			return nil, writeFault("edit "+b.Path, err)
		}
		swaps = append(swaps, &bodySwap{path: b.Path, file: atomicfile.Swap{Folder: &s.folder, Name: b.Path, Target: target, Content: bodyBytes(now, b.Text), Like: info, Old: stamp.Hash}})
	}
	return swaps, nil
}

// soleUse refuses to write a file that other templates use too: they would change with it. It also refuses to write a
// config file as text.
func (s *Source) soleUse(e *edit, b hcledit.BodyEdit) error {
	s.known.RLock()
	elsewhere := len(s.table.users[b.Path])
	if f := s.table.files[e.path]; s.table.users[b.Path][f] {
		elsewhere--
	}
	s.known.RUnlock()
	why := ""
	switch {
	case isConfigName(path.Base(b.Path)):
		why = "which is a config file"
	case b.Shared, elsewhere > 0:
		why = "from which something else takes its text, too"
	default:
		return nil
	}
	return &catalog.Error{Code: catalog.CodeExpression, Message: fmt.Sprintf("%s:%d:%d: %s is file(%q), %s; give it a file or a text of its own first",
		e.path, b.Pos.Line, b.Pos.Column, b.Where, b.Path, why)}
}

// read reports whether the file at path had this hash when the config file was decoded.
func (e *edit) read(path string, hash [32]byte) bool {
	for _, d := range e.deps {
		if d.Path == path {
			return d.Stamp.Hash == hash
		}
	}
	return false
}

var byteOrderMark = []byte("\xef\xbb\xbf")

// bodyBytes returns the file content for a text, given the previous content: the exact text, after the byte order mark
// if there was one. A text that begins with a mark gets a second one before it, because readers drop the first.
func bodyBytes(was []byte, text string) []byte {
	out := []byte(text)
	if bytes.HasPrefix(was, byteOrderMark) || bytes.HasPrefix(out, byteOrderMark) {
		out = append(bytes.Clone(byteOrderMark), out...)
	}
	return out
}

// contents returns the new bytes by path, for decoding.
func contents(swaps []*bodySwap) map[string][]byte {
	all := make(map[string][]byte, len(swaps))
	for _, b := range swaps {
		all[b.path] = b.file.Content
	}
	return all
}

// stageBodies is stage for the further files of the update.
func (u *update) stageBodies() error {
	for _, b := range u.bodies {
		if err := b.file.Stage(); err != nil {
			return err
		}
		b.stamp = stampOf(b.file.Info(), b.file.Content)
	}
	return nil
}

// depend records the new stamps of the files in place: of a body, on which the config file depends, or of a key list.
func (u *update) depend() {
	for _, b := range u.bodies {
		if b.c != nil {
			b.c.stamp = b.stamp
			continue
		}
		for i := range u.c.deps {
			if u.c.deps[i].Path == b.path {
				u.c.deps[i].Stamp = b.stamp
			}
		}
	}
}

package configsrc

import (
	"bytes"
	"fmt"
	"path"
	"slices"

	"fingerpost/configsrc/atomicfile"
	"fingerpost/configsrc/hcledit"
	"fingerpost/resolver/catalog"
)

// bodySwaps reads the files that hold the draft's bodies and makes their new contents.
func (s *base) bodySwaps(t contents, e *edit) (swaps []*fileSwap, err error) {
	for _, b := range e.draft.Bodies() {
		if err := s.soleUse(e, b); err != nil {
			return nil, err
		}
		f, now, err := s.place.swap(t, b.Path)
		if err != nil {
			return nil, err
		}
		if !e.read(b.Path, f.Old) {
			return nil, atomicfile.ErrChanged // since the config file was decoded
		}
		f.Content = bodyBytes(now, b.Text)
		swaps = append(swaps, f)
	}
	return swaps, nil
}

// soleUse refuses to write a file that other templates use too: they would change with it. It also refuses to write a
// config file as text.
func (s *base) soleUse(e *edit, b hcledit.BodyEdit) error {
	s.known.RLock()
	elsewhere := slices.ContainsFunc(s.table.usersOf(b.Path), func(f *file) bool { return f.path != e.was.path })
	s.known.RUnlock()
	why := ""
	switch {
	case isConfigName(path.Base(b.Path)):
		why = "which is a config file"
	case b.Shared, elsewhere:
		why = "from which something else takes its text, too"
	default:
		return nil
	}
	return &catalog.Error{Code: catalog.CodeExpression,
		Message: fmt.Sprintf("%s:%d:%d: %s is file(%q), %s; give it a file or a text of its own first",
			e.was.path, b.Pos.Line, b.Pos.Column, b.Where, b.Path, why)}
}

// read reports whether the file at path had this hash when the config file was decoded.
func (e *edit) read(path string, hash [32]byte) bool {
	for _, d := range e.was.deps {
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

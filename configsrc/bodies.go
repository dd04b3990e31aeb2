package configsrc

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"path/filepath"

	"fingerpost/configsrc/hcledit"
	"fingerpost/resolver/catalog"
)

// A bodySwap is new content for a further file of an update, on its way to its place with it: text that a template takes by
// file(), or a config file with keys, see keyfiles.go.
type bodySwap struct {
	c       *candidate // what a config file then declares; nil for text
	path    string     // below the config folder
	target  string     // links followed
	content []byte
	like    fs.FileInfo
	want    [32]byte // hash of the content that it replaces
	stamp   catalog.Stamp
	temp    string // the new content, synced, beside the file; what was there, once it is in place
	kept    string // see update
	placed  bool
	lock    io.Closer
}

// bodySwaps reads the files that the draft's bodies stand in and makes their new contents.
func (s *Source) bodySwaps(t *tree, e *edit) (swaps []*bodySwap, err error) {
	for _, b := range e.draft.Bodies() {
		if err := s.soleUse(e, b); err != nil {
			return nil, err
		}
		target, err := editTarget(s.o.Dir, b.Path)
		if err != nil {
			return nil, writeFault("edit "+b.Path, err)
		}
		now, stamp, err := t.readNamed(b.Path, maxBodyFileBytes)
		if err != nil {
			return nil, writeFault("read "+b.Path, err)
		}
		if !e.read(b.Path, stamp.Hash) {
			return nil, ErrChanged // since the config file was decoded
		}
		info, err := s.o.Disk.Stat(target)
		if err != nil {
			return nil, writeFault("edit "+b.Path, err)
		}
		swaps = append(swaps, &bodySwap{path: b.Path, target: target, content: bodyBytes(now, b.Text), like: info, want: stamp.Hash})
	}
	return swaps, nil
}

// soleUse refuses to write a file that other templates take text from, too: they would change with it. Nor is a config
// file written as text.
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

// bodyBytes is a text as the file that had these bytes holds it: byte for byte, behind its byte order mark. Text that
// begins with such a mark needs one before it, since the first is none of the text's.
func bodyBytes(was []byte, text string) []byte {
	out := []byte(text)
	if bytes.HasPrefix(was, byteOrderMark) || bytes.HasPrefix(out, byteOrderMark) {
		out = append(bytes.Clone(byteOrderMark), out...)
	}
	return out
}

// contents are the new bytes by path, for decoding.
func contents(swaps []*bodySwap) map[string][]byte {
	all := make(map[string][]byte, len(swaps))
	for _, b := range swaps {
		all[b.path] = b.content
	}
	return all
}

// stage writes the new content beside the file.
func (b *bodySwap) stage(d Disk) (err error) {
	if b.lock, err = lockFolder(filepath.Dir(b.target)); err != nil {
		return err
	}
	var info fs.FileInfo
	if b.temp, info, err = stageSwap(d, b.target, b.content, b.like, b.want); err != nil {
		return err
	}
	b.stamp = stampOf(info, b.content)
	return nil
}

// put exchanges the file, unless somebody has saved it since.
func (b *bodySwap) put(d Disk) (err error) {
	b.kept, err = exchange(d, b.temp, b.target, b.want, b.stamp.Hash)
	if errors.Is(err, errStranded) {
		b.temp = ""
	}
	if b.placed = err == nil; b.placed {
		b.stamp = renamed(b.stamp, b.target)
	}
	return err
}

// takeBack undoes put, where nobody has saved since.
func (b *bodySwap) takeBack(d Disk) {
	if !b.placed {
		return
	}
	var err error
	b.placed, b.kept = false, ""
	if b.kept, err = exchange(d, b.temp, b.target, b.stamp.Hash, b.want); errors.Is(err, errStranded) {
		b.temp = ""
	}
}

func (b *bodySwap) discard(d Disk) {
	if b.temp != "" {
		removeSwapped(d, b.temp)
		b.temp = ""
	}
	if b.lock != nil {
		b.lock.Close()
		b.lock = nil
	}
}

// stageBodies is stage for the files that change with the update's own.
func (u *update) stageBodies() error {
	for _, b := range u.bodies {
		if err := b.stage(u.disk); err != nil {
			return err
		}
	}
	return nil
}

// depend notes the new stamps of the files that are in place: of a body, on which the config file depends, or of a key list.
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

// putAll brings all files of an update into their places: texts and key lists first, the project's file last, and none of
// them where one cannot be had. Where the update is of several files, a note says so as long as they are on their way, see
// undo.go.
func (s *Source) putAll(u *update) (err error) {
	defer func() {
		if err != nil {
			s.takeBodiesBack(u)
		}
	}()
	if u.files() > 1 {
		if u.note, err = s.noteWrite(u); err != nil {
			return writeFault("write "+u.c.path, err)
		}
	}
	targets := u.targets()
	last := len(targets) - 1
	for i, b := range u.bodies {
		if i == last {
			if err = syncFoldersOf(u.disk, targets[:last]); err != nil {
				return writeFault("write "+u.c.path, err)
			}
		}
		err = b.put(u.disk)
		s.tellKept(b.target, b.kept)
		if errors.Is(err, ErrChanged) {
			return err
		}
		if err != nil {
			return writeFault("replace "+b.path, err)
		}
	}
	u.depend()
	if u.stays {
		if now, rerr := u.disk.ReadFile(u.target); rerr != nil || digest(now) != u.want {
			return ErrChanged
		}
		return nil
	}
	if err = syncFoldersOf(u.disk, targets[:last]); err != nil {
		return writeFault("write "+u.c.path, err)
	}
	err = u.put()
	s.tellKept(u.target, u.kept)
	return err
}

// takeAllBack undoes putAll.
func (s *Source) takeAllBack(u *update) {
	if !u.stays {
		u.takeBack()
		s.tellKept(u.target, u.kept)
		if len(u.bodies) > 0 {
			_ = syncFolder(u.disk, filepath.Dir(u.target)) // what cannot be synced, nobody has been told of
		}
	}
	s.takeBodiesBack(u)
}

func (s *Source) takeBodiesBack(u *update) {
	for _, b := range u.bodies {
		b.takeBack(u.disk)
		s.tellKept(b.target, b.kept)
	}
}

// files is how many the update writes.
func (u *update) files() int {
	if u.stays {
		return len(u.bodies)
	}
	return len(u.bodies) + 1
}

// targets are the files that the update writes, links followed.
func (u *update) targets() (all []string) {
	for _, b := range u.bodies {
		all = append(all, b.target)
	}
	if !u.stays {
		all = append(all, u.target)
	}
	return all
}

package store

import (
	"bytes"

	"fingerpost/resolver/catalog"
)

// A timedObject names an object that has times. Objects of different kinds may have the same uuid.
type timedObject struct {
	kind catalog.Kind
	uuid catalog.UUID
}

func timesByObject(times []catalog.ObjectTime) map[timedObject]catalog.ObjectTime {
	if len(times) == 0 {
		return nil
	}
	m := make(map[timedObject]catalog.ObjectTime, len(times))
	for _, t := range times {
		m[timedObject{t.Kind, t.UUID}] = t
	}
	return m
}

func (w *writer) textChanges(prefix byte, changes []catalog.TextChange) {
	for i := range changes {
		if key := textKey(prefix, changes[i].Path); changes[i].Gone {
			w.delete(key)
		} else {
			w.set(key, changes[i].Bytes)
		}
	}
}

// Tree yields the whole accepted tree as of one moment, in no order: every config file with its last accepted bytes,
// and the files that config files name. Where an edge has received other content, which it refuses, it yields that.
// content is valid within the call.
func (s *State) Tree(yield func(path string, content []byte) bool) error {
	return s.View(func(v *View) error {
		refused := map[string]bool{}
		more := true
		each := func(prefix byte, take func(path string) bool) error {
			if !more {
				return nil
			}
			return v.scan([]byte{prefix}, func(key, value []byte) error {
				if path := string(key[1:]); take(path) {
					more = yield(path, value)
				}
				return stopUnless(more)
			})
		}
		err := each(prefixRefused, func(path string) bool {
			refused[path] = true
			return true
		})
		for _, prefix := range []byte{prefixBytes, prefixText} {
			if err == nil {
				err = each(prefix, func(path string) bool { return !refused[path] })
			}
		}
		return err
	})
}

// TreeFile returns one file of Tree, with the times of the objects that it declares; false if there is none.
func (s *State) TreeFile(path string) (f catalog.TreeFile, found bool, err error) {
	err = s.View(func(v *View) error {
		for _, prefix := range []byte{prefixRefused, prefixBytes, prefixText} {
			b, there, err := v.content(textKey(prefix, path))
			if err != nil {
				return err
			}
			if !there {
				continue
			}
			f, found = catalog.TreeFile{Path: path, Bytes: b}, true
			if prefix == prefixBytes {
				f.Times, err = v.times(path)
			}
			return err
		}
		return nil
	})
	return f, found, err
}

// content returns a copy of a value that may be empty.
func (v *View) content(key []byte) (b []byte, found bool, err error) {
	if !v.it.SeekGE(key) || !bytes.Equal(v.it.Key(), key) {
		return nil, false, v.it.Error()
	}
	value, err := v.it.ValueAndErr()
	return append([]byte{}, value...), true, err
}

// Text returns the accepted bytes of a file that config files name, nil when there are none.
func (s *State) Text(path string) (b []byte, err error) {
	err = s.read(func() error { b, err = s.load(textKey(prefixText, path)); return err })
	return b, err
}

// Refused yields what an edge has received and refuses. yield may keep the bytes.
func (s *State) Refused(yield func(path string, content []byte) bool) error {
	return s.scan([]byte{prefixRefused}, func(key, value []byte) error {
		return stopUnless(yield(string(key[1:]), bytes.Clone(value)))
	})
}

// times returns the times of the objects that a file declares.
func (v *View) times(path string) (times []catalog.ObjectTime, err error) {
	value, err := v.load(textKey(prefixFile, path))
	if err != nil || value == nil {
		return nil, err
	}
	row, err := decodeRow(value)
	if err != nil {
		return nil, err
	}
	for i := range row.Refs {
		key := recordKey(&row.Refs[i])
		if key == nil {
			continue
		}
		rec, err := v.load(key)
		if err != nil {
			return nil, err
		}
		if len(rec) < headerLen || catalog.UUID(rec[offsetUUID:headerLen]) != row.Refs[i].UUID {
			continue // another file has taken it over
		}
		created, updated := recordTimes(rec)
		times = append(times, catalog.ObjectTime{Kind: row.Refs[i].Kind, UUID: row.Refs[i].UUID, CreatedAt: created,
			UpdatedAt: updated})
	}
	return times, nil
}

// recordKey returns the key of an object that has times, nil for others.
func recordKey(r *catalog.Ref) []byte {
	switch r.Kind {
	case catalog.KindProject:
		return idKey(prefixProject, r.ID)
	case catalog.KindDomain:
		return appendDomainKey(nil, r.Name)
	case catalog.KindTemplate:
		return idKey(prefixTemplate, r.ProjectID, r.ID)
	}
	return nil
}

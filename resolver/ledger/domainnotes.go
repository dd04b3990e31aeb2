package ledger

import (
	"bytes"
	"errors"
	"fmt"

	"fingerpost/resolver/catalog"

	"github.com/cockroachdb/pebble/v2"
)

// A DomainNote is what the checks of one project's domain have found so far. The ledger does not know its content.
type DomainNote struct {
	Project catalog.UUID
	Domain  string // canonical
	Note    []byte // nil in ChangeDomainNotes: the note is deleted
}

func appendDomainNoteKey(dst []byte, project catalog.UUID, domain string) []byte {
	return append(append(append(dst, prefixDomainNote), project[:]...), domain...)
}

// ChangeDomainNotes stores and deletes notes in one batch that is durable when it returns.
func (l *Ledger) ChangeDomainNotes(notes []DomainNote) error {
	err := l.commit(func(b *pebble.Batch) (err error) {
		for i := range notes {
			n := &notes[i]
			key := appendDomainNoteKey(nil, n.Project, n.Domain)
			err = errors.Join(err, setOpaque(b, key, n.Note))
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("note checks of domains: %w", err)
	}
	return nil
}

// DomainNote returns the note of a project's domain; false if there is none.
func (l *Ledger) DomainNote(project catalog.UUID, domain string) (note []byte, found bool, err error) {
	return l.opaque(appendDomainNoteKey(nil, project, domain))
}

// EachDomainNote calls f with all notes, by project and domain. Note is valid within the call.
func (l *Ledger) EachDomainNote(f func(n DomainNote) error) error {
	return l.scan(under(prefixDomainNote), func(key, value []byte) error {
		n := DomainNote{}
		if len(key) < 1+len(n.Project) {
			return errRecord
		}
		copy(n.Project[:], key[1:])
		n.Domain = string(key[1+len(n.Project):])
		var err error
		if n.Note, err = readOpaque(value); err != nil {
			return err
		}
		return f(n)
	})
}

// SetNamed stores small values of another package by name, in one batch that is durable when it returns; nil deletes one.
func (l *Ledger) SetNamed(values map[string][]byte) error {
	if err := l.commit(func(b *pebble.Batch) error { return setNamed(b, values) }); err != nil {
		return fmt.Errorf("store named values: %w", err)
	}
	return nil
}

func setNamed(b *pebble.Batch, values map[string][]byte) (err error) {
	for name, value := range values {
		err = errors.Join(err, setOpaque(b, appendTextKey(nil, prefixNamed, name), value))
	}
	return err
}

// EachNamed calls f with the values of SetNamed whose names begin with a prefix, by name. value is valid within the call.
func (l *Ledger) EachNamed(prefix string, f func(name string, value []byte) error) error {
	return l.scan(under(appendTextKey(nil, prefixNamed, prefix)...), func(key, value []byte) error {
		content, err := readOpaque(value)
		if err != nil {
			return err
		}
		return f(string(key[1:]), content)
	})
}

// Named returns the value of SetNamed; false if there is none.
func (l *Ledger) Named(name string) (value []byte, found bool, err error) {
	return l.opaque(appendTextKey(nil, prefixNamed, name))
}

// setOpaque adds a value whose content the ledger does not know to a batch, or its deletion if it is nil.
func setOpaque(b *pebble.Batch, key, value []byte) error {
	if value == nil {
		return b.Delete(key, nil)
	}
	return b.Set(key, append([]byte{mailVersion}, value...), nil)
}

// readOpaque returns the content of a value of setOpaque, which shares its memory.
func readOpaque(value []byte) ([]byte, error) {
	if len(value) == 0 {
		return nil, errRecord
	}
	if value[0] != mailVersion {
		_, err := mailDecoder(value)
		return nil, err
	}
	return value[1:], nil
}

func (l *Ledger) opaque(key []byte) (content []byte, found bool, err error) {
	err = l.read(func() (err error) {
		found, err = now{l.db}.get(key, func(value []byte) error {
			content, err = readOpaque(value)
			content = bytes.Clone(content)
			return err
		})
		return err
	})
	return content, found, err
}

// commit commits a batch durably. Concurrent calls share syncs.
func (l *Ledger) commit(change func(b *pebble.Batch) error) error {
	return l.read(func() error {
		return l.fs.Run(func() error {
			b := l.db.NewBatch()
			if err := change(b); err != nil || b.Empty() {
				return errors.Join(err, b.Close())
			}
			return b.Commit(l.durable())
		})
	})
}

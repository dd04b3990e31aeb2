package store

import (
	"encoding/binary"
	"errors"
	"sync"

	"fingerpost/resolver/catalog"

	"github.com/cockroachdb/pebble/v2"
)

// read runs f while the store stays open, and fails the store when f finds damage. A change that is too large is the
// caller's error.
func (s *Store) read(f func() error) (err error) {
	var large error
	err = s.fs.Use(func() error {
		err := f()
		if errors.Is(err, errTooLarge) {
			large, err = err, nil
		}
		return err
	})
	return errors.Join(err, large)
}

// A getter finds one key. It passes the value to use; the value is valid until use returns.
type getter interface {
	get(key []byte, use func(value []byte) error) (found bool, err error)
}

// now reads the newest state in each get.
type now struct{ db *pebble.DB }

func (n now) get(key []byte, use func([]byte) error) (bool, error) {
	v, closer, err := n.db.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	err = use(v)
	return true, errors.Join(err, closer.Close())
}

// A View reads the state of one moment. It is valid within the call of View that passed it, on one goroutine.
type View struct{ it *pebble.Iterator }

func (v *View) get(key []byte, use func([]byte) error) (bool, error) {
	if !v.it.SeekPrefixGE(key) {
		return false, v.it.Error()
	}
	value, err := v.it.ValueAndErr()
	if err != nil {
		return false, err
	}
	return true, use(value)
}

// View calls f with a consistent view: an Apply in between does not show. f's errors must be those of the view. It uses
// an iterator, not a snapshot of Pebble, because a snapshot needs a lock that a failed instance may hold for ever.
func (s *Store) View(f func(v *View) error) error {
	return s.read(func() error {
		it, err := s.db.NewIter(nil)
		if err != nil {
			return err
		}
		return errors.Join(f(&View{it}), it.Close())
	})
}

// A Moment keeps a state of the store, for readers that must not see a later one yet. It pins tables: close it soon.
type Moment struct {
	s  *Store
	mu sync.Mutex       // guards it
	it *pebble.Iterator // never moved, see Store.View for why it is no snapshot; nil once closed
}

// Moment returns the newest state.
func (s *Store) Moment() (m *Moment, err error) {
	err = s.read(func() error {
		it, err := s.db.NewIter(nil)
		m = &Moment{s: s, it: it}
		return err
	})
	return m, err
}

// View is Store.View at that moment; ErrClosed also when the Moment is closed. It may be called from any goroutine.
func (m *Moment) View(f func(v *View) error) error {
	return m.s.read(func() error {
		m.mu.Lock()
		if m.it == nil {
			m.mu.Unlock()
			return ErrClosed
		}
		it, err := m.it.Clone(pebble.CloneOptions{})
		m.mu.Unlock()
		if err != nil {
			return err
		}
		return errors.Join(f(&View{it}), it.Close())
	})
}

// Close releases the state. Views of it that are running finish normally.
func (m *Moment) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	it := m.it
	m.it = nil
	return it.Close()
}

// Domain reads the record of a canonical name, or of a wildcard when name begins with "*.".
func (v *View) Domain(dst *catalog.Domain, name []byte) (bool, error) {
	return readDomain(v, dst, name)
}

// Project reads a project with its settings and SMTP config, without domains and templates.
func (v *View) Project(dst *catalog.ProjectConfig, id int64) (bool, error) {
	return readProject(v, dst, id)
}

// Defaults returns the defaults block, nil when there is none.
func (s *Store) Defaults() (d *catalog.Defaults, err error) {
	err = s.read(func() error { d, err = readDefaults(now{s.db}); return err })
	return d, err
}

// Defaults is Store.Defaults at the view's moment.
func (v *View) Defaults() (*catalog.Defaults, error) { return readDefaults(v) }

// ProjectID returns the id of the project that has the slug, 0 for none.
func (v *View) ProjectID(slug string) (int64, error) {
	id, found, err := readID(v, appendTextKey(nil, prefixSlug, slug))
	if !found {
		id = 0
	}
	return id, err
}

// ProjectBySlug is Project by present slug.
func (v *View) ProjectBySlug(dst *catalog.ProjectConfig, slug string) (bool, error) {
	id, found, err := readID(v, appendTextKey(nil, prefixSlug, slug))
	if err != nil || !found {
		return false, err
	}
	return readProject(v, dst, id)
}

// DomainByID reads a domain of a project; false for a domain of another project.
func (v *View) DomainByID(dst *catalog.Domain, project, id int64) (bool, error) {
	var name []byte
	found, err := v.get(appendHostKey(nil, project, id), func(value []byte) error {
		name = append(name, value...)
		return nil
	})
	if err != nil || !found {
		return false, err
	}
	return readDomain(v, dst, name)
}

// Template reads one template; project is 0 for a default one.
func (v *View) Template(dst *catalog.Template, project, id int64) (bool, error) {
	return v.get(appendTemplateKey(nil, project, id), func(value []byte) error { return decodeTemplate(dst, value) })
}

// TemplateByCode is Template by the code.
func (v *View) TemplateByCode(dst *catalog.Template, project int64, code string) (bool, error) {
	id, found, err := readID(v, appendTemplateCodeKey(nil, project, code))
	if err != nil || !found {
		return false, err
	}
	return v.Template(dst, project, id)
}

// Project is View.Project in the newest state; it is cheaper than making a View.
func (s *Store) Project(dst *catalog.ProjectConfig, id int64) (found bool, err error) {
	err = s.read(func() error { found, err = readProject(now{s.db}, dst, id); return err })
	return found, err
}

// Sealing returns the sealing block, nil when there is none.
func (s *Store) Sealing() (x *catalog.Sealing, err error) {
	err = s.read(func() error {
		_, err := now{s.db}.get(keySealing, func(value []byte) error { x = new(catalog.Sealing); return decode(value, x) })
		return err
	})
	return x, err
}

// LastGood returns the last accepted bytes of a file, nil when there are none.
func (s *Store) LastGood(path string) (b []byte, err error) {
	err = s.read(func() error {
		_, err := now{s.db}.get(appendTextKey(nil, prefixBytes, path), func(value []byte) error {
			b = append([]byte{}, value...)
			return nil
		})
		return err
	})
	return b, err
}

// maxDomainKey is the length of the longest key of a domain; the key of a project is shorter.
const maxDomainKey = 1 + catalog.MaxHostLen + 2

func readDomain(g getter, dst *catalog.Domain, name []byte) (bool, error) {
	var buf [maxDomainKey]byte
	return g.get(appendDomainKey(buf[:0], name), func(value []byte) error { _, err := decodeDomain(dst, value); return err })
}

func readProject(g getter, dst *catalog.ProjectConfig, id int64) (bool, error) {
	return g.get(appendProjectKey(nil, id), func(value []byte) error { return decodeProject(dst, value) })
}

func readDefaults(g getter) (d *catalog.Defaults, err error) {
	_, err = g.get(keyDefaults, func(value []byte) error { d = new(catalog.Defaults); return decode(value, d) })
	return d, err
}

func readID(g getter, key []byte) (id int64, found bool, err error) {
	found, err = g.get(key, func(value []byte) error {
		if len(value) != 8 {
			return errRecord
		}
		id = int64(binary.BigEndian.Uint64(value))
		return nil
	})
	return id, found, err
}

func readCounts(g getter) (c Counts, err error) {
	_, err = g.get(keyCounts, func(value []byte) error { return decode(value, &c) })
	return c, err
}

package store

import (
	"encoding/binary"
	"errors"
	"sync"

	"fingerpost/resolver/catalog"
	"fingerpost/resolver/pebblefs"

	"github.com/cockroachdb/pebble/v2"
)

// A State reads the newest state: that of a Store, or of an Overlay of it.
type State struct {
	fs   *pebblefs.Dir
	from pebble.Reader // the database, or the batch of an Overlay
	// overlaid: the state is an Overlay's. Its records may contradict each other, because two files may claim one name.
	overlaid bool
}

// read runs f while the store stays open, and fails the store when f finds damage. A change that is too large is the
// caller's error, and so is whatever an Overlay has.
func (s *State) read(f func() error) (err error) {
	var own error
	err = s.fs.Use(func() error {
		err := f()
		if s.overlaid || errors.Is(err, errTooLarge) {
			own, err = err, nil
		}
		return err
	})
	return errors.Join(err, own)
}

// A getter finds the value of a key. It returns nil if there is none; the value is valid until the next load.
type getter interface {
	load(key []byte) ([]byte, error)
}

// load reads the newest state and returns a copy. The caller is within read.
func (s *State) load(key []byte) ([]byte, error) {
	value, closer, err := s.from.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return append([]byte{}, value...), closer.Close()
}

// A View reads the state of one moment. It is valid within the call of View that passed it, on one goroutine.
type View struct {
	it       *pebble.Iterator
	overlaid bool // see State
}

func (v *View) load(key []byte) ([]byte, error) { return seek(v.it, key) }

// View calls f with a consistent view: an Apply in between does not show. f's errors must be those of the view. It uses
// an iterator, not a snapshot of Pebble, because a snapshot needs a lock that a failed instance may hold for ever.
func (s *State) View(f func(v *View) error) error {
	return s.read(func() error {
		it, err := s.from.NewIter(nil)
		if err != nil {
			return err
		}
		return errors.Join(f(&View{it, s.overlaid}), it.Close())
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
		return errors.Join(f(&View{it: it}), it.Close())
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
func (s *State) Defaults() (d *catalog.Defaults, err error) {
	err = s.read(func() error { d, err = readDefaults(s); return err })
	return d, err
}

// Defaults is Store.Defaults at the view's moment.
func (v *View) Defaults() (*catalog.Defaults, error) { return readDefaults(v) }

// ProjectID returns the id of the project that has the slug, 0 for none.
func (v *View) ProjectID(slug string) (int64, error) {
	return v.id(textKey(prefixSlug, slug))
}

// ProjectBySlug is Project by present slug.
func (v *View) ProjectBySlug(dst *catalog.ProjectConfig, slug string) (bool, error) {
	id, err := v.ProjectID(slug)
	if err != nil || id == 0 {
		return false, err
	}
	return v.Project(dst, id)
}

// DomainByID reads a domain of a project; false for a domain of another project.
func (v *View) DomainByID(dst *catalog.Domain, project, id int64) (bool, error) {
	name, err := v.load(idKey(prefixProjectHost, project, id))
	if err != nil || name == nil {
		return false, err
	}
	return v.Domain(dst, name)
}

// Template reads one template; project is 0 for a default one.
func (v *View) Template(dst *catalog.Template, project, id int64) (bool, error) {
	value, err := v.load(idKey(prefixTemplate, project, id))
	if err != nil || value == nil {
		return false, err
	}
	return true, decodeTemplate(dst, value)
}

// TemplateByCode is Template by the code.
func (v *View) TemplateByCode(dst *catalog.Template, project int64, code string) (bool, error) {
	id, err := v.id(templateCodeKey(project, code))
	if err != nil || id == 0 {
		return false, err
	}
	return v.Template(dst, project, id)
}

// id reads a key whose value is an id; 0 if there is none.
func (v *View) id(key []byte) (int64, error) {
	value, err := v.load(key)
	if err != nil || value == nil {
		return 0, err
	}
	if len(value) != 8 {
		return 0, errRecord
	}
	return int64(binary.BigEndian.Uint64(value)), nil
}

// Project is View.Project in the newest state; it is cheaper than making a View.
func (s *State) Project(dst *catalog.ProjectConfig, id int64) (found bool, err error) {
	err = s.read(func() error { found, err = readProject(s, dst, id); return err })
	return found, err
}

// Sealing returns the sealing block, nil when there is none.
func (s *State) Sealing() (x *catalog.Sealing, err error) {
	err = s.read(func() error {
		value, err := s.load(keySealing)
		if err != nil || value == nil {
			return err
		}
		x = new(catalog.Sealing)
		return decode(value, x)
	})
	return x, err
}

// LastGood returns the last accepted bytes of a file, nil when there are none.
func (s *State) LastGood(path string) (b []byte, err error) {
	err = s.read(func() error { b, err = s.load(textKey(prefixBytes, path)); return err })
	return b, err
}

func readDomain(g getter, dst *catalog.Domain, name []byte) (bool, error) {
	value, err := g.load(appendDomainKey(nil, name))
	if err != nil || value == nil {
		return false, err
	}
	_, err = decodeDomain(dst, value)
	return true, err
}

func readProject(g getter, dst *catalog.ProjectConfig, id int64) (bool, error) {
	value, err := g.load(idKey(prefixProject, id))
	if err != nil || value == nil {
		return false, err
	}
	return true, decodeProject(dst, value)
}

func readDefaults(g getter) (*catalog.Defaults, error) {
	value, err := g.load(keyDefaults)
	if err != nil || value == nil {
		return nil, err
	}
	d := new(catalog.Defaults)
	return d, decode(value, d)
}

func readCounts(g getter) (c Counts, err error) {
	value, err := g.load(keyCounts)
	if err == nil && value != nil {
		err = decode(value, &c)
	}
	return c, err
}

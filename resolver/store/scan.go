package store

import (
	"encoding/binary"
	"errors"

	"fingerpost/resolver/catalog"

	"github.com/cockroachdb/pebble/v2"
)

// errStop ends a scan when yield returns false.
var errStop = errors.New("stop")

// scan calls f with all keys that begin with prefix, in order, as of one moment. Key and value are valid within the
// call. An open iterator pins its state in Pebble, so f should be quick.
func (s *Store) scan(prefix []byte, f func(key, value []byte) error) error {
	return s.read(func() error {
		it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: after(prefix)})
		if err != nil {
			return err
		}
		for ok := it.First(); ok && err == nil; ok = it.Next() {
			var value []byte
			if value, err = it.ValueAndErr(); err == nil {
				err = f(it.Key(), value)
			}
		}
		if errors.Is(err, errStop) {
			err = nil
		}
		return errors.Join(err, it.Error(), it.Close())
	})
}

// scan is Store.scan over one prefix of the layout. The view has one iterator: f must not read from the view.
func (v *View) scan(prefix byte, f func(key, value []byte) error) (err error) {
	v.it.SetBounds([]byte{prefix}, []byte{prefix + 1})
	defer v.it.SetBounds(nil, nil)
	for ok := v.it.First(); ok && err == nil; ok = v.it.Next() {
		var value []byte
		if value, err = v.it.ValueAndErr(); err == nil {
			err = f(v.it.Key(), value)
		}
	}
	if errors.Is(err, errStop) {
		err = nil
	}
	return errors.Join(err, v.it.Error())
}

func stopUnless(more bool) error {
	if more {
		return nil
	}
	return errStop
}

// EachProject yields all projects by ascending id. yield may keep the value.
func (s *Store) EachProject(yield func(*catalog.Project) bool) error {
	return s.scan([]byte{prefixProject}, func(_, value []byte) error {
		p := new(catalog.Project)
		if _, err := decodeProjectOnly(p, value); err != nil {
			return err
		}
		return stopUnless(yield(p))
	})
}

// EachProjectID yields the ids of all projects, ascending; a late page of the list uses it to skip projects.
func (s *Store) EachProjectID(yield func(id int64) bool) error {
	return s.scan([]byte{prefixProject}, func(key, _ []byte) error {
		if len(key) != 1+8 {
			return errRecord
		}
		return stopUnless(yield(int64(binary.BigEndian.Uint64(key[1:]))))
	})
}

// Domains yields a project's domains by ascending id.
func (v *View) Domains(project int64, yield func(*catalog.Domain) bool) error {
	prefix := appendID([]byte{prefixProjectHost}, project)
	// Collect the names first: the view has one iterator, which reading the records moves.
	var names [][]byte
	v.it.SetBounds(prefix, after(prefix))
	for ok := v.it.First(); ok; ok = v.it.Next() {
		value, err := v.it.ValueAndErr()
		if err != nil {
			return err
		}
		names = append(names, append([]byte(nil), value...))
	}
	err := v.it.Error()
	v.it.SetBounds(nil, nil)
	if err != nil {
		return err
	}
	for _, name := range names {
		d := new(catalog.Domain)
		found, err := readDomain(v, d, name)
		if err != nil {
			return err
		}
		if !found || d.ProjectID != project {
			return errRecord
		}
		if !yield(d) {
			break
		}
	}
	return nil
}

// Templates yields the templates of a project by ascending id; project 0 means the default ones.
func (v *View) Templates(project int64, yield func(*catalog.Template) bool) error {
	prefix := appendID([]byte{prefixTemplate}, project)
	v.it.SetBounds(prefix, after(prefix))
	defer v.it.SetBounds(nil, nil)
	for ok := v.it.First(); ok; ok = v.it.Next() {
		value, err := v.it.ValueAndErr()
		if err != nil {
			return err
		}
		t := new(catalog.Template)
		if err := decodeTemplate(t, value); err != nil {
			return err
		}
		if !yield(t) {
			break
		}
	}
	return v.it.Error()
}

// Templates is View.Templates with a view of its own.
func (s *Store) Templates(project int64, yield func(*catalog.Template) bool) error {
	return s.scan(appendID([]byte{prefixTemplate}, project), func(_, value []byte) error {
		t := new(catalog.Template)
		if err := decodeTemplate(t, value); err != nil {
			return err
		}
		return stopUnless(yield(t))
	})
}

// DomainsBelow yields the domains whose names lie below suffix, wildcards included, except *.suffix itself. The value
// is valid within the call.
func (s *Store) DomainsBelow(suffix string, yield func(*catalog.Domain) bool) error {
	prefix := append(appendDomainKey(nil, suffix), '.')
	var d catalog.Domain
	return s.scan(prefix, func(key, value []byte) error {
		if string(key[len(prefix):]) == "*" {
			return nil
		}
		if _, err := decodeDomain(&d, value); err != nil {
			return err
		}
		return stopUnless(yield(&d))
	})
}

// Domain is View.Domain in the newest state.
func (s *Store) Domain(dst *catalog.Domain, name string) (found bool, err error) {
	err = s.read(func() error { found, err = readDomain(now{s.db}, dst, []byte(name)); return err })
	return found, err
}

// Keys yields all API keys by name.
func (s *Store) Keys(yield func(*catalog.Key) bool) error {
	return s.scan([]byte{prefixKey}, func(_, value []byte) error {
		k := new(catalog.Key)
		if err := decodeKey(k, value); err != nil {
			return err
		}
		return stopUnless(yield(k))
	})
}

// Files yields the file table by path. yield may keep the row.
func (s *Store) Files(yield func(path string, row *catalog.FileRow) bool) error {
	return s.scan([]byte{prefixFile}, func(key, value []byte) error {
		row, err := decodeRow(value)
		if err != nil {
			return err
		}
		return stopUnless(yield(string(key[1:]), row))
	})
}

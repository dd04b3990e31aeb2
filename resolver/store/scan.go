package store

import (
	"bytes"
	"encoding/binary"
	"errors"

	"fingerpost/resolver/catalog"
)

// errStop ends a scan when yield returns false.
var errStop = errors.New("stop")

// scan is View.scan as of one moment. An open iterator pins its state in Pebble, so f should be quick.
func (s *State) scan(prefix []byte, f func(key, value []byte) error) error {
	return s.View(func(v *View) error { return v.scan(prefix, f) })
}

// scan calls f with all keys that begin with prefix, in order, until f returns an error. Key and value are valid within
// the call. The view has one iterator: f must not read from the view.
func (v *View) scan(prefix []byte, f func(key, value []byte) error) (err error) {
	v.it.SetBounds(prefix, after(prefix))
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
func (s *State) EachProject(yield func(*catalog.Project) bool) error {
	return s.scan([]byte{prefixProject}, func(_, value []byte) error {
		p := new(catalog.Project)
		if _, err := decodeProjectOnly(p, value); err != nil {
			return err
		}
		return stopUnless(yield(p))
	})
}

// EachProjectID yields the ids of all projects, ascending; a late page of the list uses it to skip projects.
func (s *State) EachProjectID(yield func(id int64) bool) error {
	return s.scan([]byte{prefixProject}, func(key, _ []byte) error {
		if len(key) != 1+8 {
			return errRecord
		}
		return stopUnless(yield(int64(binary.BigEndian.Uint64(key[1:]))))
	})
}

// EachKeySet yields the ids of the projects whose own files name a key set, ascending.
func (s *State) EachKeySet(yield func(project int64) bool) error {
	return s.scan([]byte{prefixKeySet}, func(key, _ []byte) error {
		if len(key) != 1+8 {
			return errRecord
		}
		return stopUnless(yield(int64(binary.BigEndian.Uint64(key[1:]))))
	})
}

// EachDomain yields the domains of all projects by name. The value is valid within the call.
func (s *State) EachDomain(yield func(*catalog.Domain) bool) error {
	var d catalog.Domain
	return s.scan([]byte{prefixDomain}, func(_, value []byte) error {
		if _, err := decodeDomain(&d, value); err != nil {
			return err
		}
		return stopUnless(yield(&d))
	})
}

// Domains yields a project's domains by ascending id.
func (v *View) Domains(project int64, yield func(*catalog.Domain) bool) error {
	// Collect the names first: reading the records moves the view's iterator.
	var names [][]byte
	err := v.scan(idKey(prefixProjectHost, project), func(_, name []byte) error {
		names = append(names, bytes.Clone(name))
		return nil
	})
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
			if v.overlaid {
				continue // another file of the Overlay has the name
			}
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
	return v.scan(idKey(prefixTemplate, project), func(_, value []byte) error {
		t := new(catalog.Template)
		if err := decodeTemplate(t, value); err != nil {
			return err
		}
		return stopUnless(yield(t))
	})
}

// Templates is View.Templates with a view of its own.
func (s *State) Templates(project int64, yield func(*catalog.Template) bool) error {
	return s.View(func(v *View) error { return v.Templates(project, yield) })
}

// DomainsBelow yields the domains whose names lie below suffix, wildcards included, except *.suffix itself. The value
// is valid within the call.
func (s *State) DomainsBelow(suffix string, yield func(*catalog.Domain) bool) error {
	prefix := appendDomainKey(nil, suffix)
	if suffix != "" {
		prefix = append(prefix, '.')
	}
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
func (s *State) Domain(dst *catalog.Domain, name string) (found bool, err error) {
	err = s.read(func() error { found, err = readDomain(s, dst, []byte(name)); return err })
	return found, err
}

// Keys yields all API keys by name.
func (s *State) Keys(yield func(*catalog.Key) bool) error {
	return s.scan([]byte{prefixKey}, func(_, value []byte) error {
		k := new(catalog.Key)
		if err := decodeKey(k, value); err != nil {
			return err
		}
		return stopUnless(yield(k))
	})
}

// Edges yields all edges by name.
func (s *State) Edges(yield func(*catalog.Edge) bool) error {
	return s.scan([]byte{prefixEdge}, func(_, value []byte) error {
		e := new(catalog.Edge)
		if err := decode(value, e); err != nil {
			return err
		}
		return stopUnless(yield(e))
	})
}

// Webhooks yields all webhooks by name.
func (s *State) Webhooks(yield func(*catalog.Webhook) bool) error {
	return s.scan([]byte{prefixWebhook}, func(_, value []byte) error {
		w := new(catalog.Webhook)
		if err := decode(value, w); err != nil {
			return err
		}
		return stopUnless(yield(w))
	})
}

// Logins yields all logins by name.
func (s *State) Logins(yield func(*catalog.Login) bool) error {
	return s.scan([]byte{prefixLogin}, func(_, value []byte) error {
		l := new(catalog.Login)
		if err := decode(value, l); err != nil {
			return err
		}
		return stopUnless(yield(l))
	})
}

// Inbounds yields all inbound blocks by name.
func (s *State) Inbounds(yield func(*catalog.Inbound) bool) error {
	return s.scan([]byte{prefixInbound}, func(_, value []byte) error {
		b := new(catalog.Inbound)
		if err := decode(value, b); err != nil {
			return err
		}
		return stopUnless(yield(b))
	})
}

// Files yields the file table by path. yield may keep the row.
func (s *State) Files(yield func(path string, row *catalog.FileRow) bool) error {
	return s.scan([]byte{prefixFile}, func(key, value []byte) error {
		row, err := decodeRow(value)
		if err != nil {
			return err
		}
		return stopUnless(yield(string(key[1:]), row))
	})
}

package resolver

import (
	"slices"
	"sync"

	"fingerpost/resolver/store"
)

// projectIDs keeps the ids of all projects once somebody has asked for a page of the list: a page needs the number of
// all and those before it, and reading 100,000 ids from the store costs 30 ms. Each change that adds or removes a
// project costs a copy, of 8 bytes a project.
type projectIDs struct {
	mu    sync.Mutex // guards the fields below; held for moments only
	ids   []int64    // ascending; nil: none yet, or dropped. It is replaced, never changed
	notes uint64     // how often note or forget was called
}

// noteEffect follows a committed change.
func (p *projectIDs) noteEffect(e *store.Effect) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.notes++
	if e.Many {
		p.ids = nil
	}
	if p.ids == nil {
		return
	}
	own := false
	for i := range e.Projects {
		id, gone := e.Projects[i].ID, e.Projects[i].Gone
		at, there := slices.BinarySearch(p.ids, id)
		if there != gone {
			continue
		}
		if !own {
			p.ids, own = slices.Clone(p.ids), true
		}
		if gone {
			p.ids = slices.Delete(p.ids, at, at+1)
		} else {
			p.ids = slices.Insert(p.ids, at, id)
		}
	}
}

// forget drops the ids: the store may have any other content now.
func (p *projectIDs) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ids = nil
	p.notes++
}

// all returns the ids, with every change acknowledged before the call. The caller must not change them.
func (p *projectIDs) all(s *State) ([]int64, error) {
	p.mu.Lock()
	ids, notes := p.ids, p.notes
	p.mu.Unlock()
	if ids != nil {
		return ids, nil
	}
	ids, err := s.readProjectIDs()
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil && p.notes == notes { // else a change may be missing
		p.ids = ids
	}
	return ids, err
}

// readProjectIDs reads the ids of all projects from the store.
func (s *State) readProjectIDs() ([]int64, error) {
	ids := []int64{}
	err := s.each(func(st *store.State) error {
		return st.EachProjectID(func(id int64) bool {
			ids = append(ids, id)
			return true
		})
	})
	return ids, err
}

package resolver

import (
	"sync"

	"fingerpost/resolver/catalog"
	"fingerpost/resolver/search"
	"fingerpost/resolver/store"
)

// maxTouched is the most projects that change before the next search. With more, the indexes are dropped: nobody
// searches, or building them anew is hardly slower.
const maxTouched = 1 << 14

// indexes answer searches. They are immutable.
type indexes struct{ projects, domains *search.Index }

func (x *indexes) ofProjects() *search.Index { return x.projects }
func (x *indexes) ofDomains() *search.Index  { return x.domains }

// A finder keeps the indexes up to date. The first search builds them from the store. From then on each change notes
// the projects that it touched, before it is acknowledged, and the next search reads these projects again. So a change
// never waits for an index, and a service that nobody searches has none.
type finder struct {
	work sync.Mutex // held while indexes are made; taken before mu

	mu       sync.Mutex // guards the fields below; held for moments only
	present  *indexes   // nil: none yet, or dropped
	noting   bool       // changes are noted
	catching bool       // somebody reads the touched projects: present does not have them yet
	touched  map[int64]struct{}
	drops    uint64 // how often forget was called
}

// noteEffect remembers what a committed change touched.
func (f *finder) noteEffect(e *store.Effect) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.noting {
		return
	}
	for i := range e.Projects {
		f.touched[e.Projects[i].ID] = struct{}{}
	}
	for i := range e.Domains {
		f.touched[e.Domains[i].Project] = struct{}{}
	}
	if e.Many || len(f.touched) > maxTouched {
		f.drop()
	}
}

// forget drops the indexes: the store may have any other content now.
func (f *finder) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.drop()
}

// drop is forget for a caller that holds mu.
func (f *finder) drop() {
	f.present, f.noting, f.touched = nil, false, nil
	f.drops++
}

// indexes returns indexes that have every change acknowledged before the call.
func (f *finder) indexes(s *State) (*indexes, error) {
	if x := f.fresh(); x != nil {
		return x, nil
	}
	f.work.Lock()
	defer f.work.Unlock()
	x, touched, drops := f.takeTouched()
	defer f.release()
	var err error
	switch {
	case x == nil:
		x, err = buildIndexes(s)
	case len(touched) > 0:
		x, err = x.reread(s, touched)
	default:
		return x, nil // the search that held work before has done it
	}
	if err == nil && x.worn() {
		x, err = buildIndexes(s)
	}
	if err != nil {
		f.forget() // the touched projects are known to nobody now
		return nil, err
	}
	f.publish(x, drops)
	return x, nil
}

// fresh returns the indexes, or nil unless they have every change.
func (f *finder) fresh() *indexes {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.catching || len(f.touched) > 0 {
		return nil
	}
	return f.present
}

// takeTouched returns the indexes and what is to be read into them. From here on changes are noted for the next search.
func (f *finder) takeTouched() (x *indexes, touched map[int64]struct{}, drops uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	touched = f.touched
	f.noting, f.catching, f.touched = true, true, map[int64]struct{}{}
	return f.present, touched, f.drops
}

// publish keeps x for other searches, unless the store was exchanged since take. x is good for the caller in any case:
// it was read after the caller had asked.
func (f *finder) publish(x *indexes, drops uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.drops == drops {
		f.present = x
	}
}

func (f *finder) release() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.catching = false
}

func (x *indexes) worn() bool { return x.projects.Worn() || x.domains.Worn() }

// buildIndexes reads the whole store.
func buildIndexes(s *State) (*indexes, error) {
	var projects, domains []search.Doc
	err := s.reading(func(st *store.State) error {
		names := map[int64][]string{}
		domains = nil
		err := st.EachDomain(func(d *catalog.Domain) bool {
			names[d.ProjectID] = append(names[d.ProjectID], d.Name)
			domains = append(domains, domainDoc(d))
			return true
		})
		if err != nil {
			return err
		}
		projects = make([]search.Doc, 0, len(names))
		return st.EachProject(func(p *catalog.Project) bool {
			projects = append(projects, projectDoc(p, names[p.ID]))
			return true
		})
	})
	if err != nil {
		return nil, err
	}
	return &indexes{search.New(projects), search.New(domains)}, nil
}

// reread returns indexes with the present content of some projects.
func (x *indexes) reread(s *State, touched map[int64]struct{}) (*indexes, error) {
	projects, domains := make(map[int64][]search.Doc, len(touched)), make(map[int64][]search.Doc, len(touched))
	err := s.view(func(v *store.View) error {
		for id := range touched {
			projects[id], domains[id] = nil, nil
			p := new(catalog.ProjectConfig)
			if found, err := v.Project(p, id); err != nil || !found {
				if err != nil {
					return err
				}
				continue
			}
			var names []string
			err := v.Domains(id, func(d *catalog.Domain) bool {
				names = append(names, d.Name)
				domains[id] = append(domains[id], domainDoc(d))
				return true
			})
			if err != nil {
				return err
			}
			projects[id] = []search.Doc{projectDoc(&p.Project, names)}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &indexes{x.projects.With(projects), x.domains.With(domains)}, nil
}

func projectDoc(p *catalog.Project, domains []string) search.Doc {
	texts := make([]string, 0, 1+len(domains)+len(p.Labels))
	texts = append(append(texts, p.Name), domains...)
	terms := []string{statusTerm(p.Status)}
	for _, l := range p.Labels {
		texts = append(texts, l.Value)
		terms = append(terms, labelTerm(l))
	}
	return search.Doc{Ref: search.Ref{Project: p.ID, ID: p.ID}, Key: p.Slug, Texts: texts, Terms: terms}
}

func domainDoc(d *catalog.Domain) search.Doc {
	return search.Doc{Ref: search.Ref{Project: d.ProjectID, ID: d.ID}, Key: d.Name}
}

// No term is another one's: a status has no "=", and a label's name has none either.
func statusTerm(status string) string  { return status }
func labelTerm(l catalog.Label) string { return l.Name + "=" + l.Value }

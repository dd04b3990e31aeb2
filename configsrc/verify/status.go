package verify

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"fingerpost/resolver/catalog"
)

// A Standing is what is known of a domain, in short.
type Standing struct {
	ID                               int64 // of the domain
	Ownership, Pointing, Certificate string
	Ready                            bool
}

func (c *subject) shown() Standing {
	s := &c.standing
	return Standing{c.id, s.state(0), s.state(1), s.state(2), s.ready()}
}

// Each yields the standing of all domains, in no order, until yield returns false. Without a verification block it reads
// all domains and their notes.
func (s *Service) Each(yield func(Standing) bool) error {
	all, on := s.standings()
	if !on {
		s.notes.storing.Lock()
		found, err := s.gather(s.policy())
		s.notes.storing.Unlock()
		if err != nil {
			return err
		}
		for _, c := range found.subjects {
			all = append(all, c.shown())
		}
	}
	for _, standing := range all {
		if !yield(standing) {
			break
		}
	}
	return nil
}

// standings copies what the schedule has.
func (s *Service) standings() (all []Standing, on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all = make([]Standing, 0, len(s.schedule.subjects))
	for _, c := range s.schedule.subjects {
		all = append(all, c.shown())
	}
	return all, s.schedule.on
}

// EachCount yields how many domains are in each state of each axis; nothing without a verification block.
func (s *Service) EachCount(yield func(axis, state string, n int)) {
	s.mu.Lock()
	on, counts := s.schedule.on, s.schedule.counts
	s.mu.Unlock()
	if !on {
		return
	}
	for i, axis := range axes {
		for j, state := range axis.states {
			yield(axis.name, state, counts.states[i][j])
		}
	}
}

// Some reports whether a domain is in a state of ownership; false where nothing is checked.
func (s *Service) Some(ownership string) (some bool) {
	s.EachCount(func(axis, state string, n int) {
		some = some || axis == AxisOwnership && state == ownership && n > 0
	})
	return some
}

// A Status is the part of /status about the checks of domains.
type Status struct {
	Domains     int            `json:"domains"`
	Ready       int            `json:"ready"`
	Ownership   map[string]int `json:"ownership"`
	Pointing    map[string]int `json:"pointing"`
	Certificate map[string]int `json:"certificate"`
	Checking    int            `json:"checking"` // checks that run
	// Waiting lists the projects with checks that are due, or asked for, and have no place yet; the longest wait first, at
	// most maxListed.
	Waiting     []Waiting  `json:"waiting"`
	NextCheckAt *time.Time `json:"nextCheckAt"` // nil: none is planned
	// Trouble lists failing and lost domains, and Unwritten those whose result cannot be written into the files; each at
	// most maxListed.
	Trouble   []Trouble   `json:"trouble"`
	Unwritten []unwritten `json:"unwritten"`
	Problem   string      `json:"problem,omitempty"` // why the checks stand still
}

// A Waiting is a project whose checks wait for a place.
type Waiting struct {
	Project string    `json:"project"` // its slug
	Count   int       `json:"count"`
	Since   time.Time `json:"since"`

	domain string // one of them
}

// A Trouble is a domain whose proof is gone.
type Trouble struct {
	Domain    string    `json:"domain"`
	Project   string    `json:"project"` // its slug
	ProjectID int64     `json:"projectId"`
	Ownership string    `json:"ownership"`
	Since     time.Time `json:"since"`
	Misses    int       `json:"misses"`
}

// maxListed bounds the lists of a Status.
const maxListed = 100

// Status returns the present state; nil without a verification block.
func (s *Service) Status() *Status {
	st, trouble := s.status()
	if st == nil {
		return nil
	}
	for i := range st.Waiting {
		if d, found, err := s.o.Domains.Named(st.Waiting[i].domain); err == nil && found {
			st.Waiting[i].Project = d.Slug
		}
	}
	for i := range trouble {
		c := &trouble[i]
		t := Trouble{Domain: c.name, ProjectID: c.projectID, Ownership: c.standing.state(0)}
		if state, err := s.notes.read(c.key()); err == nil { // else the ledger is away, as Problem says
			t.Since, t.Misses = state.Ownership.Since.UTC(), state.Ownership.Misses
		}
		if d, found, err := s.o.Domains.Named(c.name); err == nil && found {
			t.Project = d.Slug
		}
		st.Trouble = append(st.Trouble, t)
	}
	return st
}

// status returns the Status without Trouble, and copies of the subjects for it.
func (s *Service) status() (st *Status, trouble []subject) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := &s.schedule
	if !c.on {
		return nil, nil
	}
	st = &Status{Domains: c.counts.all, Ready: c.counts.ready, Ownership: map[string]int{}, Pointing: map[string]int{},
		Certificate: map[string]int{}, Checking: len(s.flights), Waiting: s.waiting(), Trouble: []Trouble{},
		Unwritten: []unwritten{}, Problem: cmp.Or(s.unloaded, s.unsaved)}
	for i, of := range []map[string]int{st.Ownership, st.Pointing, st.Certificate} {
		for j, state := range axes[i].states {
			of[state] = c.counts.states[i][j]
		}
	}
	now := s.reading()
	if len(st.Waiting) > 0 {
		st.NextCheckAt = &now.wall
	} else if next, waits := c.next(); waits {
		at := now.wallOf(next)
		st.NextCheckAt = &at
	}
	for c := range c.trouble {
		trouble = append(trouble, *c)
	}
	slices.SortFunc(trouble, func(a, b subject) int { return cmp.Compare(a.name, b.name) })
	trouble = trouble[:min(len(trouble), maxListed)]
	for _, name := range slices.Sorted(maps.Keys(s.unsaid))[:min(len(s.unsaid), maxListed)] {
		st.Unwritten = append(st.Unwritten, s.unsaid[name])
	}
	return st, trouble
}

// waiting returns the projects with checks that wait for a place, without their slugs. The caller holds mu.
func (s *Service) waiting() []Waiting {
	now := s.reading()
	by := map[catalog.UUID]*Waiting{}
	s.schedule.eachDue(now.since, func(c *subject) {
		w := by[c.project]
		if w == nil {
			w = &Waiting{Since: now.wallOf(c.next), domain: c.name}
			by[c.project] = w
		}
		if w.Count++; now.wallOf(c.next).Before(w.Since) {
			w.Since = now.wallOf(c.next)
		}
	})
	all := make([]Waiting, 0, len(by))
	for _, w := range by {
		all = append(all, *w)
	}
	slices.SortFunc(all, func(a, b Waiting) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.domain, b.domain))
	})
	return all[:min(len(all), maxListed)]
}

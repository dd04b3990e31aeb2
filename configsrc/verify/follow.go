package verify

import (
	"errors"
	"maps"
	"math/rand/v2"
	"time"

	"fingerpost/configsrc/verify/dcv"
	"fingerpost/resolver/catalog"
)

// follow takes up what has changed; all: anything may have. It reports whether the schedule is that of the files.
func (s *Service) follow(all bool) bool {
	var changed []string
	for {
		names, any := s.o.Changes.Next()
		if any {
			all, changed = true, nil
		} else if len(names) == 0 {
			break
		} else if !all {
			changed = append(changed, names...)
		}
	}
	var err error
	if all {
		err = s.load()
	}
	if !s.isOn() {
		changed = nil // a read of each would be a thirtieth of the CPU time of a write
	}
	for _, name := range changed {
		if err = s.refresh(name); err != nil {
			break // all are loaded once that works
		}
	}
	s.setProblem(&s.unloaded, err)
	return err == nil
}

// isOn reports whether the files have a verification block, as of the last load.
func (s *Service) isOn() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.schedule.on
}

// load makes the schedule from all domains and their notes, and forgets the notes of domains that are gone.
func (s *Service) load() error {
	policy, on := s.o.Domains.Policy()
	if !on {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.schedule = schedule{}
		clear(s.unsaid)
		return nil
	}
	s.notes.storing.Lock() // what checks note meanwhile stays in unsaved
	defer s.notes.storing.Unlock()
	all, err := s.gather(policy)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	was, now := s.schedule, s.reading()
	s.schedule = newSchedule(policy)
	for name, c := range all.subjects {
		if old := was.subjects[name]; old != nil && old.project == c.project && old.verified == c.verified {
			c.next = old.next // the block has changed, or the feed has lost its place: nothing is late because of that
		} else {
			c.next = firstDue(c, now)
		}
		s.schedule.add(c, s.flights[name] == nil)
	}
	for _, key := range all.gone {
		s.notes.put(key, nil)
	}
	maps.DeleteFunc(s.unsaid, func(name string, _ unwritten) bool { return s.schedule.subjects[name] == nil })
	s.catchUp(now)
	return errors.Join(s.noteChanges(all.changed, now)...)
}

// gathered is what the files and the ledger have.
type gathered struct {
	subjects map[string]*subject
	gone     []noteKey // notes without a domain
	changed  []noteKey // notes of another value of verified, or of a write whose end is not noted
}

// gather reads all domains with what is known of them. The caller holds notes.storing.
func (s *Service) gather(policy dcv.Policy) (all gathered, err error) {
	all.subjects = map[string]*subject{}
	err = s.o.Domains.Each(func(d Domain) bool {
		all.subjects[d.Name] = &subject{project: d.Project, projectID: d.ProjectID, id: d.ID, name: d.Name,
			verified: d.Verified}
		return true
	})
	if err != nil {
		return all, err
	}
	noted, now := map[noteKey]bool{}, s.reading()
	err = s.notes.each(func(key noteKey, state dcv.State) {
		c := all.subjects[key.domain]
		if c == nil || c.project != key.project {
			all.gone = append(all.gone, key)
			return
		}
		noted[key] = true
		if state.Subject.Verified != c.verified || state.Ownership.Writing != "" {
			all.changed = append(all.changed, key)
		}
		c.meet(policy, state, now)
	})
	if err != nil {
		return all, err
	}
	for _, c := range all.subjects {
		if !noted[c.key()] {
			c.meet(policy, dcv.State{}, now)
		}
	}
	return all, nil
}

// noteChanges notes that people have changed domains: a change to a value and back is not taken for nothing, and a value
// that a crash has kept the service from writing is a person's from now on. The caller holds mu.
func (s *Service) noteChanges(changed []noteKey, now reading) (failed []error) {
	for _, key := range changed {
		c := s.schedule.subjects[key.domain]
		if c == nil || s.flights[key.domain] != nil { // its check reads the file, too
			continue
		}
		state, err := s.notes.read(key)
		if err == nil {
			err = s.notes.set(key, dcv.Settle(c.meet(s.schedule.policy, state, now), false, now.wall))
		}
		failed = append(failed, err)
	}
	return failed
}

// meet takes over what is known of a subject, and returns what that means for what its file has now.
func (c *subject) meet(policy dcv.Policy, state dcv.State, now reading) dcv.State {
	of := dcv.Subject{Project: c.project, Name: c.name, Verified: c.verified}
	state = dcv.Follow(state, of, policy, now.wall)
	c.standing = standingOf(&state)
	switch {
	case c.verified == catalog.VerifiedPending:
		c.class = classPending
	case !c.standing.settled():
		c.class = classOpen
	default:
		c.class = classSettled
	}
	c.next = now.due(state.NextAt)
	return state
}

// firstDue returns when a subject is checked that was just loaded. What is not proven and overdue goes first, the rest is
// spread: a restart is no storm.
func firstDue(c *subject, now reading) time.Duration {
	if c.next > now.since || c.class != classSettled {
		return c.next
	}
	return now.since + rand.N(spreadWithin)
}

// catchUp gives the schedule what checks have noted while it was made. The caller holds mu.
func (s *Service) catchUp(now reading) {
	s.notes.unsaved(func(key noteKey, state dcv.State) {
		if c := s.schedule.subjects[key.domain]; c != nil && c.project == key.project {
			s.schedule.change(c, s.flights[key.domain] == nil, func() { c.meet(s.schedule.policy, state, now) })
		}
	})
}

// refresh takes up what has become of one name. The caller has checked that the schedule is on.
func (s *Service) refresh(name string) error {
	d, found, err := s.o.Domains.Named(name)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.schedule.subjects[name]
	if old != nil && (!found || old.project != d.Project) {
		s.schedule.remove(old)
		delete(s.unsaid, name)
		s.notes.put(old.key(), nil)
		old = nil
	}
	switch {
	case !found:
		return nil
	case old == nil:
		old = &subject{project: d.Project, name: d.Name}
	case old.verified == d.Verified:
		old.projectID, old.id = d.ProjectID, d.ID
		return nil
	default:
		s.schedule.remove(old)
	}
	old.projectID, old.id, old.verified = d.ProjectID, d.ID, d.Verified
	state, err := s.notes.read(old.key())
	if err != nil {
		return err
	}
	now := s.reading()
	old.meet(s.schedule.policy, state, now)
	s.schedule.add(old, s.flights[name] == nil)
	if state.Subject.Name == "" {
		return nil
	}
	return errors.Join(s.noteChanges([]noteKey{old.key()}, now)...)
}

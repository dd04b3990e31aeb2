package configsrc

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"fingerpost/configsrc/judge"
	"fingerpost/resolver/catalog"
)

// ErrHeld is returned by Reload while a reload is held back.
var ErrHeld = errors.New("the reload is held back; see /status, and confirm it with \"fingerpost reload --confirm\"")

// brakeFrom is the number of projects from which the brake applies shares.
const brakeFrom = 10

// brake holds a look back when it would remove too much. Removals that wait for a second look count, and until then
// nothing of the look is committed: it is held whole or not at all. What someone has confirmed is let through, and
// returned.
func (s *Source) brake(found *finding, loss judge.Counts, start time.Time) (through *Held, held bool, err error) {
	reason, empty := s.tooMuch(found, loss)
	switch h := (Held{Reason: reason, Projects: loss.Projects, Domains: loss.Domains}); {
	case reason == "":
		return nil, false, nil
	case s.confirmed:
		h.By = s.confirmer
		return &h, false, nil
	case s.states.noteSuspects(found.candidates, start): // held already or not, it is too early to decide
		return nil, true, nil
	case empty:
		return nil, true, s.holdTree(reason)
	default:
		h.Removes = s.removes(found)
		s.noteHeld(h)
		return nil, true, ErrHeld
	}
}

// maxNamed bounds how many objects a hold names.
const maxNamed = 40

// removes names the objects that a look would remove, with the files that declare them, projects first. The domains of
// a project that goes are not named.
func (s *Source) removes(found *finding) (names []string) {
	stays := map[catalog.Ref]bool{}
	for _, c := range found.candidates {
		if !c.Rejected {
			for _, ref := range c.Refs {
				stays[catalog.Ref{Kind: ref.Kind, UUID: ref.UUID}] = true
			}
		}
	}
	var domains []string
	for _, c := range found.candidates {
		if c.Prev == nil || c.Rejected {
			continue
		}
		row, err := s.o.Sink.File(c.Path)
		if err != nil {
			continue // the counts tell
		}
		gone := map[int64]bool{} // projects
		for _, ref := range row.Refs {
			if ref.Kind == catalog.KindProject && !stays[catalog.Ref{Kind: ref.Kind, UUID: ref.UUID}] {
				gone[ref.ID] = true
				names = append(names, c.Path+": project "+ref.Name)
			}
		}
		for _, ref := range row.Refs {
			if ref.Kind == catalog.KindDomain && !gone[ref.ProjectID] && !stays[catalog.Ref{Kind: ref.Kind, UUID: ref.UUID}] {
				domains = append(domains, c.Path+": domain "+ref.Name)
			}
		}
	}
	slices.Sort(names)
	slices.Sort(domains)
	names = append(names, domains...)
	return names[:min(len(names), maxNamed)]
}

// tooMuch returns why a look needs a confirmation, "" if it needs none. empty: no config file is left.
func (s *Source) tooMuch(found *finding, loss judge.Counts) (reason string, empty bool) {
	total := s.table.Total
	switch {
	case len(s.table.Files) > 0 && s.remaining(found) == 0:
		return "the config folder has no config files", true
	case total.Projects >= brakeFrom &&
		(float64(loss.Projects) > s.o.MaxDelete*float64(total.Projects) ||
			float64(loss.Domains) > s.o.MaxDelete*float64(total.Domains)):
		return fmt.Sprintf("it would remove %d of %d projects and %d of %d domains, more than %.0f%%",
			loss.Projects, total.Projects, loss.Domains, total.Domains, s.o.MaxDelete*100), false
	}
	return "", false
}

// remaining returns the number of accepted files after a look.
func (s *Source) remaining(found *finding) int {
	n := len(s.table.Files)
	for _, c := range found.candidates {
		switch {
		case c.Rejected:
		case c.Gone && c.Prev != nil:
			n--
		case !c.Gone && c.Prev == nil:
			n++
		}
	}
	return n
}

// holdTree holds back a look that finds the folder missing, unreadable or empty. If nothing is served, there is nothing
// to protect.
func (s *Source) holdTree(reason string) error {
	if len(s.table.Files) == 0 {
		err := fmt.Errorf("load %s: %s", s.o.Dir, reason)
		s.noteFailure(err)
		return err
	}
	s.noteHeld(Held{Reason: reason, Projects: s.table.Total.Projects, Domains: s.table.Total.Domains})
	return ErrHeld
}

// settled ends a look that was committed and left no suspect; through is what the brake has let through. If it was a
// look at everything, a hold ends and a confirmation is used up.
func (s *Source) settled(all bool, through *Held) {
	if through != nil && s.o.OnConfirm != nil {
		s.o.OnConfirm(*through)
	}
	s.endNote()
	if !all {
		return
	}
	s.confirmed, s.confirmer = false, catalog.Author{}
	s.endHeld()
}

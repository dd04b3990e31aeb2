package configsrc

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"fingerpost/configsrc/atomicfile"
	"fingerpost/configsrc/judge"
	"fingerpost/resolver/catalog"
)

// ErrHeld is returned by Reload while a reload is held back.
var ErrHeld = errors.New("the reload is held back; see /status, and confirm it with \"fingerpost reload --confirm\"")

// brakeFrom is the number of projects from which the brake applies shares.
const brakeFrom = 10

// A brake holds back what would remove too much, until someone confirms it. The goroutine that looks owns it.
type brake struct {
	*base
	states    *pathStates
	report    *reporter
	removals  *removals
	confirmed bool
	confirmer catalog.Author // who has; zero: the operator
}

// holdBack holds a look back when it would remove too much. Removals that wait for a second look count, and until then
// nothing of the look is committed: it is held whole or not at all. What someone has confirmed is let through, and
// returned.
func (b *brake) holdBack(candidates []*judge.Candidate, loss judge.Counts, start time.Time) (through *Held, held bool,
	err error) {
	reason, empty := b.reasonFor(candidates, loss)
	switch h := (Held{Reason: reason, Projects: loss.Projects, Domains: loss.Domains}); {
	case reason == "":
		return nil, false, nil
	case b.confirmed:
		h.By = b.confirmer
		return &h, false, nil
	case b.states.noteSuspects(candidates, start): // held already or not, it is too early to decide
		return nil, true, nil
	case empty:
		return nil, true, b.holdTree(reason)
	default:
		h.Removes = b.namesRemoved(candidates)
		b.report.noteHeld(h)
		return nil, true, ErrHeld
	}
}

// maxNamed bounds how many objects a hold names.
const maxNamed = 40

// namesRemoved names the objects that a look would remove, with the files that declare them, projects first. The domains
// of a project that goes are not named.
func (b *brake) namesRemoved(candidates []*judge.Candidate) (names []string) {
	stays := map[catalog.Ref]bool{}
	for _, c := range candidates {
		if !c.Rejected {
			for _, ref := range c.Refs {
				stays[catalog.Ref{Kind: ref.Kind, UUID: ref.UUID}] = true
			}
		}
	}
	var domains []string
	for _, c := range candidates {
		if c.Prev == nil || c.Rejected {
			continue
		}
		row, err := b.o.Sink.File(c.Path)
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

// reasonFor returns why a look needs a confirmation, "" if it needs none. empty: no config file is left.
func (b *brake) reasonFor(candidates []*judge.Candidate, loss judge.Counts) (reason string, empty bool) {
	total := b.Table.Total
	switch {
	case len(b.Table.Files) > 0 && b.remaining(candidates) == 0:
		return "the config folder has no config files", true
	case total.Projects >= brakeFrom &&
		(float64(loss.Projects) > b.o.MaxDelete*float64(total.Projects) ||
			float64(loss.Domains) > b.o.MaxDelete*float64(total.Domains)):
		return fmt.Sprintf("it would remove %d of %d projects and %d of %d domains, more than %.0f%%",
			loss.Projects, total.Projects, loss.Domains, total.Domains, b.o.MaxDelete*100), false
	}
	return "", false
}

// remaining returns the number of accepted files after a look.
func (b *brake) remaining(candidates []*judge.Candidate) int {
	n := len(b.Table.Files)
	for _, c := range candidates {
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

// holdFolder is holdTree for a folder that cannot be opened.
func (b *brake) holdFolder(err error) error {
	return b.holdTree(fmt.Sprintf("the config folder cannot be opened: %v", atomicfile.Cause(err)))
}

// holdTree holds back a look that finds the folder missing, unreadable or empty. If nothing is served, there is nothing
// to protect.
func (b *brake) holdTree(reason string) error {
	if len(b.Table.Files) == 0 {
		err := fmt.Errorf("load %s: %s", b.o.Dir, reason)
		b.report.noteFailure(err)
		return err
	}
	b.report.noteHeld(Held{Reason: reason, Projects: b.Table.Total.Projects, Domains: b.Table.Total.Domains})
	return ErrHeld
}

// confirm lets the next look through that would be held back.
func (b *brake) confirm(by catalog.Author) { b.confirmed, b.confirmer = true, by }

// endLook ends a look that was committed and left no suspect; through is what the brake has let through. If it was a
// look at everything, a hold ends and a confirmation is used up.
func (b *brake) endLook(all bool, through *Held) {
	if through != nil && b.o.OnConfirm != nil {
		b.o.OnConfirm(*through)
	}
	b.removals.endNote()
	if !all {
		return
	}
	b.confirmed, b.confirmer = false, catalog.Author{}
	b.report.endHeld()
}

package configsrc

import (
	"fmt"

	"fingerpost/configsrc/judge"
)

// The Sink commits without fsync, so after a crash it can be older than the files. For a removal that is a problem: the
// next start would see everything removed before the crash as one mass removal, and the brake would hold it back
// together with all other changes. So a note in the Sink, durable before a removal begins, lists the projects and
// domains to be removed, and the brake does not count them. The note is deleted once the removal is durable, which for
// an API write is before its answer. A change without removals needs no note and no fsync.

// removals are the projects and domains of the note.
type removals struct {
	sink     Sink
	removing map[judge.Claim]bool
}

// noteClaims adds to the note.
func (r *removals) noteClaims(removed []judge.Claim) error {
	for c := range r.removing {
		removed = append(removed, c)
	}
	note := make([]byte, 0, len(removed)*len(judge.Claim{}))
	for _, c := range removed {
		note = append(note, c[:]...)
	}
	if err := r.sink.NoteRemovals(note); err != nil {
		return err
	}
	r.removing = judge.SetOf(removed)
	return nil
}

// endNote makes the applied removals durable and the note empty. If the Sink's disk refuses, the note stays until a
// later look.
func (r *removals) endNote() {
	if len(r.removing) > 0 && r.sink.NoteRemovals(nil) == nil {
		r.removing = nil
	}
}

// loadNote loads the note of a killed process.
func (r *removals) loadNote() error {
	note, err := r.sink.Removals()
	if err != nil {
		return fmt.Errorf("read the note of removals: %w", err)
	}
	var removed []judge.Claim
	for len(note) >= len(judge.Claim{}) {
		removed, note = append(removed, judge.Claim(note)), note[len(judge.Claim{}):]
	}
	r.removing = judge.SetOf(removed)
	return nil
}

package verify

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"fingerpost/configsrc/verify/dcv"
	"fingerpost/resolver/records"
)

// A notebook is the notes in the ledger, with those that are not stored yet.
type notebook struct {
	ledger  Ledger
	log     *slog.Logger
	dirty   chan struct{} // of capacity 1: there is something to store
	storing sync.Mutex    // held while a batch is stored, and while all notes are read; taken before mu

	mu      sync.Mutex // guards the fields below
	pending map[noteKey][]byte
	batch   map[noteKey][]byte // is being stored
}

// put replaces a note; it is stored within about a second. nil deletes it.
func (b *notebook) put(key noteKey, text []byte) {
	b.mu.Lock()
	b.pending[key] = text
	b.mu.Unlock()
	b.again()
}

// set is put for a state.
func (b *notebook) set(key noteKey, state dcv.State) error {
	text, err := state.Encode()
	if err == nil {
		b.put(key, text)
	}
	return err
}

// putNow replaces a note durably. After an error it is as it was.
func (b *notebook) putNow(key noteKey, text []byte) error {
	b.storing.Lock()
	defer b.storing.Unlock()
	one := []records.DomainNote{{Project: key.project, Domain: key.domain, Note: text}}
	if err := b.ledger.ChangeDomainNotes(one); err != nil {
		return err
	}
	b.mu.Lock()
	delete(b.pending, key) // it is older
	b.mu.Unlock()
	return nil
}

// read returns the state of a domain; the zero State if there is no note.
func (b *notebook) read(key noteKey) (dcv.State, error) {
	b.mu.Lock()
	text, there := b.pending[key]
	if !there {
		text, there = b.batch[key]
	}
	b.mu.Unlock()
	if !there {
		var err error
		if text, _, err = b.ledger.DomainNote(key.project, key.domain); err != nil {
			return dcv.State{}, err
		}
	}
	return b.state(key, text), nil
}

// state decodes a note, the zero State if that fails: then it counts as a domain that was never checked, and what its file
// has as written by people.
func (b *notebook) state(key noteKey, text []byte) dcv.State {
	if text == nil {
		return dcv.State{}
	}
	state, err := dcv.DecodeState(text)
	if err != nil {
		b.log.Warn("a note about checks is lost", "domain", key.domain, "error", err)
	}
	return state
}

// store stores what is pending. After an error it is pending still.
func (b *notebook) store() error {
	b.storing.Lock()
	defer b.storing.Unlock()
	return b.storeLocked()
}

// storeLocked is store for a caller that holds storing.
func (b *notebook) storeLocked() error {
	b.mu.Lock()
	if len(b.pending) == 0 {
		b.mu.Unlock()
		return b.ledger.ChangeDomainNotes(nil) // tells whether it works
	}
	batch := b.pending
	b.batch, b.pending = batch, map[noteKey][]byte{}
	b.mu.Unlock()
	notes := make([]records.DomainNote, 0, len(batch))
	for key, text := range batch {
		notes = append(notes, records.DomainNote{Project: key.project, Domain: key.domain, Note: text})
	}
	err := b.ledger.ChangeDomainNotes(notes)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.batch = nil
	if err != nil {
		for key, text := range batch {
			if _, newer := b.pending[key]; !newer {
				b.pending[key] = text
			}
		}
	}
	return err
}

// each calls f with the states of all notes, after storing what is pending. The caller holds storing.
func (b *notebook) each(f func(key noteKey, state dcv.State)) error {
	if err := b.storeLocked(); err != nil {
		return err
	}
	return b.ledger.EachDomainNote(func(n records.DomainNote) error {
		key := noteKey{n.Project, n.Domain}
		f(key, b.state(key, n.Note))
		return nil
	})
}

// save stores notes once a second until ctx ends.
func (s *Service) save(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.notes.dirty:
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(saveEvery):
		}
		err := s.notes.store()
		if err != nil {
			s.notes.again()
		}
		s.setProblem(&s.unsaved, err)
		s.look()
	}
}

// again makes save store what is pending after its pause.
func (b *notebook) again() {
	select {
	case b.dirty <- struct{}{}:
	default:
	}
}

// unsaved calls f with the states that the ledger does not have yet.
func (b *notebook) unsaved(f func(key noteKey, state dcv.State)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for key, text := range b.pending {
		if text != nil {
			f(key, b.state(key, text))
		}
	}
}

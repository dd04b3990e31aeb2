package resolver

import (
	"errors"

	"fingerpost/resolver/catalog"
	"fingerpost/resolver/store"
)

// Apply commits a change and returns its generation. After it returns, no answer from before the change is given. If
// the disk has failed, the change goes to the store in memory; an error means that nothing has changed.
func (r *Resolver) Apply(c *catalog.Change) (generation uint64, err error) {
	r.applying.Lock()
	defer r.applying.Unlock()
	effect, err := r.apply(c, 1)
	if err != nil {
		return 0, err
	}
	r.tell(effect)
	if r.options.OnGeneration != nil {
		r.options.OnGeneration(generationOf(effect, c))
	}
	return effect.Generation, nil
}

// Fill is Apply without a new generation: for all parts of a first load but the last one (no answers are given before
// that), and for rows alone.
func (r *Resolver) Fill(c *catalog.Change) error {
	r.applying.Lock()
	defer r.applying.Unlock()
	effect, err := r.apply(c, 0)
	if err != nil {
		return err
	}
	if len(effect.Projects)+len(effect.Domains) > 0 || effect.Many || effect.Defaults || effect.Keys {
		r.feed.unsure = true
	}
	return nil
}

// apply commits a change to the store that takes writes, or to its replacement. The caller holds applying.
func (r *Resolver) apply(c *catalog.Change, generations uint64) (*store.Effect, error) {
	for {
		st := r.stores.Writes()
		effect, err := r.applyTo(st, c, generations)
		if err == nil {
			return effect, nil
		}
		if effect != nil {
			r.feed.unsure = true // the change is committed nevertheless
		}
		if !errors.Is(err, store.ErrUnavailable) && !errors.Is(err, store.ErrDamaged) {
			return nil, err
		}
		// The failed store may hold the change already, and its replacement copies it from there.
		r.feed.unsure = true
		if r.stores.TakeOver(st) != nil {
			return nil, catalog.Unreadable(err)
		}
	}
}

// applyTo keeps the order that the proof in stamps needs.
func (r *Resolver) applyTo(st *store.Store, c *catalog.Change, generations uint64) (*store.Effect, error) {
	began, read, l := false, st == r.stores.Reads(), r.applying.trail.CatchUp(st, r.TrailLedger())
	now := r.options.Now() // entries and objects have the same time, see trail.Keeper.GiveTimes
	if c.Position == nil {
		r.applying.trail.GiveTimes(c)
	}
	effect, err := st.Apply(c, generations, now, func(e *store.Effect) error {
		if c.Position == nil { // otherwise the authority records it
			if err := r.applying.trail.Record(l, c, e, now); err != nil {
				return err
			}
		}
		began = true
		if read {
			// Calls that arrive before the change ends read the state before it.
			if m, err := st.Moment(); err == nil { // otherwise the commit will fail, too
				r.before.Store(m)
			}
		}
		r.stamps.begin()
		return nil
	})
	if !began {
		return nil, err
	}
	// Nothing reads a store that is being filled, and it does not have all keys yet. Answers from the old store stay fresh
	// until exchange raises all stamps: if that store is damaged, it may not be able to give them again.
	if err == nil && read {
		err = r.owners.noteEffect(st, effect)
		if err != nil || effect.Keys || effect.Edges || effect.Webhooks || effect.Logins || effect.Inbounds ||
			effect.Sealing || effect.Defaults || r.applying.unsettled || r.settled.Load().keys.rebinds(effect) {
			err = r.publishStore(st)
			r.applying.unsettled = err != nil // the next change, or the replacing store, tries again
		}
		r.stamps.raise(effect, r.hashName)
	}
	r.stamps.end()
	if m := r.before.Swap(nil); m != nil {
		_ = m.Close() // a reader of this moment reports errors itself
	}
	if effect == nil {
		return nil, err
	}
	r.applying.trail.Committed(effect)
	r.dropChangedSecrets(effect)
	r.finder.noteEffect(effect)
	if read {
		r.ids.noteEffect(effect)
	}
	// The position promises that every later answer has the change: all that answers from memory has it by now
	// (TestReadsHaveThePosition).
	r.publishPosition()
	return effect, err
}

// Pace says whether clients wait for answers: if so, flushes and merges of the store are paced.
func (r *Resolver) Pace(on bool) { r.stores.Pace(on) }

// Degraded returns why the store or the ledger on disk is not in use. The reason is written for an operator.
func (r *Resolver) Degraded() (reason string, bad bool) { return r.stores.Degraded() }

// Writable reports whether a change written now survives the process. The ledger does not matter for it.
func (r *Resolver) Writable() bool { return r.stores.Writable() }

// exchange replaces the store that is read. content says that its content may differ from the previous one's. The caller
// holds applying.
func (r *Resolver) exchange(st *store.Store, content bool) error {
	if err := r.use(st); err != nil {
		return err
	}
	if content {
		r.feed.unsure = false
		at := catalog.Position{Epoch: st.Epoch(), Generation: st.Generation()}
		r.feed.publish(at, everything(at.Generation))
	}
	return nil
}

func (r *Resolver) use(st *store.Store) error {
	r.stamps.begin()
	defer r.publishPosition()
	defer r.stamps.end()
	r.owners.forget()
	if err := r.publishStore(st); err != nil {
		return err
	}
	r.stores.Use(st)
	r.stamps.raiseAll()
	r.finder.forget()
	r.ids.forget()
	return nil
}

// settled holds the small parts of the configuration, decoded.
type settled struct {
	keys     *KeySet
	edges    []catalog.Edge
	webhooks []catalog.Webhook
	logins   []catalog.Login
	inbounds []catalog.Inbound
	sealing  *catalog.Sealing
	defaults *catalog.Defaults
}

// publishStore publishes what a store has. The caller holds applying.
func (r *Resolver) publishStore(st *store.Store) error {
	next, err := readSettled(st, &r.owners)
	if err == nil {
		err = r.owners.prepare(st, next.keys)
	}
	if err != nil {
		return err
	}
	next.keys.logins = next.logins
	r.applying.guests = next.keys.bindGuests(r.applying.guests)
	r.settled.Store(next)
	return nil
}

// lists returns the objects that have lists of projects, except keys.
func (s *settled) lists() *catalog.Declared {
	return &catalog.Declared{Webhooks: s.webhooks, Logins: s.logins, Inbounds: s.inbounds}
}

func readSettled(st *store.Store, o *owners) (*settled, error) {
	var keys []*catalog.Key
	err := st.Keys(func(k *catalog.Key) bool {
		keys = append(keys, k)
		return true
	})
	if err != nil {
		return nil, err
	}
	s := new(settled)
	if err = st.Webhooks(func(w *catalog.Webhook) bool { s.webhooks = append(s.webhooks, *w); return true }); err != nil {
		return nil, err
	}
	if err = st.Logins(func(l *catalog.Login) bool { s.logins = append(s.logins, *l); return true }); err != nil {
		return nil, err
	}
	if err = st.Inbounds(func(b *catalog.Inbound) bool { s.inbounds = append(s.inbounds, *b); return true }); err != nil {
		return nil, err
	}
	err = st.View(func(v *store.View) (err error) {
		if s.keys, err = newKeySet(keys, o, v.ProjectID); err == nil {
			err = s.keys.bindLists(s.lists(), v.ProjectID)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if err = st.Edges(func(e *catalog.Edge) bool { s.edges = append(s.edges, *e); return true }); err != nil {
		return nil, err
	}
	if s.sealing, err = st.Sealing(); err != nil {
		return nil, err
	}
	if s.defaults, err = st.Defaults(); err != nil {
		return nil, err
	}
	return s, nil
}

// Generation returns the newest generation that Apply has returned.
func (r *Resolver) Generation() uint64 { return r.stores.Writes().Generation() }

// Files yields the whole file table by path: the files that the store has accepted, and their state.
func (r *Resolver) Files(yield func(path string, row *catalog.FileRow) bool) error {
	if err := r.stores.Writes().Files(yield); err != nil {
		return catalog.Unreadable(err)
	}
	return nil
}

// LastGood returns the last accepted bytes of a file, nil when there are none. While a new store is being filled, it
// also asks the old one: the last declaration of a broken file must not be lost with the disk.
func (r *Resolver) LastGood(path string) ([]byte, error) {
	return r.fromEither(func(st *store.Store) ([]byte, error) { return st.LastGood(path) })
}

func (r *Resolver) fromEither(read func(*store.Store) ([]byte, error)) ([]byte, error) {
	writes, reads := r.stores.Writes(), r.stores.Reads()
	b, err := read(writes)
	if err == nil && b == nil && reads != writes {
		b, err = read(reads)
	}
	if err != nil {
		return nil, catalog.Unreadable(err)
	}
	return b, nil
}

// DecoderRevision returns the revision of the files' decoder that filled the store, 0 if none was set. With another
// revision, all files must be parsed again.
func (r *Resolver) DecoderRevision() (uint64, error) {
	v, err := r.stores.Writes().DecoderRevision()
	if err != nil {
		return 0, catalog.Unreadable(err)
	}
	return v, nil
}

// SetDecoderRevision stores the decoder's revision once all files have been applied. The audit trail then has every
// change that was found.
func (r *Resolver) SetDecoderRevision(v uint64) error {
	r.applying.Lock()
	defer r.applying.Unlock()
	for {
		st := r.stores.Writes()
		err := r.applying.trail.Settle(st, r.applying.trail.CatchUp(st, r.TrailLedger()))
		if err == nil {
			err = st.SetDecoderRevision(v)
		}
		if err == nil {
			return nil
		}
		if r.stores.TakeOver(st) != nil {
			return catalog.Unreadable(err)
		}
	}
}

// NoteRemovals replaces the note about imminent removals, and makes it and every earlier change durable. While durable
// writes are refused, it accepts only an empty note: another one would be lost with the process.
func (r *Resolver) NoteRemovals(note []byte) error {
	if len(note) > 0 && !r.Writable() || r.stores.Writes().NoteRemovals(note) != nil {
		return &catalog.Error{Code: catalog.CodeUnavailable,
			Message: "the store has failed; writes are refused until it is back"}
	}
	return nil
}

// Removals returns the note of NoteRemovals, nil when there is none.
func (r *Resolver) Removals() ([]byte, error) {
	note, err := r.stores.Writes().Removals()
	if err != nil {
		return nil, catalog.Unreadable(err)
	}
	return note, nil
}

// Sealing returns the sealing block, nil when there is none. It is shared: do not change it.
func (r *Resolver) Sealing() *catalog.Sealing { return r.settled.Load().sealing }

// Defaults returns the defaults block, nil when there is none. It is shared: do not change it.
func (r *Resolver) Defaults() *catalog.Defaults { return r.settled.Load().defaults }

// Keys returns the present API keys. It costs one atomic load.
func (r *Resolver) Keys() *KeySet { return r.settled.Load().keys }

// Edges lists the declared edges by name. The list is shared: do not change it.
func (r *Resolver) Edges() []catalog.Edge { return r.settled.Load().edges }

// Counts returns the numbers of projects and domains.
func (r *Resolver) Counts() store.Counts { return r.stores.Reads().Counts() }

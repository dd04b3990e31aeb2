package records

import (
	"fmt"
	"path/filepath"

	"fingerpost/resolver/ledger"
)

// TakeUp prepares a ledger before it is used: it deletes mails that were refused while the ledger failed, continues
// the ids after its last one, and finds the damaged ledgers whose mail must be copied to it.
func (r *Records) TakeUp(l *ledger.Ledger) error {
	r.accepting.Lock() // no call uses the failed ledger any more
	r.mu.Lock()
	doubtful, stored := r.doubtful, r.stored
	r.mu.Unlock()
	r.accepting.Unlock()
	if err := l.ForgetMail(doubtful); err != nil {
		return err
	}
	asides, err := ledger.MovedAside(filepath.Join(r.o.DataDir, ledger.Folder))
	if err != nil {
		return err
	}
	if n := l.MailMissing(); n > 0 {
		err = r.noteLoss(l, fmt.Sprintf("the log of the store was damaged: the last %d writes of mail are lost", n))
	} else if len(asides) == 0 && l.MailIDBound() < stored {
		err = r.noteLoss(l, "the data directory was removed or replaced while in use: what it had of mail is lost")
	}
	if err == nil {
		err = r.readGaps(l)
	}
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.doubtful = r.doubtful[len(doubtful):]
	if r.refused = append(r.refused, doubtful...); len(asides) == 0 {
		r.refused = nil
	}
	if r.former != nil {
		at, _ := r.former.Events()
		l.HoldEvents(at.Entry)
	}
	r.former = l
	r.stored = 0 // its content is known now
	r.last = max(r.last, l.MailIDBound())
	r.asides, r.recovered = asides, false
	return nil
}

// noteLoss logs and stores what cannot be recovered.
func (r *Records) noteLoss(l *ledger.Ledger, reason string) error {
	r.o.Logger.Error("mail lost", "reason", reason)
	return l.NoteGap(&MailGap{Found: r.o.Now(), Reason: reason})
}

// Back copies the mail of damaged ledgers into the one in use, in the background: configuration must not wait for it.
func (r *Records) Back(l *ledger.Ledger) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if l == nil || !r.recovering() {
		return
	}
	before, done := r.salvaged, make(chan struct{})
	r.salvaged = done
	asides := r.asides
	go func() {
		defer close(done)
		if before != nil {
			<-before // its ledger has failed
		}
		if err := r.salvage(l, asides); err != nil && r.stores.Context().Err() == nil {
			r.o.Logger.Error("mail not recovered: it is tried again when the ledger is back, or with the next start",
				"error", err)
		}
	}()
}

// salvage copies the queues of all damaged ledgers first, so that mail can be accepted, then the logs.
func (r *Records) salvage(l *ledger.Ledger, asides []string) error {
	ctx := r.stores.Context()
	r.mu.Lock()
	refused := r.refused
	r.mu.Unlock()
	var open []*ledger.Salvage
	defer func() {
		for _, v := range open {
			_ = v.Abandon() // with an error above, everything is done again
		}
	}()
	for _, aside := range asides {
		v, err := l.OpenSalvage(ctx, aside, refused, r.o.Logger)
		if err != nil {
			return err
		}
		open = append(open, v)
		if err := v.Copy(ctx); err != nil {
			return err
		}
	}
	r.mu.Lock()
	r.recovered = true
	r.last = max(r.last, l.MailIDBound())
	r.mu.Unlock()
	if r.o.Recovered != nil {
		r.o.Recovered()
	}
	l.SettleEvents()
	for len(open) > 0 {
		v := open[0]
		if err := v.CopyLog(ctx); err != nil {
			return err
		}
		open = open[1:]
		gap, err := v.Close(r.o.Now())
		if err != nil {
			return err
		}
		r.o.Logger.Warn("mail recovered from a damaged store", "moved_to", gap.MovedTo, "entries", gap.Entries,
			"queued", gap.Queued, "lost", gap.Lost, "complete", gap.Complete, "reason", gap.Reason)
		if err := r.readGaps(l); err != nil {
			return err
		}
		r.mu.Lock()
		r.asides = r.asides[1:]
		r.mu.Unlock()
	}
	return nil
}

// Close ends running calls, lowers the reserved ids to those used, and closes the ledger.
func (r *Records) Close() error {
	r.mu.Lock()
	salvage, last := r.salvaged, r.last
	r.mu.Unlock()
	if salvage != nil {
		<-salvage
	}
	l := r.stores.Ledger()
	if l == nil {
		return nil
	}
	if !l.InMemory() && last > 0 && last < l.MailIDBound() {
		_ = l.ReserveMailIDs(last, true) // otherwise the next ids begin a second later
	}
	return l.Close()
}

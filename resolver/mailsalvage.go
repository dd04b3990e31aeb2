package resolver

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"fingerpost/resolver/ledger"
)

// takeUpMail prepares a ledger before it is used: it deletes mails that were refused while the ledger failed, continues
// the ids after its last one, and finds the damaged ledgers whose mail must be copied to it.
func (r *Resolver) takeUpMail(l *ledger.Ledger) error {
	m := &r.mail
	m.accepting.Lock() // no call uses the failed ledger any more
	m.mu.Lock()
	doubtful, stored := m.doubtful, m.stored
	m.mu.Unlock()
	m.accepting.Unlock()
	if err := l.ForgetMail(doubtful); err != nil {
		return err
	}
	asides, err := ledger.MovedAside(filepath.Join(r.options.DataDir, ledger.Folder))
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
	m.mu.Lock()
	defer m.mu.Unlock()
	m.doubtful = m.doubtful[len(doubtful):]
	if m.refused = append(m.refused, doubtful...); len(asides) == 0 {
		m.refused = nil
	}
	m.stored = 0 // its content is known now
	m.last = max(m.last, l.MailIDBound())
	m.asides, m.recovered = asides, false
	return nil
}

// noteLoss logs and stores what cannot be recovered.
func (r *Resolver) noteLoss(l *ledger.Ledger, reason string) error {
	r.options.Logger.Error("mail lost", "reason", reason)
	return l.NoteGap(&MailGap{Found: r.options.Now(), Reason: reason})
}

// startSalvage copies the mail of damaged ledgers in the background: configuration must not wait for it.
func (r *Resolver) startSalvage(l *ledger.Ledger) {
	m := &r.mail
	m.mu.Lock()
	defer m.mu.Unlock()
	if l == nil || !m.recovering() {
		return
	}
	before, done := m.salvage, make(chan struct{})
	m.salvage = done
	asides := m.asides
	go func() {
		defer close(done)
		if before != nil {
			<-before // its ledger has failed
		}
		if err := r.salvage(l, asides); err != nil && r.stores.Context().Err() == nil {
			r.options.Logger.Error("mail not recovered: it is tried again when the ledger is back, or with the next start",
				"error", err)
		}
	}()
}

// salvage copies the queues of all damaged ledgers first, so that mail can be accepted, then the logs.
func (r *Resolver) salvage(l *ledger.Ledger, asides []string) error {
	ctx := r.stores.Context()
	r.mail.mu.Lock()
	refused := r.mail.refused
	r.mail.mu.Unlock()
	var open []*ledger.Salvage
	defer func() {
		for _, v := range open {
			_ = v.Abandon() // with an error above, everything is done again
		}
	}()
	for _, aside := range asides {
		v, err := r.openSalvage(ctx, l, aside)
		if err != nil {
			return err
		}
		open = append(open, v)
		v.LeaveOut(refused)
		if err := errors.Join(v.Audit(ctx), v.Notes(ctx), v.Queue(ctx)); err != nil {
			return err
		}
	}
	r.mail.mu.Lock()
	r.mail.recovered = true
	r.mail.last = max(r.mail.last, l.MailIDBound())
	r.mail.mu.Unlock()
	r.flushAudit()
	for len(open) > 0 {
		v := open[0]
		if err := v.Log(ctx); err != nil {
			return err
		}
		open = open[1:]
		gap, err := v.Close(r.options.Now())
		if err != nil {
			return err
		}
		r.options.Logger.Warn("mail recovered from a damaged store", "moved_to", gap.MovedTo, "entries", gap.Entries,
			"queued", gap.Queued, "lost", gap.Lost, "complete", gap.Complete, "reason", gap.Reason)
		if err := r.readGaps(l); err != nil {
			return err
		}
		r.mail.mu.Lock()
		r.mail.asides = r.mail.asides[1:]
		r.mail.mu.Unlock()
	}
	return nil
}

// openSalvage waits for the lock of a damaged ledger: a failed instance releases it a moment later.
func (r *Resolver) openSalvage(ctx context.Context, l *ledger.Ledger, aside string) (*ledger.Salvage, error) {
	for {
		v, err := l.OpenSalvage(aside, r.options.Logger)
		if !errors.Is(err, ledger.ErrLocked) {
			return v, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// closeMail ends running calls, lowers the reserved ids to those used, and closes the ledger.
func (r *Resolver) closeMail() error {
	m := &r.mail
	m.mu.Lock()
	salvage, last := m.salvage, m.last
	m.mu.Unlock()
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

package ledger

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"
)

// A MailGap describes what became of the mail in a ledger that was damaged, or removed while in use.
type MailGap struct {
	Found time.Time `json:"found,omitzero"` // when it was examined; zero while that is under way
	// name of the damaged ledger in the data directory; "" for one that is gone
	MovedTo  string `json:"movedTo"`
	Complete bool   `json:"complete"`         // all mail was recovered, and the log has no gap
	Reason   string `json:"reason,omitempty"` // why not, written for an operator; "" if complete
	Entries  int    `json:"entries"`          // of the mail log, recovered
	Queued   int    `json:"queued"`           // of them: mails that will still be sent
	Lost     int    `json:"lost"`             // of them: mails that were queued and cannot be sent any more, FAILED in the log
}

// PendingGap returns the gap of a damaged store whose mail is not salvaged yet.
func PendingGap(aside string) MailGap {
	return MailGap{MovedTo: filepath.Base(aside), Reason: "what can be read of it is being recovered"}
}

func gapKey(g *MailGap) []byte {
	name := g.MovedTo
	if name == "" {
		name = g.Found.UTC().Format(time.RFC3339Nano)
	}
	return appendTextKey(nil, prefixGap, name)
}

func appendGap(dst []byte, g *MailGap) []byte {
	e := encoder{dst}
	e.byte(mailVersion)
	e.maybe(g.Found)
	e.string(g.MovedTo)
	e.bool(g.Complete)
	e.string(g.Reason)
	e.uint(uint64(g.Entries))
	e.uint(uint64(g.Queued))
	e.uint(uint64(g.Lost))
	return e.b
}

func decodeGap(rec []byte) (g MailGap, err error) {
	d, err := mailDecoder(rec)
	if err != nil {
		return g, err
	}
	g = MailGap{
		Found: d.maybe(), MovedTo: d.string(), Complete: d.bool(), Reason: d.string(),
		Entries: int(d.uint()), Queued: int(d.uint()), Lost: int(d.uint()),
	}
	return g, d.err()
}

// NoteGap stores a gap until the mail of its time is pruned.
func (l *Ledger) NoteGap(g *MailGap) error {
	key, rec := gapKey(g), appendGap(nil, g)
	if err := l.writeMail(l.newBatch(), func(t *mailTurn) error { return t.b.Set(key, rec, nil) }); err != nil {
		return fmt.Errorf("note a gap in the mail log: %w", err)
	}
	return nil
}

// MailGaps returns the known gaps, by name.
func (l *Ledger) MailGaps() (gaps []MailGap, err error) {
	err = l.scan(under(prefixGap), func(_, rec []byte) error {
		g, err := decodeGap(rec)
		gaps = append(gaps, g)
		return err
	})
	return gaps, err
}

func (l *Ledger) pruneGaps(before time.Time) error {
	gaps, err := l.MailGaps()
	if err != nil {
		return err
	}
	for i := range gaps {
		if gaps[i].Found.Before(before) {
			key := gapKey(&gaps[i])
			err = errors.Join(err, l.writeMail(l.newBatch(), func(t *mailTurn) error { return t.b.Delete(key, nil) }))
		}
	}
	return err
}

package node

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"fingerpost/api/conditions"
	"fingerpost/resolver/catalog"
)

// begunNote is the name of the value in the ledger that has the conditions whose beginning the audit trail tells of and
// whose end it does not: a restart tells nothing again.
const begunNote = "conditions"

// A conditionTrail tells of conditions in the audit trail, on the node that writes. It belongs to one goroutine.
type conditionTrail struct {
	after time.Duration // see Log.ConditionsAfter
	trail interface {
		Named(name string) (value []byte, found bool, err error)
		NoteAll(entries []catalog.AuditEntry, named map[string][]byte) error
	}
	slug     func(project int64) string // "": it is gone
	mayWrite func() error
	log      *slog.Logger

	debouncer *conditions.Debouncer // nil until the note could be read
}

// newConditionTrail returns what tells of conditions, nil if this node does not.
func (n *service) newConditionTrail() *conditionTrail {
	if n.cluster.isEdge() || n.o.Files.ReadOnly || n.o.ConditionsAfter == 0 {
		return nil
	}
	return &conditionTrail{after: n.o.ConditionsAfter, trail: n.resolver, slug: n.slugOf,
		mayWrite: n.newOwnWriter().mayWrite, log: n.o.Logger}
}

func (n *service) slugOf(project int64) string {
	p, err := n.resolver.ProjectByID(project)
	if err != nil {
		return ""
	}
	return p.Slug
}

// look takes in the conditions at a time, and adds entries for those that have begun and ended. While the ledger takes
// none, it tries again with each look; what is over by then has no entry.
func (c *conditionTrail) look(now time.Time, list []conditions.Condition) {
	err := c.mayWrite()
	if err == nil && c.debouncer == nil {
		err = c.readNote()
	}
	if err == nil {
		err = c.tell(c.debouncer.Look(now, list))
	}
	if err != nil {
		c.log.Debug("the audit trail does not tell of conditions for now", "error", err)
	}
}

func (c *conditionTrail) readNote() error {
	note, found, err := c.trail.Named(begunNote)
	if err != nil {
		return err
	}
	var begun []conditions.Begun
	if found {
		if err := json.Unmarshal(note, &begun); err != nil {
			// It is told again what has begun: once, and better than never.
			c.log.Warn("the note of the conditions that have begun cannot be read", "error", err)
			begun = nil
		}
	}
	c.debouncer = conditions.NewDebouncer(c.after, begun)
	return nil
}

// tell writes the entries and the note in one batch.
func (c *conditionTrail) tell(t *conditions.Transitions) error {
	if t.Empty() {
		return nil
	}
	var entries []catalog.AuditEntry
	for i := range t.Began {
		b := &t.Began[i]
		if b.ProjectID != 0 {
			b.Slug = c.slug(b.ProjectID)
		}
		entries = append(entries, b.Entry(false))
	}
	for i := range t.Ended {
		entries = append(entries, t.Ended[i].Entry(true))
	}
	note, err := json.Marshal(c.debouncer.After(t))
	if err != nil {
		return fmt.Errorf("write the note of conditions: %w", err)
	}
	if err := c.trail.NoteAll(entries, map[string][]byte{begunNote: note}); err != nil {
		return err
	}
	c.debouncer.Accept(t)
	return nil
}

package ledger

import "time"

// An AuditGap is a place at which damage has cut the audit trail: entries that followed one could not be read when a
// damaged ledger was salvaged. It stays until retention has passed the place.
// Its JSON is part of /status and of "audit verify --json".
type AuditGap struct {
	Project int64     `json:"projectId"` // 0: of the entries that belong to no project
	After   int64     `json:"after"`     // the last entry before the gap, 0 if there is none
	Any     bool      `json:"any"`       // some of it is unreadable: any chain may lack entries; Project and After are 0
	Found   time.Time `json:"found"`
	MovedTo string    `json:"movedTo"` // name of the damaged ledger in the data directory
}

func appendAuditGapKey(dst []byte, project, after int64) []byte {
	return appendID(appendID(append(dst, prefixAuditGap), project), after)
}

func appendAuditGap(dst []byte, g *AuditGap) []byte {
	e := encoder{dst}
	e.byte(mailVersion)
	e.maybe(g.Found)
	e.string(g.MovedTo)
	e.fixed(g.Project)
	e.fixed(g.After)
	e.bool(g.Any)
	return e.b
}

func decodeAuditGap(rec []byte) (g AuditGap, err error) {
	d, err := mailDecoder(rec)
	if err != nil {
		return g, err
	}
	g = AuditGap{Found: d.maybe(), MovedTo: d.string(), Project: d.fixed(), After: d.fixed(), Any: d.bool()}
	return g, d.err()
}

// AuditGaps returns the known gaps of the trail, by project and place.
func (l *Ledger) AuditGaps() (gaps []AuditGap, err error) {
	err = l.scan(under(prefixAuditGap), func(_, rec []byte) error {
		g, err := decodeAuditGap(rec)
		gaps = append(gaps, g)
		return err
	})
	return gaps, err
}

// key returns the gap's key. That of Any is none of an entry.
func (g *AuditGap) key() []byte {
	if g.Any {
		return appendAuditGapKey(nil, 0, -1)
	}
	return appendAuditGapKey(nil, g.Project, g.After)
}

func (t *mailTurn) noteAuditGap(g *AuditGap) error {
	return t.b.Set(g.key(), appendAuditGap(nil, g), nil)
}

// pruneAnyGap deletes the gap that may be in any chain, once all chains have been kept for less long than since then.
func (l *Ledger) pruneAnyGap(before time.Time) error {
	gaps, err := l.AuditGaps()
	for i := range gaps {
		if g := &gaps[i]; err == nil && g.Any && g.Found.Before(before) {
			err = l.writeMail(l.newBatch(), func(t *mailTurn) error { return t.b.Delete(g.key(), nil) })
		}
	}
	return err
}

// dropGaps deletes the gaps of a chain before an entry that retention has cut off.
func (t *mailTurn) dropGaps(project, cut int64) error {
	s := span{lower: appendAuditGapKey(nil, project, 0), upper: appendAuditGapKey(nil, project, cut)}
	return t.l.walk(s, func(key, _ []byte) error { return t.b.Delete(key, nil) })
}

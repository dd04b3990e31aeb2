package client

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"fingerpost/resolver/catalog"
)

// overlap is how far before the latest entry News reads again: an entry is stored a little after its time, and the
// clock of the server may be set back.
const overlap = 10 * time.Second

// An AuditTail reads the newest entries of the audit trail, and then those that come. Its methods must not be called
// concurrently.
type AuditTail struct {
	Client   *Client
	Query    AuditQuery // Actor, Action and From count
	Projects []int64    // 0: everything

	last AuditEntry
}

// Newest returns the latest entries, at most n, the latest one last.
func (a *AuditTail) Newest(ctx context.Context, n int) ([]AuditEntry, error) {
	all, err := a.read(ctx, a.Query, n)
	return a.newEntries(all[max(0, len(all)-n):]), err
}

// News returns the entries that came after those that were returned before, also with an error.
func (a *AuditTail) News(ctx context.Context) ([]AuditEntry, error) {
	q := a.Query
	q.OldestFirst = true // entries that arrive during the reading are on the last page
	if at, err := catalog.ParseMoment(a.last.Time); err == nil {
		q.From = at.Add(-overlap)
	}
	entries, err := a.read(ctx, q, math.MaxInt)
	return a.newEntries(slices.DeleteFunc(entries, func(e AuditEntry) bool { return e.ID <= a.last.ID })), err
}

func (a *AuditTail) newEntries(entries []AuditEntry) []AuditEntry {
	if len(entries) > 0 {
		a.last = entries[len(entries)-1]
	}
	return entries
}

// read reads entries, page by page, until it has enough of each project. They are in the order of their ids.
func (a *AuditTail) read(ctx context.Context, q AuditQuery, enough int) (entries []AuditEntry, err error) {
	for _, q.Project = range a.Projects {
		rows, err := readPages(enough, func(page, limit int) ([]AuditEntry, bool, error) {
			q.Page, q.Limit = page, limit
			return a.Client.Audit(ctx, q)
		})
		if err != nil {
			return nil, err
		}
		entries = append(entries, rows...)
	}
	return SortAudit(entries), nil
}

// SortAudit puts entries in the order of their ids, each one once.
func SortAudit(entries []AuditEntry) []AuditEntry {
	slices.SortFunc(entries, func(a, b AuditEntry) int { return cmp.Compare(a.ID, b.ID) })
	return slices.CompactFunc(entries, func(a, b AuditEntry) bool { return a.ID == b.ID })
}

// readPages reads pages until it has enough entries, or all.
func readPages[Entry any](enough int, get func(page, limit int) ([]Entry, bool, error)) (entries []Entry, err error) {
	for page, more := 1, true; more && len(entries) < enough; page++ {
		var rows []Entry
		if rows, more, err = get(page, min(enough, MaxLogPage)); err != nil {
			return nil, err
		}
		entries = append(entries, rows...)
	}
	return entries, nil
}

package ledger

import (
	"bytes"
	"container/heap"
	"errors"
	"maps"
	"math"
	"sync"
	"time"

	"fingerpost/resolver/catalog"

	"github.com/cockroachdb/pebble/v2"
)

// Bounds of one call of MailAcross.
const (
	MaxAcross     = 1000   // entries that it finds
	maxAcrossWork = 50_000 // entries that it looks at, a seek counting as seekWork of them
	seekWork      = 10     // measured: BenchmarkMailAcross, "all" against "three"
)

// newestMail has the position of each project's newest entry, or a later one if that entry is gone: never an earlier
// one. It is a cache in memory, which the first question about every project fills in one walk over the projects.
type newestMail struct {
	mu  sync.Mutex // guards the fields below
	at  map[int64]mailPos
	all bool // a project that is not in at has no entries
}

// raise records an entry, once it can be read.
func (n *newestMail) raise(project int64, p mailPos) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if was, there := n.at[project]; !there || was.compare(p) < 0 {
		if n.at == nil {
			n.at = map[int64]mailPos{}
		}
		n.at[project] = p
	}
}

// lower corrects the position of a project: it was read before the entries were, and is corrected unless it has changed
// since. found is false if there are no entries.
func (n *newestMail) lower(h acrossHead, p mailPos, found bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if was, there := n.at[h.project]; !there || was != h.pos {
		return
	}
	if found {
		n.at[h.project] = p
	} else {
		delete(n.at, h.project)
	}
}

// fill makes at complete, with one seek for each project that has mail.
func (l *Ledger) fillNewest() error {
	n := &l.mail.newest
	n.mu.Lock()
	all := n.all
	n.mu.Unlock()
	if all {
		return nil
	}
	return l.read(func() error {
		it, err := l.db.NewIter(&pebble.IterOptions{LowerBound: []byte{prefixMailLog}, UpperBound: []byte{prefixMailLog + 1}})
		if err != nil {
			return err
		}
		for ok := it.Last(); ok && err == nil; {
			var p mailPos
			if p, err = posIn(it.Key()); err == nil {
				project := projectIn(it.Key())
				n.raise(project, p)
				ok = it.SeekLT(appendMailKey(nil, project, mailPos{}))
			}
		}
		if err = errors.Join(err, it.Error(), it.Close()); err == nil {
			n.mu.Lock()
			n.all = true
			n.mu.Unlock()
		}
		return err
	})
}

// An acrossHead is the position up to which the entries of a project are still to be seen.
type acrossHead struct {
	project int64
	pos     mailPos
	hint    bool // pos is newestMail's
}

// acrossHeads is a heap with the newest position on top.
type acrossHeads []acrossHead

func (h acrossHeads) Len() int           { return len(h) }
func (h acrossHeads) Less(i, j int) bool { return h[i].pos.compare(h[j].pos) > 0 }
func (h acrossHeads) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *acrossHeads) Push(x any)        { *h = append(*h, x.(acrossHead)) }
func (h *acrossHeads) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

// heads returns the heads of the given projects, or of all if they are nil.
func (n *newestMail) heads(projects []int64, to time.Time) (heads acrossHeads) {
	last := mailPos(bytes.Repeat([]byte{math.MaxUint8}, len(mailPos{})))
	if !to.IsZero() {
		last = posOf(to, 0)
	}
	add := func(project int64, p mailPos, known bool) {
		h := acrossHead{project, p, known}
		if !known || p.compare(last) > 0 {
			h = acrossHead{project: project, pos: last}
		}
		heads = append(heads, h)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if projects == nil {
		heads = make(acrossHeads, 0, len(n.at))
		for project, p := range maps.All(n.at) {
			add(project, p, true)
		}
	}
	for _, project := range projects {
		if p, known := n.at[project]; known || !n.all {
			add(project, p, known)
		}
	}
	heap.Init(&heads)
	return heads
}

// MailAcross returns a page of the newest entries of several projects that match a query, of all projects if they are
// nil. It merges the logs of the projects: a page costs a seek or two for each entry that it looks at, whatever the
// number of projects and the length of their logs are, and one for each given project. The first call for all projects
// of an opened ledger costs a seek for each project with mail. Sort and Ascending of the query do not count.
//
// It finds MaxAcross entries at most, and looks at a bounded number: see catalog.MailFound.
func (l *Ledger) MailAcross(projects []int64, q catalog.MailQuery) (found catalog.MailFound, err error) {
	if projects == nil {
		if err := l.fillNewest(); err != nil {
			return found, err
		}
	}
	q = l.aroundMessage(q)
	heads := l.mail.newest.heads(projects, q.To) // before the iterator: see lower
	err = l.read(func() error {
		it, err := l.db.NewIter(&pebble.IterOptions{LowerBound: []byte{prefixMailLog}, UpperBound: []byte{prefixMailLog + 1}})
		if err != nil {
			return err
		}
		m := across{l: l, list: newMailList(&mailReader{it: it}, q), heads: heads,
			page: pageOf[catalog.MailLog](q.Page, q.Limit)}
		found.SearchedTo, err = m.find()
		found.Entries, found.Total = m.page.rows, m.page.total
		return errors.Join(err, it.Close())
	})
	return found, err
}

// across is one call of MailAcross.
type across struct {
	l     *Ledger
	list  mailList
	heads acrossHeads
	work  int // of maxAcrossWork
	page  page[catalog.MailLog]
}

// find fills the page. See catalog.MailFound for searchedTo.
func (m *across) find() (searchedTo time.Time, err error) {
	it, from := m.list.it, posOf(m.list.q.From, 0)
	var log catalog.MailLog
	for len(m.heads) > 0 && (m.list.q.From.IsZero() || m.heads[0].pos.compare(from) >= 0) {
		if m.page.total == MaxAcross || m.work >= maxAcrossWork {
			// All entries of this moment and later ones are seen but for some of exactly this moment.
			return m.heads[0].pos.created().Add(time.Microsecond), nil
		}
		m.work++
		top, ok := &m.heads[0], it.Valid()
		m.list.project = top.project
		if !ok || !bytes.Equal(it.Key(), m.list.logKey(top.pos)) {
			ok = it.SeekLT(append(m.list.logKey(top.pos), 0))
			m.work += seekWork
		}
		at, ok, err := m.here(ok)
		if err != nil {
			return searchedTo, err
		}
		if top.hint && (!ok || at != top.pos) {
			m.l.mail.newest.lower(*top, at, ok)
		}
		switch {
		case !ok:
			heap.Pop(&m.heads)
			continue
		case at != top.pos:
			top.pos, top.hint = at, false
			heap.Fix(&m.heads, 0)
			continue // another project's entry may be newer
		}
		rec, err := it.ValueAndErr()
		if err != nil {
			return searchedTo, err
		}
		match, err := m.list.match(at, rec, false, &log)
		if err == nil && match {
			err = m.page.add(func(log *catalog.MailLog) error { return decodeMailLog(log, m.list.project, at, rec) })
		}
		if err != nil {
			return searchedTo, err
		}
		if at, ok, err = m.here(it.Prev()); err != nil {
			return searchedTo, err
		}
		if !ok {
			heap.Pop(&m.heads)
			continue
		}
		top.pos, top.hint = at, false
		heap.Fix(&m.heads, 0)
	}
	return searchedTo, it.Error()
}

// here returns the position of the entry at which the iterator is; ok is false if that is none of the project.
func (m *across) here(valid bool) (p mailPos, ok bool, err error) {
	it := m.list.it
	if !valid {
		return p, false, it.Error()
	}
	if p, err = posIn(it.Key()); err != nil {
		return p, false, err
	}
	return p, projectIn(it.Key()) == m.list.project, nil
}

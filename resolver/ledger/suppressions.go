package ledger

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"time"

	"fingerpost/resolver/catalog"

	"github.com/cockroachdb/pebble/v2"
)

// The suppression list of a project is sorted by address, in lower case, then by the strength of the reason. Its size is
// kept with it: a page needs the number of entries, and counting a million takes half a second. So is how many entries
// each address has: a send asks for one key, which a Bloom filter answers for most; a seek would read blocks of the list.

// A listHead is what is known of a project's list.
type listHead struct {
	entries int64
	gone    time.Time // when its project was first missed; zero: it is there
}

func appendListKey(dst []byte, project int64) []byte {
	return appendID(append(dst, prefixListHead), project)
}

func appendListHead(h *listHead) []byte {
	e := encoder{}
	e.byte(mailVersion)
	e.uint(uint64(h.entries))
	e.maybe(h.gone)
	return e.b
}

func decodeListHead(rec []byte) (h listHead, err error) {
	d, err := mailDecoder(rec)
	if err != nil {
		return h, err
	}
	h = listHead{entries: int64(d.uint()), gone: d.maybe()}
	return h, d.err()
}

// appendSuppressedKey appends the beginning of the keys of an address.
func appendSuppressedKey(dst []byte, project int64, address string) []byte {
	return append(append(appendID(append(dst, prefixSuppression), project), strings.ToLower(address)...), 0)
}

func appendSuppressionKey(dst []byte, project int64, s *catalog.Suppression) []byte {
	return append(append(appendSuppressedKey(dst, project, s.Address), byte(s.Reason.Strength())), s.Category...)
}

func appendSuppression(s *catalog.Suppression) []byte {
	e := encoder{}
	e.byte(mailVersion)
	e.string(s.Address)
	e.string(s.Note)
	e.micros(s.CreatedAt)
	e.string(s.By)
	return e.b
}

func decodeSuppression(key, rec []byte) (s catalog.Suppression, err error) {
	d, err := mailDecoder(rec)
	if err != nil {
		return s, err
	}
	s = catalog.Suppression{Address: d.string(), Note: d.string(), CreatedAt: d.micros(), By: d.string()}
	if err := d.err(); err != nil {
		return s, err
	}
	at := 1 + 8 + len(s.Address) + 1
	if len(key) <= at || key[at-1] != 0 || key[at] == 0 || int(key[at]) > len(catalog.SuppressionReasons) {
		return s, errRecord
	}
	s.Reason = catalog.SuppressionReason(catalog.SuppressionReasons[key[at]-1])
	s.Category = string(key[at+1:])
	return s, nil
}

// Suppressions returns what the list of a project has of an address, the strongest reason first.
func (l *Ledger) Suppressions(project int64, address string) (list []catalog.Suppression, err error) {
	err = l.read(func() error {
		n, err := l.listed(project, address)
		if err != nil || n == 0 {
			return err
		}
		return l.walk(under(appendSuppressedKey(nil, project, address)...), func(key, rec []byte) error {
			s, err := decodeSuppression(key, rec)
			list = append(list, s)
			return err
		})
	})
	return list, err
}

func appendListedKey(dst []byte, project int64, address string) []byte {
	return append(appendID(append(dst, prefixListed), project), strings.ToLower(address)...)
}

func decodeListed(rec []byte) (n int64, err error) {
	d, err := mailDecoder(rec)
	if err != nil {
		return 0, err
	}
	n = int64(d.uint())
	return n, d.err()
}

// listed returns how many entries a list has of an address.
func (l *Ledger) listed(project int64, address string) (n int64, err error) {
	it, err := l.db.NewIter(&pebble.IterOptions{UseL6Filters: true}) // most addresses are on no list
	if err != nil {
		return 0, err
	}
	_, err = moment{it}.get(appendListedKey(nil, project, address), func(rec []byte) (err error) {
		n, err = decodeListed(rec)
		return err
	})
	return n, errors.Join(err, it.Close())
}

func (l *Ledger) listHead(project int64) (h listHead, err error) {
	_, err = now{l.db}.get(appendListKey(nil, project), func(rec []byte) (err error) {
		h, err = decodeListHead(rec)
		return err
	})
	return h, err
}

// SuppressionCount returns the number of entries of a project's list.
func (l *Ledger) SuppressionCount(project int64) (n int64, err error) {
	err = l.read(func() error {
		h, err := l.listHead(project)
		n = h.entries
		return err
	})
	return n, err
}

// SuppressionPage returns a page of a project's list, by address, and the number of entries on all pages. Without filters
// it costs the walk to the page; with one of them other than Address, it reads the whole list.
func (l *Ledger) SuppressionPage(project int64, q catalog.SuppressionQuery) (list []catalog.Suppression, total int,
	err error) {
	all := under(appendID([]byte{prefixSuppression}, project)...)
	if q.Address != "" {
		all = under(appendSuppressedKey(nil, project, q.Address)...)
	}
	all.descending = q.Descending
	filtered := q.Address != "" || q.Reason != "" || q.Category != "" || q.Text != ""
	text := strings.ToLower(q.Text)
	err = l.read(func() error {
		p := pageOf[catalog.Suppression](q.Page, q.Limit)
		if !filtered {
			h, err := l.listHead(project)
			if err != nil {
				return err
			}
			p = countedPage[catalog.Suppression](q.Page, q.Limit, int(h.entries))
		}
		if p.counted && p.size == 0 {
			total = p.total
			return nil
		}
		err := l.walk(all, func(key, rec []byte) error {
			if text != "" && !bytes.Contains(addressIn(key), []byte(text)) {
				return nil
			}
			decode := func(row *catalog.Suppression) (err error) {
				*row, err = decodeSuppression(key, rec)
				return err
			}
			if q.Reason == "" && q.Category == "" {
				return p.add(decode)
			}
			var s catalog.Suppression
			err := decode(&s)
			if err != nil || !q.Selects(&s) {
				return err
			}
			return p.add(decode)
		})
		list, total = p.rows, p.total
		return err
	})
	return list, total, err
}

// addressIn returns the address in a key, in lower case.
func addressIn(key []byte) []byte {
	address, _, _ := bytes.Cut(key[min(1+8, len(key)):], []byte{0})
	return address
}

// changeList adds a change of a list to the batch. What is there already, or is not there, stays; of several entries that
// are the same, the first one counts.
func (t *mailTurn) changeList(c *catalog.SuppressionChange) error {
	h, err := t.l.listHead(c.ProjectID)
	if err != nil {
		return err
	}
	seen := map[string]bool{}       // in the batch, which reads do not see
	addresses := map[string]int64{} // how many entries more each has
	change := func(s *catalog.Suppression, add bool) error {
		key := appendSuppressionKey(nil, c.ProjectID, s)
		if seen[string(key)] {
			return nil
		}
		seen[string(key)] = true
		there, err := now{t.l.db}.get(key, func([]byte) error { return nil })
		switch {
		case err != nil || there == add:
			return err
		case add:
			h.entries++
			addresses[strings.ToLower(s.Address)]++
			return t.b.Set(key, appendSuppression(s), nil)
		}
		h.entries--
		addresses[strings.ToLower(s.Address)]--
		return t.b.Delete(key, nil)
	}
	for i := range c.Remove {
		err = errors.Join(err, change(&c.Remove[i], false))
	}
	for i := range c.Add {
		err = errors.Join(err, change(&c.Add[i], true))
	}
	for address, more := range addresses {
		err = errors.Join(err, t.countListed(c.ProjectID, address, more))
	}
	h.gone = time.Time{}
	return errors.Join(err, t.putListHead(c.ProjectID, &h))
}

// countListed changes how many entries an address has.
func (t *mailTurn) countListed(project int64, address string, more int64) error {
	n, err := t.l.listed(project, address)
	switch n += more; {
	case err != nil || more == 0:
		return err
	case n <= 0:
		return t.b.Delete(appendListedKey(nil, project, address), nil)
	}
	e := encoder{}
	e.byte(mailVersion)
	e.uint(uint64(n))
	return t.b.Set(appendListedKey(nil, project, address), e.b, nil)
}

func (t *mailTurn) putListHead(project int64, h *listHead) error {
	if h.entries == 0 {
		return t.b.Delete(appendListKey(nil, project), nil)
	}
	return t.b.Set(appendListKey(nil, project), appendListHead(h), nil)
}

// ListedProjects returns the projects that have a suppression list.
func (l *Ledger) ListedProjects() (projects []int64, err error) {
	err = l.scan(under(prefixListHead), func(key, _ []byte) error {
		if len(key) != 1+8 {
			return errRecord
		}
		projects = append(projects, projectIn(key))
		return nil
	})
	return projects, err
}

// KeepList notes at a time whether the project of a list is there. It deletes the list of one that has been missed for a
// grace period, because a move or a checkout removes files for a moment.
func (l *Ledger) KeepList(project int64, there bool, at time.Time, grace time.Duration) error {
	err := l.writeMail(l.newBatch(), func(t *mailTurn) error {
		h, err := t.l.listHead(project)
		t.idle = err != nil || h.entries == 0 || there && h.gone.IsZero()
		switch missed := at.Sub(h.gone); {
		case t.idle:
			return err
		case there:
			h.gone = time.Time{}
		case h.gone.IsZero() || missed < 0: // or by a clock that was ahead
			h.gone = at
		case missed < grace:
			t.idle = true
			return nil
		default:
			for _, prefix := range []byte{prefixSuppression, prefixListed} {
				all := under(appendID([]byte{prefix}, project)...)
				err = errors.Join(err, t.b.DeleteRange(all.lower, all.upper, nil))
			}
			return errors.Join(err, t.b.Delete(appendListKey(nil, project), nil))
		}
		return t.putListHead(project, &h)
	})
	if err != nil {
		return fmt.Errorf("keep a suppression list: %w", err)
	}
	return nil
}

// checkLists compares the sizes of all lists with their entries: ErrDamaged if they differ.
func (l *Ledger) checkLists() error {
	it, err := l.db.NewIter(nil)
	if err != nil {
		return err
	}
	have, listed := map[int64]int64{}, map[int64]int64{}
	err = eachOf(it, prefixSuppression, func(key, _ []byte) error {
		have[projectIn(key)]++
		return nil
	})
	if err == nil {
		err = eachOf(it, prefixListed, func(key, rec []byte) error {
			n, err := decodeListed(rec)
			listed[projectIn(key)] += n
			return err
		})
	}
	if err == nil {
		err = eachOf(it, prefixListHead, func(key, rec []byte) error {
			project := projectIn(key)
			h, err := decodeListHead(rec)
			if err == nil && (h.entries != have[project] || h.entries != listed[project]) {
				err = wrongSize(project)
			}
			delete(have, project)
			return err
		})
	}
	if err = errors.Join(err, it.Close()); err != nil {
		return err
	}
	for project := range have {
		return wrongSize(project)
	}
	return nil
}

func wrongSize(project int64) error {
	return fmt.Errorf("%w: the size of the suppression list of project %d is not that of its entries", ErrDamaged, project)
}

// putSuppression copies an entry of a list.
func (v *Salvage) putSuppression(key, rec []byte) error {
	s, err := decodeSuppression(key, rec)
	if err != nil {
		return err
	}
	return v.turn(func(t *mailTurn) error {
		return t.changeList(&catalog.SuppressionChange{ProjectID: projectIn(key), Add: []catalog.Suppression{s}})
	})
}

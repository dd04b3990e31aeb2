package inbound

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/mail"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"fingerpost/resolver/catalog"
)

// keptFor is how long the mark of an outcome is kept, and how old an outcome may be.
const keptFor = 30 * 24 * time.Hour

// ahead is how far the clock of a provider may be ahead of ours.
const ahead = time.Hour

// An outcome is what has become of a mail, or what its recipient wants.
type outcome struct {
	reason    catalog.SuppressionReason
	address   string // canonical
	messageID string // with its angle brackets; "": none is known
	project   int64  // that the provider names; 0: none
	at        time.Time
	id        string // the provider's: it is the same in each repeat
	detail    string
}

// mark returns the name under which it is kept that the outcome was applied. Another block keeps marks of its own.
func (o *outcome) mark(block string) string {
	h := sha256.New()
	for _, part := range []string{string(o.reason), strings.ToLower(o.address), o.id} {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return markPrefix + block + "/" + hex.EncodeToString(h.Sum(nil)[:16])
}

// The results of an outcome.
type result int

const (
	listed result = iota
	present
	repeated
	ignoredResult
	unmatched
	refused // the message was
	full    // the block has too many marks, or the project's list too many entries
	results
)

var resultNames = [results]string{"listed", "present", "repeated", "ignored", "unmatched", "refused", "full"}

// apply puts the address of an outcome on the list of its project.
func (d *Desk) apply(b *Block, o *outcome, now time.Time, by catalog.Author, r *Result) error {
	count := func(of result, n *int) {
		*n++
		b.counts[of].Add(1)
	}
	if o.at.Before(now.Add(-keptFor)) { // its mark may be gone
		count(ignoredResult, &r.Ignored)
		return nil
	}
	project, err := d.projectOf(b, o)
	if err != nil {
		return err
	}
	log := d.o.Logger.With("inbound", b.Name, "reason", string(o.reason))
	if project == 0 {
		count(unmatched, &r.Unmatched)
		b.dropped.Store(now.UnixNano())
		log.Warn("an outcome is of no project that the block may touch, and was dropped")
		return nil
	}
	if d.marks.full(b.Name) {
		b.counts[full].Add(1)
		return errFull
	}
	entry := catalog.Suppression{Address: o.address, Reason: o.reason, Note: note(b.Name, o.detail),
		CreatedAt: now.UTC().Truncate(time.Microsecond)}
	at := min(o.at.Unix(), now.Add(ahead).Unix())
	once, err := d.o.Ledger.SuppressOnce(project, entry, o.mark(b.Name), strconv.AppendInt(nil, at, 10), by)
	if catalog.IsConflict(err) {
		b.counts[full].Add(1)
		b.overflowed.Store(now.UnixNano())
		log.Warn("the suppression list is full, so an outcome is not on it", "project", project)
	}
	if err != nil {
		return err
	}
	switch once {
	case catalog.OnceBefore:
		count(repeated, &r.Repeated)
		return nil
	case catalog.OncePresent:
		count(present, &r.Present)
	case catalog.OnceAdded:
		count(listed, &r.Listed)
		log.Info("a provider's outcome was listed", "project", project)
	}
	d.marks.add(b.Name)
	return nil
}

// ownID is the form of the Message-IDs of this service, see message.NewMessageID.
var ownID = regexp.MustCompile(`^<([0-9]{1,19})\.[0-9a-f]{16}@[^<>\s]+>$`)

// projectOf returns the project of an outcome: that which the provider names, that whose log has the Message-ID, or else
// the only one of the block. 0: there is none, or the block may not touch it.
func (d *Desk) projectOf(b *Block, o *outcome) (id int64, err error) {
	listed := slices.Compact(slices.Sorted(slices.Values(b.Projects)))
	var may []int64 // those of them that are there
	for _, slug := range listed {
		p, err := d.o.Projects.ProjectBySlug(slug)
		switch {
		case err == nil:
			may = append(may, p.ID)
		case !catalog.IsNotFound(err):
			return 0, err
		}
	}
	if o.project == 0 && o.messageID != "" {
		of, ours, err := d.sender(may, o)
		if err != nil || ours && of == 0 {
			return 0, err
		}
		o.project = of
	}
	switch {
	case o.project == 0 && len(listed) == 1 && len(may) == 1:
		return may[0], nil
	case o.project == 0 || b.Projects != nil && !slices.Contains(may, o.project):
		return 0, nil
	case b.Projects != nil:
		return o.project, nil
	}
	if _, err = d.o.Projects.ProjectByID(o.project); err != nil {
		if catalog.IsNotFound(err) {
			err = nil
		}
		return 0, err
	}
	return o.project, nil
}

// acrossPages bounds the search for a Message-ID in the logs of all projects.
const acrossPages = 10

// sender returns the project whose log has the Message-ID of an outcome, 0 for none, and whether it may be a mail of ours.
// A mail to another address does not count: a recipient knows the Message-ID, and may send other mails with it by the
// same provider.
func (d *Desk) sender(first []int64, o *outcome) (project int64, ours bool, err error) {
	own := ownID.FindStringSubmatch(o.messageID)
	if own == nil {
		return 0, false, nil
	}
	id, err := strconv.ParseInt(own[1], 10, 64)
	if err != nil {
		return 0, false, nil //nolint:nilerr // too large for an id: it is none of ours
	}
	for _, project := range first {
		log, found, err := d.o.Ledger.MailLog(project, id)
		if err != nil || found && log.MessageID == o.messageID {
			return o.of(&log), true, err
		}
	}
	q := catalog.MailQuery{Page: 1, Limit: 1, MessageID: o.messageID}
	for range acrossPages {
		found, err := d.o.Ledger.MailAcross(nil, q)
		switch {
		case err != nil:
			return 0, false, err
		case len(found.Entries) > 0:
			return o.of(&found.Entries[0]), true, nil
		case found.SearchedTo.IsZero():
			return 0, false, nil
		}
		q.To = found.SearchedTo
	}
	return 0, true, nil
}

// of returns the project of an entry of the mail log, 0 if the mail was for another address.
func (o *outcome) of(log *catalog.MailLog) int64 {
	if to, err := catalog.ParseAddress(log.ToEmail); err != nil || !strings.EqualFold(to, o.address) {
		return 0
	}
	return log.ProjectID
}

// addressOf returns the canonical form of an address that a provider writes, with or without a name.
func addressOf(text string) (string, error) {
	address, err := catalog.ParseAddress(text)
	if err == nil {
		return address, nil
	}
	if named, e := mail.ParseAddress(text); e == nil {
		return catalog.ParseAddress(named.Address)
	}
	return "", err
}

// note is the note of an entry: the block, and what the provider says in one line.
func note(block, detail string) string {
	text := strings.Map(func(r rune) rune {
		if catalog.BreaksLine(r) {
			return ' '
		}
		return r
	}, block+": "+detail)
	text = strings.TrimSuffix(strings.Join(strings.Fields(strings.ToValidUTF8(text, "\uFFFD")), " "), ":")
	if len(text) > catalog.MaxSuppressionNote {
		text = strings.ToValidUTF8(text[:catalog.MaxSuppressionNote], "")
	}
	return text
}

// EachCount yields how many outcomes of each declared block had each result, since the start.
func (d *Desk) EachCount(yield func(block, result string, n uint64)) {
	for name, b := range d.declared().blocks {
		for i := range b.counts {
			yield(name, resultNames[i], b.counts[i].Load())
		}
	}
}

// A Trouble is what is wrong with a block.
type Trouble struct {
	Block   string
	Closed  string    // why a secret cannot be opened; "": all are open
	Dropped time.Time // when an outcome was last dropped for want of a project; zero: never
	Full    bool      // it has as many marks as it may
	// ListFull is when an outcome was last refused because its project's suppression list was full. Zero: never.
	ListFull time.Time
}

// Troubles lists the blocks with which something is wrong, by name.
func (d *Desk) Troubles() (list []Trouble) {
	for name, b := range d.declared().blocks {
		t := Trouble{Block: name, Closed: b.closed, Full: d.marks.full(name)}
		t.Dropped, t.ListFull = timeOf(&b.dropped), timeOf(&b.overflowed)
		if t.Closed != "" || t.Full || !t.Dropped.IsZero() || !t.ListFull.IsZero() {
			list = append(list, t)
		}
	}
	slices.SortFunc(list, func(a, b Trouble) int { return strings.Compare(a.Block, b.Block) })
	return list
}

func timeOf(at *atomic.Int64) time.Time {
	if n := at.Load(); n != 0 {
		return time.Unix(0, n).UTC()
	}
	return time.Time{}
}

package main

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"time"

	"fingerpost/resolver/catalog"
)

const (
	loggedSlug = "logged"
	shortSlug  = "short"
	shortLog   = 1000 // entries in the log that the long one is compared with
	logPage    = 20   // entries on a page
	deepPage   = 100  // the last page that has to be as fast as the first
	pageReads  = 200  // of each kind, in a round
)

// readLog reads pages of a long mail log and of a short one, in alternation. Real sends write the entries; the store
// stays, so that a later run only adds what is missing.
func (m *mailBench) readLog(ctx context.Context, rep *report) error {
	s, err := m.startMail(ctx, "mail-log", true,
		mailProject{loggedSlug, m.clear.addr, false}, mailProject{shortSlug, m.clear.addr, false})
	if err != nil {
		return err
	}
	cl := newMailClient(s.addr, s.key)
	defer cl.close()
	long, err := m.fillLog(ctx, s, cl, loggedSlug, m.mail.logEntries)
	if err != nil {
		return err
	}
	short, err := m.fillLog(ctx, s, cl, shortSlug, shortLog)
	if err != nil {
		return err
	}
	base := reading(cl, fmt.Sprintf("first page of %d entries", short), shortSlug, 1, short)
	first := reading(cl, "first page", loggedSlug, 1, long)
	deep := reading(cl, fmt.Sprintf("page %d", deepPage), loggedSlug, deepPage, long)
	if err := m.alternate(ctx, base, first, deep); err != nil {
		return err
	}
	name := func(what string) string { return fmt.Sprintf("mail log of %d entries: %s", long, what) }
	for _, pair := range [][2]*turn{{first, base}, {deep, first}} {
		of, against := pair[0], pair[1]
		rep.add(of.against(against, "p50", name(of.name+", p50"), "ms").ratioAtMost(1.5),
			of.against(against, "p99", name(of.name+", p99"), "ms"))
	}
	mem, err := s.memory()
	if err != nil {
		return err
	}
	rep.add(measured(name("resident memory"), "MiB", mem.now))
	rep.note("A page of the log has %d entries, latest first, and the exact number of all.", logPage)
	return nil
}

// fillLog sends until a project's log has the given number of entries, and returns how many it has.
func (m *mailBench) fillLog(ctx context.Context, s mailServer, cl *client, slug string, want int) (int, error) {
	has, _, err := cl.readLog(slug, 1)
	if err != nil || has >= want {
		return has, err
	}
	m.say("sending %d mails, so that the log of %s has %d entries", want-has, slug, want)
	began := time.Now()
	if err := m.send(ctx, m.calls(s, false, slug), want-has); err != nil {
		return 0, err
	}
	m.say("that took %.1f s", time.Since(began).Seconds())
	cl.close() // it has been idle for longer than the server allows
	if has, _, err = cl.readLog(slug, 1); err == nil && has != want {
		err = fmt.Errorf("the log of %s has %d entries after the sends, want %d", slug, has, want)
	}
	return has, err
}

// readLog reads one page of a log. It returns how many entries the log and the page have.
func (c *client) readLog(slug string, page int) (total, entries int, err error) {
	id := catalog.DeriveID(catalog.KindProject, catalog.DeriveProjectUUID(slug))
	a, err := c.call("GET", fmt.Sprintf("/api/mail/projects/%d/logs?page=%d&limit=%d", id, page, logPage), nil)
	if err != nil {
		return 0, 0, err
	}
	_, rest, _ := bytes.Cut(a.body, []byte(`"meta":{"total":`))
	digits, _, _ := bytes.Cut(rest, []byte(","))
	total, err = strconv.Atoi(string(digits))
	if a.status != 200 || err != nil {
		return 0, 0, fmt.Errorf("read the mail log: status %d: %s", a.status, a.body)
	}
	return total, bytes.Count(a.body, []byte(`"providerType":"SMTP"`)), nil
}

// reading is a turn that reads one page of a log repeatedly. Each answer must be a full page.
func reading(cl *client, name, slug string, page, total int) *turn {
	return newTurn(name, func(ctx context.Context, t *turn) error {
		var took latencies
		for range pageReads {
			began := time.Now()
			has, entries, err := cl.readLog(slug, page)
			took = append(took, time.Since(began))
			if err == nil && (has != total || entries != logPage) {
				err = fmt.Errorf("read the mail log: page %d of %s has %d entries of %d, want %d of %d",
					page, slug, entries, has, logPage, total)
			}
			if err != nil {
				return err
			}
		}
		t.addTails(took)
		return nil
	})
}

package main

import (
	"bytes"
	"context"
	"fmt"
	"strconv"

	"fingerpost/bench/wire"
	"fingerpost/resolver/catalog"
)

const (
	shortLog = 1000 // entries in the log that the long one is compared with
	logPage  = 20   // entries on a page
	deepPage = 100  // the last page that has to be as fast as the first
)

// readLog reads pages of a long mail log and of a short one, in alternation. Real sends write the entries; the store
// stays, so that a later run only adds what is missing.
func (m *mailBench) readLog(ctx context.Context, rep *report) error {
	const long, short = "logged", "short"
	s, err := m.startMail(ctx, "mail-log", map[string]string{long: m.clear.Addr, short: m.clear.Addr})
	if err != nil {
		return err
	}
	entries := map[string]int{long: m.mail.logEntries, short: shortLog}
	for slug, want := range entries {
		if entries[slug], err = m.fillLog(ctx, s, slug, want); err != nil {
			return err
		}
	}
	pages := func(name, slug string, page int) *turn {
		return m.turn(name, load{side: readsLog(s, slug, page, entries[slug]), workers: 1})
	}
	base := pages(fmt.Sprintf("first page of %d entries", entries[short]), short, 1)
	first, deep := pages("first page", long, 1), pages(fmt.Sprintf("page %d", deepPage), long, deepPage)
	if err := m.alternate(ctx, base, first, deep); err != nil {
		return err
	}
	name := func(what string) string { return fmt.Sprintf("mail log of %d entries: %s", entries[long], what) }
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

// fillLog sends until a project's log has at least the given number of entries, and returns how many it has.
func (m *mailBench) fillLog(ctx context.Context, s mailServer, slug string, want int) (int, error) {
	for {
		cl := s.client()
		has, _, err := readLog(cl, slug, 1)
		cl.Close()
		if err != nil || has >= want {
			return has, err
		}
		m.say("sending %d mails, so that the log of %s has %d entries", want-has, slug, want)
		if err := m.send(ctx, m.calls(s, slug, m.clear), want-has); err != nil {
			return 0, err
		}
	}
}

// readLog reads one page of a log. It returns how many entries the log and the page have.
func readLog(c *wire.Client, slug string, page int) (total, entries int, err error) {
	id := catalog.DeriveID(catalog.KindProject, catalog.DeriveProjectUUID(slug))
	a, err := c.Call("GET", fmt.Sprintf("/api/mail/projects/%d/logs?page=%d&limit=%d", id, page, logPage), nil)
	if err != nil {
		return 0, 0, err
	}
	_, rest, _ := bytes.Cut(a.Body, []byte(`"meta":{"total":`))
	digits, _, _ := bytes.Cut(rest, []byte(","))
	total, err = strconv.Atoi(string(digits))
	if a.Status != 200 || err != nil {
		return 0, 0, fmt.Errorf("read the mail log: status %d: %s", a.Status, a.Body)
	}
	return total, bytes.Count(a.Body, []byte(`"providerType":"SMTP"`)), nil
}

// readsLog is a side that reads one page of a log of total entries. Each answer must be a full page.
func readsLog(s mailServer, slug string, page, total int) *side {
	return &side{name: s.name, pid: s.pid, worker: func(int) worker {
		cl := s.client()
		return worker{close: cl.Close, do: func() error {
			has, entries, err := readLog(cl, slug, page)
			if err == nil && (has != total || entries != logPage) {
				err = fmt.Errorf("read the mail log: page %d of %s has %d entries of %d, want %d of %d",
					page, slug, entries, has, logPage, total)
			}
			return err
		}}
	}}
}

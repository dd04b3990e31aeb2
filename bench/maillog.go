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
	c, err := m.config("mail-log")
	if err != nil {
		return err
	}
	for _, slug := range []string{loggedSlug, shortSlug} {
		if err := c.add(slug, m.clear.listener.Addr().String(), false); err != nil {
			return err
		}
	}
	s, err := m.mailServer(ctx, "mail-log", c, true)
	if err != nil {
		return err
	}
	defer s.stop()
	long, err := m.fillLog(ctx, s, c.key, loggedSlug, m.logEntries)
	if err != nil {
		return err
	}
	short, err := m.fillLog(ctx, s, c.key, shortSlug, shortLog)
	if err != nil {
		return err
	}
	cl, err := dialMail(s.addr, c.key)
	if err != nil {
		return err
	}
	defer cl.close()
	pages := []*logRead{
		{slug: shortSlug, page: 1, total: short}, {slug: loggedSlug, page: 1, total: long}, {slug: loggedSlug, page: deepPage, total: long},
	}
	for range m.load.rounds {
		if err := readPages(ctx, cl, pages); err != nil {
			return err
		}
	}
	first := fmt.Sprintf("first page of %d entries", short)
	name := func(what string) string { return fmt.Sprintf("mail log of %d entries: %s", long, what) }
	row := func(what string, of, against *logRead, than string) {
		rep.add(compared(name(what+", p50"), "ms", of.p50, against.p50, than).ratioAtMost(1.5),
			compared(name(what+", p99"), "ms", of.p99, against.p99, than))
	}
	row("first page", pages[1], pages[0], first)
	row(fmt.Sprintf("page %d", pages[2].page), pages[2], pages[1], "first page")
	mem, err := processMemory(s.pid)
	if err != nil {
		return err
	}
	rep.add(alone(name("resident memory"), "MiB", mib(mem.now)))
	rep.note("A page of the log has %d entries, latest first, and the exact number of all.", logPage)
	return nil
}

// fillLog sends until a project's log has the given number of entries, and returns how many it has.
func (m *mailBench) fillLog(ctx context.Context, s *server, key, slug string, want int) (int, error) {
	has, err := logTotal(s.addr, key, slug)
	if err != nil || has >= want {
		return has, err
	}
	m.say("sending %d mails, so that the log of %s has %d entries", want-has, slug, want)
	began := time.Now()
	if err := m.callTimes(ctx, s, key, want-has, false, slug); err != nil {
		return 0, err
	}
	m.say("that took %.1f s", time.Since(began).Seconds())
	if has, err = logTotal(s.addr, key, slug); err == nil && has != want {
		err = fmt.Errorf("the log of %s has %d entries after the sends, want %d", slug, has, want)
	}
	return has, err
}

var (
	totalField = []byte(`"meta":{"total":`)
	entryField = []byte(`"providerType":"SMTP"`)
)

func logURL(slug string, page, limit int) string {
	id := catalog.DeriveID(catalog.KindProject, catalog.DeriveProjectUUID(slug))
	return fmt.Sprintf("/api/mail/projects/%d/logs?page=%d&limit=%d", id, page, limit)
}

// dialMail opens a connection for calls of the mail API.
func dialMail(addr, key string) (*client, error) {
	cl, err := dial(addr, key)
	if err == nil {
		cl.tail = mailTail(addr, key)
	}
	return cl, err
}

// logTotal returns how many entries a log has, over a connection of its own: filling a log takes longer than the server
// keeps an idle connection.
func logTotal(addr, key, slug string) (int, error) {
	cl, err := dialMail(addr, key)
	if err != nil {
		return 0, err
	}
	defer cl.close()
	a, err := cl.get(logURL(slug, 1, 1))
	if err != nil {
		return 0, err
	}
	return totalOf(a)
}

func totalOf(a answer) (int, error) {
	_, rest, ok := bytes.Cut(a.body, totalField)
	digits, _, _ := bytes.Cut(rest, []byte(","))
	n, err := strconv.Atoi(string(digits))
	if a.status != 200 || !ok || err != nil {
		return 0, fmt.Errorf("read the mail log: status %d: %s", a.status, a.body)
	}
	return n, nil
}

// A logRead is one page of a log that is read repeatedly.
type logRead struct {
	slug        string
	page, total int
	p50, p99    []float64 // ms, a round each
}

// readPages adds a round to the figures of all pages.
func readPages(ctx context.Context, cl *client, pages []*logRead) error {
	took := make([]latencies, len(pages))
	for range pageReads {
		for i, p := range pages {
			if err := ctx.Err(); err != nil {
				return err
			}
			began := time.Now()
			a, err := cl.get(logURL(p.slug, p.page, logPage))
			took[i].add(time.Since(began))
			if err == nil {
				err = p.judge(a)
			}
			if err != nil {
				return err
			}
		}
	}
	for i, p := range pages {
		l := took[i].percentiles(0.5, 0.99)
		p.p50, p.p99 = append(p.p50, ms(l[0])), append(p.p99, ms(l[1]))
	}
	return nil
}

// judge is an error unless the answer is a full page of the log.
func (p *logRead) judge(a answer) error {
	total, err := totalOf(a)
	if n := bytes.Count(a.body, entryField); err == nil && (total != p.total || n != logPage) {
		err = fmt.Errorf("read the mail log: page %d of %s has %d entries of %d, want %d of %d", p.page, p.slug, n, total, logPage, p.total)
	}
	return err
}

package client

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"fingerpost/resolver/catalog"
)

// A LoggedMail is an entry of the mail log with its project's slug.
type LoggedMail struct {
	Project string `json:"project"`
	MailEntry
}

func (e *LoggedMail) ended() bool { return catalog.MailStatus(e.Status).Ended() }

// state is the part of an entry that changes while a mail is being sent.
func (e *LoggedMail) state() string { return fmt.Sprint(e.Status, e.Attempts, e.Uncertain) }

// byTime puts older entries first.
func byTime(a, b LoggedMail) int {
	return cmp.Or(strings.Compare(a.CreatedAt, b.CreatedAt), cmp.Compare(a.ID, b.ID))
}

const (
	// MailTailParallel is how many projects a MailTail reads at once.
	MailTailParallel = 8
	// maxAsked bounds how many mails of a project that have not ended are read one by one in a round.
	maxAsked = 100
)

// A MailTail reads the newest entries of the mail logs of some projects, and then new entries and changes of those
// before. An *Error with status 404 is a project that has no mail log. Its methods must not be called concurrently.
type MailTail struct {
	Client   *Client
	Query    LogQuery // Template, To, Status and From count; Status for Newest alone
	SkipGone bool     // News leaves out projects that have no mail log, such as deleted ones

	projects []*tailed
}

// A tailed is a project whose log is read.
type tailed struct {
	id    int64
	slug  string
	seen  map[int64]LoggedMail // the latest entries, and those that have not ended
	first LoggedMail           // entries older than this are not news
	last  string               // createdAt of the latest entry, "" if there is none
	news  []LoggedMail         // not returned yet
}

// Add adds a project, unless it has it already.
func (m *MailTail) Add(id int64, slug string) {
	if !slices.ContainsFunc(m.projects, func(p *tailed) bool { return p.id == id }) {
		m.projects = append(m.projects, &tailed{id: id, slug: slug, seen: map[int64]LoggedMail{}})
	}
}

// Newest returns the latest entries of all projects, at most n, the latest one last.
func (m *MailTail) Newest(ctx context.Context, n int) (all []LoggedMail, err error) {
	get := func(ctx context.Context, i int) ([]LoggedMail, error) { return m.read(ctx, m.projects[i], m.Query, n) }
	err = InOrder(ctx, MailTailParallel, len(m.projects), get, func(i int, rows []LoggedMail) error {
		m.projects[i].begin(rows)
		all = append(all, rows...)
		slices.SortFunc(all, byTime)
		all = slices.CompactFunc(all, func(a, b LoggedMail) bool { return a.ID == b.ID && a.ProjectID == b.ProjectID })
		all = all[max(0, len(all)-n):]
		return nil
	})
	return all, err
}

// NewestAcross is Newest for all projects that the key covers, in a call for each 100 entries whatever their number is.
// An Absent error is a server without that call.
func (m *MailTail) NewestAcross(ctx context.Context, n int) (all []LoggedMail, err error) {
	slugs := map[int64]string{}
	for _, p := range m.projects {
		slugs[p.id] = p.slug
	}
	filters := m.Query.filters()
	for searched := "more"; searched != "" && len(all) < n && err == nil; filters.Set("to", searched) {
		var rows []LoggedMail
		rows, err = readPages(n-len(all), func(page, limit int) ([]LoggedMail, bool, error) {
			filters.Set("page", strconv.Itoa(page))
			filters.Set("limit", strconv.Itoa(limit))
			p, err := m.Client.Mail(ctx, filters)
			searched = p.SearchedTo
			var entries []LoggedMail
			for _, e := range p.Rows {
				slug, known := slugs[e.ProjectID]
				if !known {
					slug = strconv.FormatInt(e.ProjectID, 10) // of a project that is gone, as --project takes it
				}
				entries = append(entries, LoggedMail{slug, e})
			}
			return entries, page < p.Pages && len(p.Rows) > 0, err
		})
		all = append(all, rows...)
	}
	slices.SortFunc(all, byTime)
	all = slices.CompactFunc(all, func(a, b LoggedMail) bool { return a.ID == b.ID && a.ProjectID == b.ProjectID })
	return all, err
}

// News reads each project once. It returns what is new, also with an error.
func (m *MailTail) News(ctx context.Context) (news []LoggedMail, err error) {
	get := func(ctx context.Context, i int) (none struct{}, err error) { return none, m.step(ctx, m.projects[i]) }
	err = InOrder(ctx, MailTailParallel, len(m.projects), get, func(int, struct{}) error { return nil })
	for _, p := range m.projects {
		news = append(news, p.news...)
		p.news = nil
	}
	slices.SortFunc(news, byTime)
	return news, err
}

// read reads a project's log, page by page, until it has so many entries or all.
func (m *MailTail) read(ctx context.Context, p *tailed, q LogQuery, enough int) ([]LoggedMail, error) {
	entries, err := readPages(enough, func(page, limit int) (entries []LoggedMail, more bool, err error) {
		q.Page, q.Limit = page, limit
		rows, more, err := m.Client.MailLog(ctx, p.id, q)
		for _, e := range rows {
			entries = append(entries, LoggedMail{p.slug, e})
		}
		return entries, more, err
	})
	if Status(err, http.StatusNotFound) {
		err = fmt.Errorf("project %s has no mail log on this server: %w", strconv.Quote(p.slug), err)
	}
	return entries, err
}

// begin records entries, the latest first, as known.
func (p *tailed) begin(rows []LoggedMail) {
	for _, e := range rows {
		p.seen[e.ID] = e
		p.last = max(p.last, e.CreatedAt)
		p.first = e
	}
}

// noteEntry records an entry. One that is new, or has changed, is news.
func (p *tailed) noteEntry(e LoggedMail) {
	if known, there := p.seen[e.ID]; there && known.state() != e.state() || !there && byTime(e, p.first) > 0 {
		p.news = append(p.news, e)
	}
	p.seen[e.ID] = e
	p.last = max(p.last, e.CreatedAt)
}

// step reads what has changed in one project since the last time, into p.news.
func (m *MailTail) step(ctx context.Context, p *tailed) error {
	q := m.Query
	q.Status, q.OldestFirst = "", true // entries that arrive during the reading are on the last page
	if at, err := catalog.ParseMoment(p.last); err == nil {
		q.From = at.Add(-overlap)
	}
	rows, err := m.read(ctx, p, q, math.MaxInt)
	if m.SkipGone && Status(err, http.StatusNotFound) {
		return nil // the project was deleted, with nothing in its log
	}
	if err != nil {
		return err
	}
	current := map[int64]bool{}
	for _, e := range rows {
		current[e.ID] = true
		p.noteEntry(e)
	}
	asked := 0
	for _, id := range slices.Sorted(maps.Keys(p.seen)) {
		e := p.seen[id]
		if current[id] || e.ended() || asked >= maxAsked {
			continue
		}
		asked++
		now, err := m.Client.MailLogEntry(ctx, p.id, id)
		switch {
		case Status(err, http.StatusNotFound):
			delete(p.seen, id) // its retention has ended
		case err != nil:
			return err
		default:
			current[id] = true
			p.noteEntry(LoggedMail{p.slug, now})
		}
	}
	maps.DeleteFunc(p.seen, func(id int64, e LoggedMail) bool { return !current[id] && e.ended() })
	return nil
}

package main

import (
	"context"
	"errors"
	"maps"
	"math"
	"net/http"
	"slices"
	"time"

	"fingerpost/api/client"
)

const (
	// overlap is how far before the latest entry --follow reads again: an entry is stored a little after its createdAt.
	overlap = 10 * time.Second
	// maxAsked bounds how many mails of a project that have not ended are read one by one in a round.
	maxAsked = 100
	// findEvery is how often new projects are looked for.
	findEvery = 30 * time.Second
)

// follow prints the newest entries, and then each new entry and each change of one, until ctx ends.
func (l *logReader) follow(ctx context.Context, newest []mailEntry) error {
	if err := l.print(newest); err != nil {
		return err
	}
	found := time.Now()
	news := func() ([]mailEntry, error) {
		news, err := l.round(ctx)
		if err == nil && l.flags.projects == nil && time.Since(found) > findEvery {
			err, found = l.find(ctx), time.Now()
		}
		return news, err
	}
	return pollTrail(ctx, &l.flags.trailFlags, l.t.err, news, l.print)
}

// passing reports whether a retry may help: the server is unreachable, or reports that it is not ready.
func passing(err error) bool {
	var refused *client.Error
	if errors.As(err, &refused) {
		return refused.Status >= http.StatusInternalServerError || refused.Status == http.StatusTooManyRequests
	}
	var exit *exitError
	return !errors.As(err, &exit)
}

// round reads each project once. It returns what is new, even if it fails.
func (l *logReader) round(ctx context.Context) (news []mailEntry, err error) {
	get := func(ctx context.Context, i int) (none struct{}, err error) { return none, l.step(ctx, l.projects[i]) }
	err = client.InOrder(ctx, logParallel, len(l.projects), get, func(int, struct{}) error { return nil })
	for _, p := range l.projects {
		news = append(news, p.news...)
		p.news = nil
	}
	slices.SortFunc(news, byTime)
	return news, err
}

// begin records entries, the latest first, as known.
func (p *loggedProject) begin(rows []mailEntry) {
	for _, e := range rows {
		p.seen[e.ID] = e
		p.last = max(p.last, e.CreatedAt)
		p.first = e
	}
}

// step reads what has changed in one project since the last time, into p.news.
func (l *logReader) step(ctx context.Context, p *loggedProject) error {
	q := l.query()
	q.OldestFirst = true // entries that arrive during the reading are on the last page
	if at, err := time.Parse(client.TimeLayout, p.last); err == nil {
		q.From = at.Add(-overlap)
	}
	rows, err := l.read(ctx, p, q, math.MaxInt)
	var none *exitError
	if l.flags.projects == nil && errors.As(err, &none) {
		return nil // the project was deleted, with nothing in its log
	}
	if err != nil {
		return err
	}
	current := map[int64]bool{}
	note := func(e mailEntry) {
		current[e.ID] = true
		if known, there := p.seen[e.ID]; there && known.state() != e.state() || !there && byTime(e, p.first) > 0 {
			p.news = append(p.news, e)
		}
		p.seen[e.ID] = e
		p.last = max(p.last, e.CreatedAt)
	}
	for _, e := range rows {
		note(e)
	}
	asked := 0
	for _, id := range slices.Sorted(maps.Keys(p.seen)) {
		e := p.seen[id]
		if current[id] || e.ended() || asked >= maxAsked {
			continue
		}
		asked++
		now, err := l.server.MailLogEntry(ctx, p.id, id)
		switch {
		case client.Status(err, http.StatusNotFound):
			delete(p.seen, id) // its retention has ended
		case err != nil:
			return err
		default:
			note(mailEntry{p.slug, now})
		}
	}
	maps.DeleteFunc(p.seen, func(id int64, e mailEntry) bool { return !current[id] && e.ended() })
	return nil
}

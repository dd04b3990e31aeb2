package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"fingerpost/api/client"
)

const (
	// overlap is how far before the latest entry --follow reads again: an entry is stored a little after its createdAt.
	overlap = 10 * time.Second
	// maxFollowed bounds the mails of a project that are followed to their end, the latest ones first. maxAsked bounds how
	// many of them are read one by one in a round.
	maxFollowed, maxAsked = 2000, 100
	// findEvery is how often new projects are looked for.
	findEvery = 30 * time.Second
)

// follow prints the newest entries, and then each new entry and each change of one, until ctx ends.
func (l *logReader) follow(ctx context.Context, newest []mailEntry) error {
	for i := range newest {
		if err := l.print(&newest[i]); err != nil {
			return err
		}
	}
	told, found := "", time.Now()
	tick := time.NewTicker(l.flags.every)
	defer tick.Stop()
	for {
		news, err := l.round(ctx)
		if err == nil && l.flags.projects == nil && time.Since(found) > findEvery {
			err, found = l.find(ctx), time.Now()
		}
		switch {
		case err == nil:
			told = ""
		case ctx.Err() != nil:
		case !passing(err):
			return err
		case err.Error() != told:
			told = err.Error()
			fmt.Fprintf(l.err, "fingerpost: %s; asking on\n", told)
		}
		for i := range news {
			if err := l.print(&news[i]); err != nil {
				return err
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
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
	rows, err := l.recent(ctx, p)
	if l.flags.projects == nil && gone(err) {
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
	p.forget(current)
	return nil
}

// gone reports whether err is page's error for a project that does not exist.
func gone(err error) bool {
	var exit *exitError
	return errors.As(err, &exit) && exit.code == exitNot
}

// recent reads the entries around and after the latest known one.
func (l *logReader) recent(ctx context.Context, p *loggedProject) (all []mailEntry, err error) {
	q := l.query()
	q.OldestFirst = true // entries that arrive during the reading are on the last page
	q.Limit = client.MaxLogPage
	if at, err := time.Parse(client.TimeLayout, p.last); err == nil {
		q.From = at.Add(-overlap)
	}
	for more := true; more; {
		q.Page++
		var rows []mailEntry
		if rows, more, err = l.page(ctx, p, q); err != nil {
			return nil, err
		}
		all = append(all, rows...)
	}
	return all, nil
}

// forget drops entries that have ended and will not be listed again, and bounds the rest.
func (p *loggedProject) forget(current map[int64]bool) {
	var open []int64
	for id, e := range p.seen {
		switch {
		case current[id]:
		case e.ended():
			delete(p.seen, id)
		default:
			open = append(open, id)
		}
	}
	slices.Sort(open)
	for _, id := range open[:max(0, len(open)-maxFollowed)] {
		delete(p.seen, id)
	}
}

package verify

import (
	"encoding/json"

	"fingerpost/configsrc/verify/dcv"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

// Live is the Domains of what a resolver serves.
type Live struct{ Resolver *resolver.Resolver }

// Each implements Domains.
func (l Live) Each(yield func(d Domain) bool) error {
	projects := map[int64]catalog.UUID{}
	err := l.Resolver.EachProject(func(p *catalog.Project) bool {
		projects[p.ID] = p.UUID
		return true
	})
	if err != nil {
		return err
	}
	formers, err := catalog.Formers(l.Resolver)
	if err != nil {
		return err
	}
	return l.Resolver.EachDomain(func(d *catalog.Domain) bool {
		project, there := projects[d.ProjectID]
		if !there { // it was added after the list of projects was read, and the feed tells of it
			return true
		}
		return yield(Domain{ID: d.ID, ProjectID: d.ProjectID,
			Subject: dcv.Subject{Project: project, Name: d.Name, Verified: Verified(d), Reused: reused(formers[project])}})
	})
}

// Verified returns a domain's value of verified, "" if it has none.
func Verified(d *catalog.Domain) string {
	if d.Verified == nil {
		return ""
	}
	return *d.Verified
}

// Named implements Domains.
func (l Live) Named(name string) (d Domain, found bool, err error) {
	record, project, err := l.Resolver.ServedDomain(name)
	switch {
	case catalog.IsNotFound(err):
		return d, false, nil
	case err != nil:
		return d, false, err
	}
	again, err := l.Reused(project.UUID)
	if err != nil {
		return d, false, err
	}
	of := dcv.Subject{Project: project.UUID, Name: record.Name, Verified: Verified(record), Reused: again}
	return Domain{Subject: of, ID: record.ID, ProjectID: project.ID, Slug: project.Slug}, true, nil
}

// Reused implements Domains.
func (l Live) Reused(project catalog.UUID) (bool, error) {
	f, err := catalog.FormerOf(l.Resolver, project)
	return reused(f), err
}

func reused(f catalog.Former) bool { return !f.Other.IsZero() }

// Policy implements Domains.
func (l Live) Policy() (dcv.Policy, bool) {
	defaults := l.Resolver.Defaults()
	if defaults == nil || defaults.Verification == nil {
		return dcv.Policy{}, false
	}
	return dcv.PolicyOf(defaults.Verification), true
}

// A Feed is the Changes of a resolver.
type Feed struct {
	feed   *resolver.Feed
	cursor resolver.Cursor
	events []*resolver.Event
}

// NewFeed returns the changes from now on.
func NewFeed(r *resolver.Resolver) *Feed {
	f := &Feed{feed: r.Events()}
	f.cursor, _ = f.feed.Newest()
	return f
}

// Changed implements Changes.
func (f *Feed) Changed() <-chan struct{} { return f.feed.Changed() }

// eventsAtOnce bounds how many events Next reads.
const eventsAtOnce = 256

// Next implements Changes.
func (f *Feed) Next() (names []string, all bool) {
	for len(names) == 0 {
		if f.events = f.cursor.Next(f.events[:0], eventsAtOnce); len(f.events) == 0 {
			return nil, false
		}
		for _, e := range f.events {
			switch e.Kind {
			case resolver.Reset:
				all = true
			case resolver.KeysChanged:
			default:
				var data struct{ Domains []string }
				if err := json.Unmarshal(e.Data, &data); err != nil {
					all = true
				}
				names = append(names, data.Domains...)
			}
		}
		if all {
			return nil, true
		}
	}
	return names, false
}

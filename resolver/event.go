package resolver

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"fingerpost/resolver/catalog"
	"fingerpost/resolver/hostname"
	"fingerpost/resolver/rowjson"
	"fingerpost/resolver/store"
)

// An EventKind is the kind of an event (api/README.md, Change feed).
type EventKind string

// The kinds of events. All but KeysChanged are sent to clients.
const (
	ProjectChanged EventKind = "project.changed" // created or changed, its settings and its domains included
	ProjectDeleted EventKind = "project.deleted" // with its domains
	DomainChanged  EventKind = "domain.changed"  // domains were added or changed; the project's own record was not
	DomainDeleted  EventKind = "domain.deleted"  // domains were removed; the project's own record was not changed
	Reset          EventKind = "reset"           // more may have changed than events can say: drop everything

	// KeysChanged asks a goroutine that streams events to check its key again. It has no Data.
	KeysChanged EventKind = ""
)

// An Event is the effect of a committed change on one project, or a Reset. It is shared and must not be changed.
type Event struct {
	Revision uint64 // generation of the change, the same in all of its events
	Epoch    string // of the Revision; set by the Feed
	Kind     EventKind
	Slug     string // slug of the project; "" if the event is for everybody
	Project  int64  // its id; 0 if the event is for everybody
	// Data is one line of JSON: {"revision":…,"projectId":…,"slug":"…","domains":["…"]}, for a Reset {"revision":…}.
	// domains lists, sorted, all names whose answers may have changed; "*.…" stands for all names below it.
	Data []byte

	unless string // a slug: keys that reach that project do not get this event
	owner  string // keys with this owner get the event, too; "": none
	lost   bool   // only they get it: the project has another owner now
}

// Position is what a client resumes from, on any node of the cluster.
func (e *Event) Position() catalog.Position {
	return catalog.Position{Epoch: e.Epoch, Generation: e.Revision}
}

// Concerns reports whether the holder of a key gets the event. For keys that reach a project only by its old slug, or its
// former owner, the project is deleted.
func (e *Event) Concerns(k *Key) bool {
	reached := k.Names(e.Slug) && !e.lost || e.owner != "" && k.Owner == e.owner
	return e.Slug == "" || reached && (e.unless == "" || !k.Names(e.unless))
}

// eventOverhead is the memory of an event without its texts, its place in the history included.
const eventOverhead = 128

func (e *Event) size() int {
	return len(e.Data) + len(e.Slug) + len(e.unless) + len(e.owner) + eventOverhead
}

// of notes the owner of the project.
func (e *Event) of(owner string) *Event {
	e.owner = strings.Clone(owner)
	return e
}

// NewReset makes a Reset with a revision.
func NewReset(revision uint64) *Event {
	data := strconv.AppendUint([]byte(`{"revision":`), revision, 10)
	return &Event{Revision: revision, Kind: Reset, Data: append(data, '}')}
}

func newEvent(revision uint64, kind EventKind, project int64, slug string, domains []string) *Event {
	slices.Sort(domains)
	size := 80 + len(slug)
	for _, name := range domains {
		size += len(name) + len(`"",`)
	}
	b := append(make([]byte, 0, size), `{"revision":`...)
	b = strconv.AppendUint(b, revision, 10)
	b = append(b, `,"projectId":`...)
	b = strconv.AppendInt(b, project, 10)
	b = append(b, `,"slug":`...)
	b = rowjson.AppendString(b, slug)
	b = rowjson.AppendStrings(append(b, `,"domains":`...), slices.Compact(domains))
	return &Event{Revision: revision, Kind: kind, Slug: strings.Clone(slug), Project: project, Data: append(b, '}')}
}

// The limits for the events of one change. Beyond them one Reset is sent: a client that caches answers would drop a
// good part of them anyway.
const (
	maxChangeEvents = 1000
	maxChangeBytes  = 1 << 20
)

// eventsOf returns the events of a change, deletions first, then by slug. ok is false if only a Reset can describe it.
func (r *Resolver) eventsOf(e *store.Effect) (events []*Event, ok bool) {
	if e.Defaults || e.Many || len(e.Projects) > maxChangeEvents {
		return nil, false
	}
	touched := touchedNames(e.Domains)
	for i := range e.Projects {
		p := &e.Projects[i]
		events = append(events, projectEvents(e.Generation, p, touched[p.ID])...)
		delete(touched, p.ID)
	}
	if len(touched) > maxChangeEvents {
		return nil, false
	}
	for id, names := range touched {
		p, err := r.ProjectByID(id)
		if err != nil {
			return nil, false
		}
		if len(names.gone) > 0 {
			events = append(events, newEvent(e.Generation, DomainDeleted, id, p.Slug, names.gone).of(ownerOf(p)))
		}
		if present := names.present(); len(present) > 0 {
			events = append(events, newEvent(e.Generation, DomainChanged, id, p.Slug, present).of(ownerOf(p)))
		}
	}
	for id, names := range r.coveredNames(e.Domains) {
		p, err := r.ProjectByID(id)
		if err != nil {
			return nil, false
		}
		events = append(events, newEvent(e.Generation, DomainChanged, id, p.Slug, names).of(ownerOf(p)))
	}
	size := 0
	for _, event := range events {
		if size += event.size(); event.Slug == "" { // a record that could not be read: send a Reset to be safe
			return nil, false
		}
	}
	slices.SortFunc(events, func(a, b *Event) int {
		return cmp.Or(cmp.Compare(a.rank(), b.rank()), cmp.Compare(a.Slug, b.Slug), cmp.Compare(a.Kind, b.Kind))
	})
	return events, len(events) <= maxChangeEvents && size <= maxChangeBytes
}

// coveredNames lists, by project, the names below its wildcards that come to another project or go from it: the answers
// of these names change for its keys as well, from its own to none, or back.
func (r *Resolver) coveredNames(effects []store.DomainEffect) map[int64][]string {
	covered := map[int64][]string{}
	for i := range effects {
		d := &effects[i]
		if !d.New && !d.Gone {
			continue
		}
		host := []byte(strings.TrimPrefix(d.Name, "*."))
		for {
			suffix, more := hostname.NextWildcard(host)
			if !more {
				break
			}
			above, err := r.DomainNamed("*." + string(suffix))
			if err == nil {
				if above.ProjectID != d.Project {
					covered[above.ProjectID] = append(covered[above.ProjectID], d.Name)
				}
				break // the longest wildcard answers
			}
			host = suffix
		}
	}
	return covered
}

// rank sorts removals before additions: a name may move from one project to another.
func (e *Event) rank() int {
	if e.Kind == ProjectDeleted || e.Kind == DomainDeleted {
		return 0
	}
	return 1
}

// projectEvents returns the events of a project whose record was touched.
func projectEvents(revision uint64, p *store.ProjectEffect, names *projectNames) []*Event {
	if names == nil {
		names = new(projectNames)
	}
	if p.Gone {
		return []*Event{newEvent(revision, ProjectDeleted, p.ID, p.Slug, names.gone).of(p.Owner)}
	}
	all := slices.Clone(names.gone)
	all = append(all, p.Domains...)
	events := []*Event{newEvent(revision, ProjectChanged, p.ID, p.Slug, all).of(p.Owner)}
	before := slices.DeleteFunc(slices.Clone(all), func(name string) bool { return slices.Contains(names.added, name) })
	if p.Owned != "" && p.Owned != p.Owner {
		lost := newEvent(revision, ProjectDeleted, p.ID, p.Slug, slices.Clone(before)).of(p.Owned)
		lost.lost, lost.unless = true, lost.Slug
		events = append(events, lost)
	}
	if p.Was == "" || p.Was == p.Slug {
		return events
	}
	left := newEvent(revision, ProjectDeleted, p.ID, p.Was, before)
	left.unless = strings.Clone(p.Slug)
	return append(events, left)
}

func ownerOf(p *catalog.Project) string {
	if p.Owner == nil {
		return ""
	}
	return *p.Owner
}

// projectNames lists the names of one project that a change touched.
type projectNames struct{ added, changed, gone []string }

func (n *projectNames) present() []string { return append(slices.Clone(n.added), n.changed...) }

// touchedNames groups effects by project. A name that passes from one object of a project to another counts as present.
func touchedNames(effects []store.DomainEffect) map[int64]*projectNames {
	touched := make(map[int64]*projectNames)
	for i := range effects {
		d := &effects[i]
		n := touched[d.Project]
		if n == nil {
			n = new(projectNames)
			touched[d.Project] = n
		}
		switch {
		case d.Gone:
			n.gone = append(n.gone, d.Name)
		case d.New:
			n.added = append(n.added, d.Name)
		default:
			n.changed = append(n.changed, d.Name)
		}
	}
	for _, n := range touched {
		if len(n.gone) == 0 {
			continue
		}
		present := make(map[string]bool, len(n.added)+len(n.changed))
		for _, name := range n.present() {
			present[name] = true
		}
		n.gone = slices.DeleteFunc(n.gone, func(name string) bool { return present[name] })
	}
	return touched
}

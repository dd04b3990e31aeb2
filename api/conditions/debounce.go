package conditions

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"fingerpost/resolver/catalog"
)

// Bounds of what a Debouncer lets through. Each kind has its own: a tenant whose domains fail by the thousand delays no
// other kind.
const (
	maxSubjects = 20        // conditions of a kind that have begun; with more, the kind has begun as a whole
	maxBurst    = 20        // transitions of a kind at once
	perMinute   = 2         // transitions of a kind in the long run
	longestWait = time.Hour // until a condition that flaps has ended
)

// A Debouncer decides when conditions have begun and ended, for what is told of each once: a condition has begun when it
// has held for a while, and has ended when it has been gone for a while. One that begins again soon after it has ended
// must be gone for twice as long the next time, up to longestWait. Many of a kind are one condition without a subject.
// Kinds that are Silent are left out.
//
// A Debouncer is for one goroutine. It keeps in memory what has not begun or ended yet.
type Debouncer struct {
	wait  time.Duration
	begun map[string]Begun     // by object, as the others
	held  map[string]time.Time // of those that have not begun: since when each holds
	gone  map[string]time.Time // of those that have begun: since when each is gone
	flaps map[string]flap

	spent  map[string]float64 // transitions by kind, which time gives back
	looked time.Time
}

// A flap says how often a condition has begun again soon after it had ended.
type flap struct {
	times int
	ended time.Time
}

// A Begun is a condition that has begun. Its JSON is what a node keeps of it.
type Begun struct {
	ID        string    `json:"id"`
	Subject   string    `json:"subject,omitempty"`
	ProjectID int64     `json:"projectId,omitempty"`
	Slug      string    `json:"slug,omitempty"` // of the project; the caller of Look knows it
	Since     time.Time `json:"since"`
	Sentence  string    `json:"sentence"`
	Detail    string    `json:"detail,omitempty"` // "" of a project: its keys need not know what the machine says
	Count     int       `json:"count,omitempty"`  // of those alike, where the kind has begun as a whole
}

// Transitions are what is to be told.
type Transitions struct {
	Began, Ended []Begun
	at           time.Time
}

// Empty reports whether there is nothing to tell.
func (t *Transitions) Empty() bool { return len(t.Began)+len(t.Ended) == 0 }

// NewDebouncer returns a Debouncer for which these conditions have begun already. wait is how long a condition must hold
// until it has begun, and be gone until it has ended.
func NewDebouncer(wait time.Duration, begun []Begun) *Debouncer {
	d := &Debouncer{wait: wait, begun: map[string]Begun{}, held: map[string]time.Time{}, gone: map[string]time.Time{},
		flaps: map[string]flap{}, spent: map[string]float64{}}
	for _, b := range begun {
		d.begun[b.object()] = b
	}
	return d
}

func (b *Begun) object() string { return catalog.ConditionObject(b.ID, b.Subject) }

// Look takes in the conditions at a time, in the order of Of, and returns the transitions that are due. They have not
// happened before Accept: until then, the next Look returns them again.
func (d *Debouncer) Look(now time.Time, list []Condition) *Transitions {
	found, whole := alike(list)
	d.forget(now)
	t := &Transitions{at: now}
	present, count, spent := map[string]bool{}, map[string]int{}, maps.Clone(d.spent)
	for _, b := range d.begun {
		count[b.ID]++
	}
	for i := range found {
		b := &found[i]
		object := b.object()
		present[object] = true
		if _, has := d.begun[object]; has {
			delete(d.gone, object)
			continue
		}
		since, holds := d.held[object]
		if !holds {
			since, d.held[object] = now, now
		}
		if now.Sub(since) < d.wait || spent[b.ID] > maxBurst-1 || b.Count == 0 && count[b.ID] >= maxSubjects {
			continue
		}
		if b.Since.IsZero() {
			b.Since = since.UTC()
		}
		spent[b.ID]++
		count[b.ID]++
		t.Began = append(t.Began, *b)
	}
	for object := range d.held {
		if !present[object] {
			delete(d.held, object)
		}
	}
	d.lookForEnds(t, spent, present, whole)
	return t
}

// lookForEnds adds what has ended. While a kind is one condition as a whole, its single ones do not end: not all of them
// are known.
func (d *Debouncer) lookForEnds(t *Transitions, spent map[string]float64, present, whole map[string]bool) {
	objects := make([]string, 0, len(d.begun))
	for object, b := range d.begun {
		switch {
		case present[object]:
		case b.Count == 0 && whole[b.ID]:
			delete(d.gone, object)
		default:
			objects = append(objects, object)
		}
	}
	slices.Sort(objects)
	for _, object := range objects {
		since, is := d.gone[object]
		if !is {
			since, d.gone[object] = t.at, t.at
		}
		b := d.begun[object]
		if t.at.Sub(since) >= d.waitForEnd(object) && spent[b.ID] <= maxBurst-1 {
			spent[b.ID]++
			t.Ended = append(t.Ended, b)
		}
	}
}

// waitForEnd returns how long a condition must be gone until it has ended.
func (d *Debouncer) waitForEnd(object string) time.Duration {
	wait := d.wait
	for range d.flaps[object].times {
		if wait *= 2; wait >= longestWait {
			return max(d.wait, longestWait)
		}
	}
	return wait
}

// forget gives back what time allows, and forgets flaps after which it was quiet for long.
func (d *Debouncer) forget(now time.Time) {
	for kind, n := range d.spent {
		if n -= max(0, now.Sub(d.looked).Minutes()) * perMinute; n > 0 {
			d.spent[kind] = n
		} else {
			delete(d.spent, kind)
		}
	}
	d.looked = now
	for object, f := range d.flaps {
		if _, has := d.begun[object]; !has && now.Sub(f.ended) > longestWait+d.wait {
			delete(d.flaps, object)
		}
	}
}

// After returns what will have begun with the transitions, by object.
func (d *Debouncer) After(t *Transitions) []Begun {
	all := make([]Begun, 0, len(d.begun)+len(t.Began))
	for object, b := range d.begun {
		if !slices.ContainsFunc(t.Ended, func(e Begun) bool { return e.object() == object }) {
			all = append(all, b)
		}
	}
	all = append(all, t.Began...)
	slices.SortFunc(all, func(a, b Begun) int { return strings.Compare(a.object(), b.object()) })
	return all
}

// Accept makes the transitions of the last Look happen, once they are told.
func (d *Debouncer) Accept(t *Transitions) {
	for _, b := range t.Began {
		object := b.object()
		d.begun[object] = b
		delete(d.held, object)
		d.spent[b.ID]++
		if f, is := d.flaps[object]; is {
			f.times++
			d.flaps[object] = f
		}
	}
	for i := range t.Ended {
		object := t.Ended[i].object()
		delete(d.begun, object)
		delete(d.gone, object)
		d.flaps[object] = flap{d.flaps[object].times, t.at}
		d.spent[t.Ended[i].ID]++
	}
}

// alike returns the conditions that are told of, each object once. A kind with many is one, and is in whole.
func alike(list []Condition) (found []Begun, whole map[string]bool) {
	counts, seen, silent := map[string]int{}, map[string]bool{}, map[string]bool{}
	single := func(c *Condition) bool { // the first of its object
		object := catalog.ConditionObject(c.ID, c.Subject)
		was := seen[object]
		seen[object] = true
		return !was
	}
	for i := range list {
		c := &list[i]
		if _, known := silent[c.ID]; !known {
			k := KindOf(c.ID)
			silent[c.ID] = k.SilentFor() != ""
		}
		if single(c) {
			counts[c.ID] += 1 + c.More
		}
	}
	clear(seen)
	whole = map[string]bool{}
	for i := range list {
		c := &list[i]
		b := Begun{ID: c.ID, Subject: c.Subject, ProjectID: c.Project, Sentence: c.Sentence}
		if c.Project == 0 {
			b.Detail = c.Detail
		}
		if c.Since != nil {
			b.Since = *c.Since
		}
		n := counts[c.ID]
		switch {
		case silent[c.ID], whole[c.ID]:
			continue
		case n > maxSubjects:
			whole[c.ID] = true
			b = Begun{ID: c.ID, Sentence: c.many(n), Count: n}
		case !single(c):
			continue
		}
		found = append(found, b)
	}
	return found, whole
}

// many is the sentence about several conditions of the kind.
func (c *Condition) many(n int) string {
	if c.Many != "" {
		return fmt.Sprintf(c.Many, catalog.Count(n, c.Of))
	}
	return catalog.Count(n, "condition") + " of this kind. The first: " + c.Sentence
}

// Entry returns the entry of the audit trail that says that the condition has begun or ended: its changes are those of an
// object that is created or deleted. Time, generation and the present slug are not there.
func (b *Begun) Entry(ended bool) catalog.AuditEntry {
	k := KindOf(b.ID)
	severity, guide := string(k.Severity), k.GuidePath()
	fields := []catalog.Field{{Name: "severity", Value: &severity}, {Name: "sentence", Value: &b.Sentence},
		{Name: "detail", Value: &b.Detail}, {Name: "remedy", Value: &k.Remedy}, {Name: "guide", Value: &guide},
		{Name: "since", Value: b.Since}}
	if b.Count > 0 {
		fields = append(fields, catalog.Field{Name: "count", Value: &b.Count})
	}
	e := catalog.AuditEntry{Action: catalog.AuditBegins, Object: b.object(), ProjectID: b.ProjectID, Slug: b.Slug,
		Door: k.door}
	if ended {
		e.Action, e.Changes = catalog.AuditEnds, catalog.AuditChanges(fields, nil)
	} else {
		e.Changes = catalog.AuditChanges(nil, fields)
	}
	return e
}

package history

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"

	"fingerpost/resolver/catalog"
)

// Check finds the answers that break a promise, each once. writes are in the order in which they began. It changes
// nothing of what it is given.
func Check(writes []Write, answers []Answer) (found []Violation) {
	c := &checker{writes: writes, of: map[string][]int{}, by: map[string]map[string]int{}}
	for i := range writes {
		for _, name := range writes[i].Names {
			if writes[i].Outcome == Refused {
				continue
			}
			if c.by[name] == nil {
				c.by[name] = map[string]int{}
			}
			c.of[name] = append(c.of[name], i)
			c.by[name][writes[i].Content] = len(c.of[name])
		}
	}
	edges := map[string][]*Answer{}
	var order []string
	for i := range answers {
		if a := &answers[i]; a.counts() {
			if edges[a.Edge] == nil {
				order = append(order, a.Edge)
			}
			edges[a.Edge] = append(edges[a.Edge], a)
		}
	}
	for _, edge := range order {
		found = append(found, c.edge(edges[edge])...)
	}
	return found
}

// A checker knows the writes. The version of a name is the number of its writes so far; 0: it does not exist.
type checker struct {
	writes []Write
	of     map[string][]int          // by name: its writes, as indexes
	by     map[string]map[string]int // by name and content: the version
}

// past is what an edge has answered up to a moment, in its present epoch.
type past struct {
	at   catalog.Position
	left map[string]bool // epochs before
	seen map[string]int  // by name: the newest version
	// with is, by name, the newest version that the other names of its writes have shown.
	with map[string]int
}

// edge checks the answers of one edge. Each is compared with those that had ended when it began.
func (c *checker) edge(answers []*Answer) (found []Violation) {
	ended := slices.Clone(answers)
	slices.SortStableFunc(ended, func(a, b *Answer) int { return cmp.Compare(a.Ended, b.Ended) })
	answers = slices.Clone(answers)
	slices.SortStableFunc(answers, func(a, b *Answer) int { return cmp.Compare(a.Began, b.Began) })
	p := past{left: map[string]bool{}, seen: map[string]int{}, with: map[string]int{}}
	for _, a := range answers {
		for len(ended) > 0 && ended[0].Ended < a.Began {
			c.remember(&p, ended[0])
			ended = ended[1:]
		}
		if kind, text := c.judge(&p, a); kind != "" {
			found = append(found, Violation{kind, *a, text})
		}
	}
	return found
}

// remember adds an answer to the past.
func (c *checker) remember(p *past, a *Answer) {
	at, err := catalog.ParsePosition(a.Position)
	if err != nil || p.left[at.Epoch] {
		return
	}
	if at.Epoch != p.at.Epoch {
		if p.at.Epoch != "" {
			p.left[p.at.Epoch] = true
		}
		p.at = at
		clear(p.seen)
		clear(p.with)
	}
	p.at.Generation = max(p.at.Generation, at.Generation)
	version := c.by[a.Name][a.Content]
	if a.Status != http.StatusOK || version == 0 {
		return
	}
	p.seen[a.Name] = max(p.seen[a.Name], version)
	// Every name of this write is now at least as new as the write itself.
	w := &c.writes[c.of[a.Name][version-1]]
	for _, other := range w.Names {
		if other != a.Name {
			p.with[other] = max(p.with[other], c.by[other][w.Content])
		}
	}
}

// judge returns the promise that an answer breaks, "" if it breaks none.
func (c *checker) judge(p *past, a *Answer) (Kind, string) {
	at, err := catalog.ParsePosition(a.Position)
	if err != nil {
		return NoPosition, fmt.Sprintf("position %q", a.Position)
	}
	version, known := c.by[a.Name][a.Content]
	if a.Status == http.StatusNotFound {
		version, known = 0, true
	}
	floor, seen, with := at, 0, 0
	if at.Epoch == p.at.Epoch {
		floor.Generation = max(at.Generation, p.at.Generation)
		seen, with = p.seen[a.Name], p.with[a.Name]
	}
	need, newest := c.needed(a, floor)
	switch oldest := max(seen, with, need); {
	case !known:
		return NeverWritten, ""
	case version == 0 && oldest > 0:
		return Forgotten, fmt.Sprintf("it was to be at least %q", c.content(a.Name, oldest))
	case version < with:
		return HalfGeneration, fmt.Sprintf("the edge has shown the other half of %q", c.content(a.Name, with))
	case version < seen:
		return StaleRead, fmt.Sprintf("the edge has shown %q", c.content(a.Name, seen))
	case version < need:
		return LostWrite, fmt.Sprintf("%q was acknowledged at %v", c.content(a.Name, need),
			c.writes[c.of[a.Name][need-1]].Position)
	case p.left[at.Epoch] || at.Epoch == p.at.Epoch && at.Generation < p.at.Generation:
		return BackInTime, fmt.Sprintf("the edge was at %v", p.at)
	case a.Last && newest != "" && at.Epoch != newest:
		return LostWrite, fmt.Sprintf("the newest write was acknowledged in epoch %s", newest)
	}
	return "", ""
}

func (c *checker) content(name string, version int) string {
	return c.writes[c.of[name][version-1]].Content
}

// needed returns the oldest version that an answer may show, and for a last answer the epoch of the newest write.
func (c *checker) needed(a *Answer, floor catalog.Position) (version int, newest string) {
	for i, number := range c.of[a.Name] {
		w := &c.writes[number]
		if w.Outcome != Acknowledged {
			continue
		}
		if w.Position.Epoch == "" || w.Position.Epoch == floor.Epoch &&
			(a.Last || w.Position.Generation <= floor.Generation) {
			version = i + 1
		}
	}
	if a.Last {
		for i := range c.writes {
			if w := &c.writes[i]; w.Outcome == Acknowledged && w.Position.Epoch != "" {
				newest = w.Position.Epoch
			}
		}
	}
	return version, newest
}

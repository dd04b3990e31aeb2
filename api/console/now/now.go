// Package now says what needs a person at this moment: one sentence for each thing, the worst first, with the page that
// helps. It is what the start page of the console shows.
//
// What it promises. It shows each condition of package conditions, and the proposals that wait: nothing is in the list that
// a person need not do something about, and an empty list is good news. What is alike is one item. A button leads only
// where the key may go, and says only what the key may do. It asks nobody: it judges Facts.
//
// What it does not do. It does not decide what a key may know: what is left out of the Facts is not told.
package now

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"fingerpost/api/client"
	"fingerpost/api/conditions"
	"fingerpost/resolver/catalog"
)

// Kinds of items.
const (
	Bad  = "bad"  // something does not work
	Warn = "warn" // something will not work, or waits for a decision
)

// An Item is one thing that needs a person.
type Item struct {
	Kind   string
	Text   string    // a sentence
	Detail string    // what a system said about it; ""
	Since  time.Time // zero: not known
	To, Do string    // the path of the page that helps, and what to do there
	List   []Item    // what is alike, each on its own; nil: this is one thing
}

// Facts are what is known. What does not concern a key is left out.
type Facts struct {
	conditions.State
	Proposals []client.Proposal
	May       May
}

// May is what the key may do.
type May struct {
	Write      bool
	Edit       bool // write or propose
	Everything bool // it covers every project
	Webhooks   bool // it sees webhooks
	Key        string
	EditOn     func(project int64) bool // nil: Edit holds for every project that the key covers
}

// edits reports whether the key may change a project.
func (m *May) edits(project int64) bool {
	if m.EditOn == nil {
		return m.Edit
	}
	return m.EditOn(project)
}

// Items lists what needs a person.
func Items(f *Facts) (items []Item) {
	for list := conditions.Of(&f.State); len(list) > 0; {
		n := 1
		for n < len(list) && list[n].Many != "" && list[n].Many == list[0].Many {
			n++
		}
		alike, more := make([]Item, n), 0
		for i := range alike {
			alike[i], more = itemOf(&list[i], &f.May), more+list[i].More
		}
		of := list[0].Of
		items = append(items, fold(alike, more, func(n int) string { return fmt.Sprintf(list[0].Many, catalog.Count(n, of)) },
			pages[list[0].ID].all)...)
		list = list[n:]
	}
	items = append(items, fold(proposals(f), 0, func(n int) string {
		return catalog.Count(n, "proposal") + " wait for a decision."
	}, page{proposalsPath, "See them"})...)
	slices.SortStableFunc(items, func(a, b Item) int { return cmp.Compare(a.Kind, b.Kind) }) // bad, warn
	return items
}

// fold makes one item of several that are alike: text says how many, all where all of them are. more is how many of them
// are not listed. It is as old as the oldest, and has their page if that is the same.
func fold(alike []Item, more int, text func(n int) string, all page) []Item {
	if len(alike)+more < 2 || len(alike) == 0 {
		return alike
	}
	one := Item{Kind: alike[0].Kind, Text: text(len(alike) + more), To: all.to, Do: all.do, List: alike}
	if !slices.ContainsFunc(alike, func(x Item) bool { return x.To != alike[0].To }) {
		one.To, one.Do = alike[0].To, alike[0].Do
	}
	for _, x := range alike {
		if one.Since.IsZero() || !x.Since.IsZero() && x.Since.Before(one.Since) {
			one.Since = x.Since
		}
	}
	if more > 0 {
		one.Detail = "The first " + strconv.Itoa(len(alike)) + " are listed."
	}
	return []Item{one}
}

func itemOf(c *conditions.Condition, may *May) Item {
	p := guideOf(c)
	if own, has := pages[c.ID]; has {
		if p = own.one; own.of != nil {
			p = own.of(c, may)
		}
	}
	item := Item{Kind: Warn, Text: c.Sentence, Detail: c.Detail, To: p.to, Do: p.do}
	if conditions.KindOf(c.ID).Broken {
		item.Kind = Bad
	}
	if c.Since != nil {
		item.Since = *c.Since
	}
	return item
}

func proposals(f *Facts) (items []Item) {
	if !f.May.Edit {
		return nil
	}
	do := "Read it"
	if f.May.Write {
		do = "Read and decide"
	}
	for i := range f.Proposals {
		p := &f.Proposals[i]
		if !f.May.Write && (p.Key == nil || *p.Key != f.May.Key) {
			continue
		}
		who, _, _ := strings.Cut(p.Author, " <")
		text := who + " proposes: " + cmp.Or(p.Title, p.Name)
		if !f.May.Write {
			text = "Your proposal waits for a person who may apply it: " + cmp.Or(p.Title, p.Name)
		}
		item := Item{Kind: Warn, Text: text + ".", To: proposalsPath + "/" + url.PathEscape(p.Name), Do: do}
		if !p.Mergeable {
			item.Detail = "It conflicts with what is live."
		}
		item.Since, _ = catalog.ParseMoment(p.CreatedAt)
		items = append(items, item)
	}
	return items
}

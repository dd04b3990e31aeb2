// Package hour shows the history of a node as charts: which figures there are, in which shape and in which words.
//
// What it promises. Each chart has a sentence and a table with the same numbers. A figure that a node does not have
// (mail on an edge, the authority's age elsewhere) has no chart. What went live is marked on each chart, and told in
// words, the newest first.
//
// What it needs. The history that package ops/history keeps. Package chart draws.
//
// What it does not do. It does not decide who may see the charts, and lays out no page.
package hour

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"fingerpost/api/console/chart"
	"fingerpost/api/ops/history"
)

// Charts are the last hour of a node.
type Charts struct {
	Steps   int // as in history.View
	Noted   int
	End     time.Time // of the newest values; zero: there are none yet
	All     []*Chart
	Lanes   []*chart.Lane
	Marks   []Mark // what went live, the newest first, at most maxMarks
	Earlier int    // more marks
}

// A Chart is one of them.
type Chart struct {
	chart.Chart
	ID   string // in links: "resolves"
	Hint string // what to know about the numbers; "" where they speak for themselves
}

// A Mark is what went live within a step.
type Mark struct {
	Time                   time.Time
	What, Changed, By, How string
}

// maxMarks bounds the list of what went live.
const maxMarks = 20

// The IDs of charts.
const (
	Resolves  = "resolves"
	Took      = "took"
	Cache     = "cache"
	Writes    = "writes"
	Mail      = "mail"
	Followers = "followers"
	Authority = "authority"
)

// small are the charts for a page that has room for few.
var small = []string{Resolves, Took, Cache, Mail}

// Small returns the charts for a page that has room for few.
func (c *Charts) Small() (few []*Chart) {
	for _, chart := range c.All {
		if slices.Contains(small, chart.ID) {
			few = append(few, chart)
		}
	}
	return few
}

// Of makes the charts of a history, on an edge those that an edge has.
func Of(v *history.View, edge bool) *Charts {
	c := &Charts{Steps: v.Steps, Noted: v.Noted, End: v.End}
	marks := marksOf(v)
	for _, ch := range []*Chart{
		{ID: Resolves, Chart: chart.Chart{Title: "Resolves a second", Unit: chart.Rate, Shape: chart.Area,
			Lines: []chart.Figure{{After: " resolves a second", One: " resolve a second", Values: v.Of(history.Resolves)}}}},
		{ID: Took, Hint: "Estimated from a histogram: between 2 µs and 1 s the true time is at most a factor of 5 away.",
			Chart: chart.Chart{Title: "Time of a resolve", Unit: chart.Seconds, Log: true, Lines: []chart.Figure{
				{Name: "half in", Before: "half of the resolves took at most ", None: none, Values: v.Of(history.P50)},
				{Name: "99\u00a0% in", Before: "99\u00a0% took at most ", None: none, Values: v.Of(history.P99)}}}},
		{ID: Cache, Chart: chart.Chart{Title: "Answered from the cache", Unit: chart.Share, Top: 1, Lines: []chart.Figure{
			{After: " of the answers came from the cache", None: none, Values: v.Of(history.HitRatio)}}}},
		{ID: Writes, Hint: "Writes over the API, saved files and pulls, in each 10 seconds.",
			Chart: chart.Chart{Title: "Changes that went live", Unit: chart.Count, Shape: chart.Steps, Lines: []chart.Figure{
				{Counts: true, After: " changes went live", One: " change went live", Values: v.Of(history.Writes)}}}},
		{ID: Mail, Hint: "In each 10 seconds.",
			Chart: chart.Chart{Title: "Mail", Unit: chart.Count, Shape: chart.Steps, Lines: []chart.Figure{
				{Name: "sent", Counts: true, After: " mails were sent", One: " mail was sent",
					Values: v.Of(history.MailsSent)},
				{Name: "failed", Counts: true, After: " failed", Values: v.Of(history.MailsFailed)}}}},
		{ID: Followers, Chart: chart.Chart{Title: "Followers of the change feed", Unit: chart.Count, Shape: chart.Steps,
			Lines: []chart.Figure{{After: " open streams of the change feed", One: " open stream of the change feed",
				Values: v.Of(history.Subscribers)}}}},
		{ID: Authority, Chart: chart.Chart{Title: "Since the authority was heard", Unit: chart.Seconds, Shape: chart.Area,
			Lines: []chart.Figure{{Before: "the authority was last heard ", After: " before",
				Values: v.Of(history.AuthorityAge)}}}},
	} {
		if ch.ID == Authority && !edge || ch.ID == Mail && edge {
			continue
		}
		ch.Step, ch.End, ch.Chart.Marks = history.Step, v.End, marks
		c.All = append(c.All, ch)
	}
	for _, l := range v.Edges {
		c.Lanes = append(c.Lanes, &chart.Lane{Name: l.Name, Lag: l.Lag, Ready: l.Ready, Step: history.Step, End: v.End})
	}
	for i := len(v.Marks) - 1; i >= 0 && len(c.Marks) < maxMarks; i-- {
		c.Marks = append(c.Marks, tell(&v.Marks[i]))
	}
	c.Earlier = len(v.Marks) - len(c.Marks)
	return c
}

const none = "no resolves"

func marksOf(v *history.View) (marks []chart.Mark) {
	for i := range v.Marks {
		m := tell(&v.Marks[i])
		text := m.Time.Format("15:04:05 UTC, ") + m.What + ": " + m.Changed
		if m.By != "" {
			text += ", by " + m.By
		}
		if m.How != "" {
			text += ", " + m.How
		}
		marks = append(marks, chart.Mark{Time: m.Time, Text: text})
	}
	return marks
}

// doors are the ways by which changes come, in words.
var doors = map[string]string{"api": "over the API", "file": "a change in the folder", "git": "a pull from git",
	"cli": "a command", "cluster": "from the authority", "dns": "what name servers say"}

func tell(m *history.Mark) Mark {
	t := Mark{Time: m.Time, Changed: m.Changed, By: strings.Join(m.By, ", "),
		What: "generation " + strconv.FormatUint(m.Generation, 10)}
	if m.Generations > 1 {
		t.What = strconv.Itoa(m.Generations) + " generations up to " + strconv.FormatUint(m.Generation, 10)
	}
	if m.MorePeople {
		t.By += " and others"
	}
	var ways []string
	for door := range strings.SplitSeq(m.Door, ", ") {
		if words := doors[door]; words != "" {
			ways = append(ways, words)
		}
	}
	t.How = strings.Join(ways, ", ")
	return t
}

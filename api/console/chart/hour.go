package chart

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"fingerpost/api/ops/history"
)

// An Hour is the history of a node as charts: hour.go decides which figures there are, in which shape and in which
// words. A figure that a node does not have (mail on an edge, the authority's age elsewhere) has no chart.
type Hour struct {
	Steps   int // as in history.View
	Noted   int
	End     time.Time // of the newest values; zero: there are none yet
	All     []*HourChart
	Lanes   []*Lane
	Marks   []Change // what went live, the newest first, at most maxMarks
	Earlier int      // more marks
}

// An HourChart is a chart of the last hour.
type HourChart struct {
	Chart
	ID   string // in links: "resolves"
	Hint string // what to know about the numbers; "" where they speak for themselves
}

// A Change is what went live within a step.
type Change struct {
	Time                   time.Time
	What, Changed, By, How string
}

// maxMarks bounds the list of changes.
const maxMarks = 20

// The IDs of charts.
const (
	idResolves  = "resolves"
	idTook      = "took"
	idCache     = "cache"
	idWrites    = "writes"
	idMail      = "mail"
	idFollowers = "followers"
	idAuthority = "authority"
)

// smallCharts are the charts for a page that has room for few.
var smallCharts = []string{idResolves, idTook, idCache, idMail}

// Small returns the charts for a page that has room for few.
func (c *Hour) Small() (few []*HourChart) {
	for _, chart := range c.All {
		if slices.Contains(smallCharts, chart.ID) {
			few = append(few, chart)
		}
	}
	return few
}

// HourOf makes the charts of a history, on an edge those that an edge has.
func HourOf(v *history.View, edge bool) *Hour {
	c := &Hour{Steps: v.Steps, Noted: v.Noted, End: v.End}
	marks := marksOf(v)
	for _, ch := range []*HourChart{
		{ID: idResolves, Chart: Chart{Title: "Resolves a second", Unit: Rate, Shape: Area,
			Lines: []Figure{{After: " resolves a second", One: " resolve a second", Values: v.Of(history.Resolves)}}}},
		{ID: idTook, Hint: "Estimated from a histogram: between 2 µs and 1 s the true time is at most a factor of 5 away.",
			Chart: Chart{Title: "Time of a resolve", Unit: Seconds, Log: true, Lines: []Figure{
				{Name: "half in", Before: "half of the resolves took at most ", None: noResolves, Values: v.Of(history.P50)},
				{Name: "99\u00a0% in", Before: "99\u00a0% took at most ", None: noResolves, Values: v.Of(history.P99)}}}},
		{ID: idCache, Chart: Chart{Title: "Answered from the cache", Unit: Share, Top: 1, Lines: []Figure{
			{After: " of the answers came from the cache", None: noResolves, Values: v.Of(history.HitRatio)}}}},
		{ID: idWrites, Hint: "Writes over the API, saved files and pulls, in each 10 seconds.",
			Chart: Chart{Title: "Changes that went live", Unit: Count, Shape: Steps, Lines: []Figure{
				{Counts: true, After: " changes went live", One: " change went live", Values: v.Of(history.Writes)}}}},
		{ID: idMail, Hint: "In each 10 seconds.",
			Chart: Chart{Title: "Mail", Unit: Count, Shape: Steps, Lines: []Figure{
				{Name: "sent", Counts: true, After: " mails were sent", One: " mail was sent",
					Values: v.Of(history.MailsSent)},
				{Name: "failed", Counts: true, After: " failed", Values: v.Of(history.MailsFailed)}}}},
		{ID: idFollowers, Chart: Chart{Title: "Followers of the change feed", Unit: Count, Shape: Steps,
			Lines: []Figure{{After: " open streams of the change feed", One: " open stream of the change feed",
				Values: v.Of(history.Subscribers)}}}},
		{ID: idAuthority, Chart: Chart{Title: "Since the authority was heard", Unit: Seconds, Shape: Area,
			Lines: []Figure{{Before: "the authority was last heard ", After: " before",
				Values: v.Of(history.AuthorityAge)}}}},
	} {
		if ch.ID == idAuthority && !edge || ch.ID == idMail && edge {
			continue
		}
		ch.Step, ch.End, ch.Chart.Marks = history.Step, v.End, marks
		c.All = append(c.All, ch)
	}
	for _, l := range v.Edges {
		c.Lanes = append(c.Lanes, &Lane{Name: l.Name, Lag: l.Lag, Ready: l.Ready, Step: history.Step, End: v.End})
	}
	for i := len(v.Marks) - 1; i >= 0 && len(c.Marks) < maxMarks; i-- {
		c.Marks = append(c.Marks, changeOf(&v.Marks[i]))
	}
	c.Earlier = len(v.Marks) - len(c.Marks)
	return c
}

const noResolves = "no resolves"

// marksOf are the changes as marks on each chart.
func marksOf(v *history.View) (marks []Mark) {
	for i := range v.Marks {
		m := changeOf(&v.Marks[i])
		text := m.Time.Format("15:04:05 UTC, ") + m.What + ": " + m.Changed
		if m.By != "" {
			text += ", by " + m.By
		}
		if m.How != "" {
			text += ", " + m.How
		}
		marks = append(marks, Mark{Time: m.Time, Text: text})
	}
	return marks
}

// doors are the ways by which changes come, in words.
var doors = map[string]string{"api": "over the API", "file": "a change in the folder", "git": "a pull from git",
	"cli": "a command", "cluster": "from the authority", "dns": "what name servers say", "mail": "bounces",
	"link": "recipients", "inbound": "providers of mail"}

func changeOf(m *history.Mark) Change {
	t := Change{Time: m.Time, Changed: m.Changed, By: strings.Join(m.By, ", "),
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

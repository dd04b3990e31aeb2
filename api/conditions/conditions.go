// Package conditions is the one judge of "is all well": a table of what may be wrong with a node, and Of, which says
// which of it is so.
//
// What it promises. Each condition has one id, severity, sentence, remedy and section of the guide, in every place that
// shows it: /status, the console's Now, doctor, the log, systemd's status line, the audit trail, and the Prometheus rules
// (Rules). A new condition is a new Kind in the table, and the facts that it needs are fields of State. Of asks no other
// part and keeps nothing: it judges a State. A Debouncer finds what the audit trail tells: a bounded number of
// beginnings and ends, whatever flaps.
//
// What it needs. A State with what is known. A viewer who may know less is judged with a State that has less.
//
// What it does not do. It measures nothing, and it does not know how long a condition has lasted unless the State says
// so. Rates over time are Prometheus's: such a Kind has an alert and no condition. A proposal that waits is not a
// condition: it asks one of several people for a decision, which the console lists next to the conditions.
package conditions

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"fingerpost/resolver/catalog"
)

// A Severity says how soon a person is needed.
type Severity string

// The severities.
const (
	Critical Severity = "critical" // at once
	Warning  Severity = "warning"  // today
	Info     Severity = "info"     // some time
)

// A Condition is one thing that needs a person.
type Condition struct {
	ID       string     `json:"id"` // of its Kind
	Severity Severity   `json:"severity"`
	Subject  string     `json:"subject"` // what it is about, such as "edge fra1"; "" for the node
	Since    *time.Time `json:"since"`   // nil: not known
	Sentence string     `json:"sentence"`
	Detail   string     `json:"detail,omitempty"` // what a system said about it
	Remedy   string     `json:"remedy"`
	Guide    string     `json:"guide"` // the path of a section that the service serves

	// Many is the sentence about several conditions that are alike, with %s for their number; "" if each stands alone.
	// They are of one Kind and have the same Many. Of is the noun, and More counts those that are not listed.
	Many, Of string `json:"-"`
	More     int    `json:"-"`
	// Project, Domain and Code are what Subject and Detail name, for links; 0 and "": none.
	Project, Domain int64  `json:"-"`
	Code            string `json:"-"`
}

// A Kind is a row of the table.
type Kind struct {
	ID       string
	Severity Severity
	Broken   bool   // something does not work; else it soon will not, or waits for a decision
	Check    string // the check of doctor that tells of it
	Remedy   string
	Guide    string // "": the section of the alert
	Alert    Alert
	Except   string // why there is no alert, or no condition; "": there are both
	Silent   string // why a Debouncer leaves it out, see SilentFor

	find func(s *State) []Condition // with all but what the Kind says; nil: Prometheus alone knows
	door catalog.Door               // of entries in the audit trail
}

// An Alert is a Prometheus rule. Name is without "Fingerpost".
type Alert struct{ Name, Expr, For, Summary string }

// Found reports whether Of can find conditions of the kind.
func (k *Kind) Found() bool { return k.find != nil }

// SilentFor returns why the beginnings and ends of the kind are not told in the audit trail; "": they are.
func (k *Kind) SilentFor() string {
	switch {
	case k.find == nil:
		return k.Except
	case k.Severity == Info:
		return "a hint needs nobody soon"
	}
	return k.Silent
}

// sections are the table, in the order of the Prometheus rules. The door is that by which others hear of such things.
var sections = []struct {
	door  catalog.Door
	kinds []Kind
}{
	{catalog.DoorFile, node}, {catalog.DoorFile, files}, {catalog.DoorFile, mail}, {catalog.DoorGit, git},
	{catalog.DoorCluster, cluster}, {catalog.DoorDNS, domains}, {catalog.DoorFile, webhooks}, {catalog.DoorFile, ends},
}

// Kinds returns the table.
func Kinds() (all []Kind) {
	for _, section := range sections {
		for _, k := range section.kinds {
			k.door = section.door
			all = append(all, k)
		}
	}
	return all
}

// KindOf returns the kind of a condition. An id that this release does not have is a warning without a check.
func KindOf(id string) Kind {
	for _, section := range sections {
		for _, k := range section.kinds {
			if k.ID == id {
				k.door = section.door
				return k
			}
		}
	}
	return Kind{ID: id, Severity: Warning, Guide: "/docs/alerts", door: catalog.DoorFile}
}

// most bounds the conditions of a kind.
const most = 100

// Of returns the conditions of a state, the worst first: what is broken, then by severity.
func Of(s *State) []Condition {
	list, ranks := []Condition{}, map[string]int{} // [] in JSON, not null
	for _, k := range Kinds() {
		if k.find == nil {
			continue
		}
		ranks[k.ID] = slices.Index([]Severity{Critical, Warning, Info}, k.Severity)
		if !k.Broken {
			ranks[k.ID] += len("cwi")
		}
		found := k.find(s)
		if more := len(found) - most; more > 0 {
			found[0].More += more
			found = found[:most]
		}
		for _, c := range found {
			c.ID, c.Severity, c.Remedy, c.Guide = k.ID, k.Severity, k.Remedy, k.GuidePath()
			list = append(list, c)
		}
	}
	slices.SortStableFunc(list, func(a, b Condition) int { return cmp.Compare(ranks[a.ID], ranks[b.ID]) })
	return list
}

// GuidePath is the path of the section of the guide.
func (k *Kind) GuidePath() string {
	return cmp.Or(k.Guide, "/docs/alerts#fingerpost"+strings.ToLower(k.Alert.Name))
}

// Line is the sentence with its detail, as it continues a line: "the files have 1 error (acme.hcl:5: unknown status)".
func (c *Condition) Line() string {
	line := strings.TrimSuffix(strings.ToLower(c.Sentence[:1])+c.Sentence[1:], ".")
	if c.Detail != "" {
		line += " (" + c.Detail + ")"
	}
	return line
}

// Clause is the first clause of the sentence, as it continues a line: "the files have 2 errors".
func (c *Condition) Clause() string {
	clause, _, _ := strings.Cut(c.Line(), " (")
	clause, _, _ = strings.Cut(clause, ":")
	clause, _, _ = strings.Cut(clause, ";")
	return clause
}

// told is one condition of the node, if it is so. since is optional.
func told(is bool, sentence, detail string, since ...time.Time) (list []Condition) {
	if is {
		list = []Condition{{Sentence: sentence, Detail: detail}}
		for _, t := range since {
			list[0].Since = at(t)
		}
	}
	return list
}

// at returns a time for Since.
func at(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

// Package now says what needs a person at this moment: one sentence for each thing, the worst first, with the page that
// helps. It is what the start page of the console shows.
//
// What it promises. Nothing is in the list that a person need not do something about, and an empty list is good news. A
// button leads only where the key may go, and says only what the key may do. It asks nobody: it judges Facts.
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
	"fingerpost/api/console/say"
	"fingerpost/configsrc"
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
	Time      time.Time
	Files     *configsrc.Status // nil: not for this key
	Store     string            // why the store on disk is not in use, or ""
	Git       *Git
	MailRoom  string // why new mail is refused, or ""
	Stopped   []Stopped
	More      int           // projects whose mail has stopped and that Stopped does not have
	CutOff    time.Duration // since this edge heard its authority; 0: lately, or the node is not an edge
	Edges     []client.Edge
	Keys      []client.Key
	Proposals []client.Proposal
	Domains   []Domain
	// MoreDomains counts the domains of each state that Domains does not have.
	MoreDomains map[string]int
	May         May
}

// May is what the key may do.
type May struct {
	Write      bool
	Edit       bool // write or propose
	Everything bool // it covers every project
	Key        string
}

// Git is the state of the repository of the files.
type Git struct {
	Branch, Head           string
	Ahead, Behind, Pending int
	Errors                 []string
	Conflict               string
	Overruled              []string
}

// Domain is a domain whose proof is not there.
type Domain struct {
	Project, ID int64
	Name        string
	State       string    // pending, failing or lost
	Since       time.Time // zero: not known
}

// Stopped is a project whose mail waits until a person changes something.
type Stopped struct {
	Project    int64
	Name, Code string
	Waiting    int
	Since      time.Time
}

const (
	maxErrors = 4 // errors of git that are told
	soon      = 14 * 24 * time.Hour
	lagging   = 10 * time.Second
	problems  = "/console/problems"
	proposals = "/console/proposals"
)

// Items lists what needs a person.
func Items(f *Facts) []Item {
	var l list
	if f.Files != nil {
		l.files(f)
	}
	if f.Git != nil {
		l.git(f.Git)
	}
	l.cutOff(f)
	l.mail(f)
	l.domains(f)
	l.edges(f)
	l.keys(f)
	l.proposals(f)
	slices.SortStableFunc(l.items, func(a, b Item) int { return cmp.Compare(a.Kind, b.Kind) }) // bad, warn
	return l.items
}

type list struct{ items []Item }

// fold makes one item of those that came in since there were n, if they are several: text says how many, to and do where all
// of them are. more is how many of them are not listed. It is as old as the oldest.
func (l *list) fold(n, more int, text func(n int) string, to, do string) {
	alike := l.items[n:]
	if len(alike)+more < 2 || len(alike) == 0 {
		return
	}
	all := Item{Kind: alike[0].Kind, Text: text(len(alike) + more), To: to, Do: do, List: slices.Clone(alike)}
	for _, x := range alike {
		if all.Since.IsZero() || !x.Since.IsZero() && x.Since.Before(all.Since) {
			all.Since = x.Since
		}
	}
	if more > 0 {
		all.Detail = "The first " + strconv.Itoa(len(alike)) + " are listed."
	}
	l.items = append(l.items[:n], all)
}

// last is the item that came in last.
func (l *list) last() *Item { return &l.items[len(l.items)-1] }

func (l *list) add(kind, text, detail, to, do string) {
	l.items = append(l.items, Item{Kind: kind, Text: text, Detail: detail, To: to, Do: do})
}

func (l *list) files(f *Facts) {
	st := f.Files
	if st.Held != nil {
		do := "See what it removes"
		if f.May.Write {
			do = "Look and decide"
		}
		l.add(Bad, "A reload of the files is held back: it would remove "+catalog.Count(st.Held.Projects, "project")+" and "+
			catalog.Count(st.Held.Domains, "domain")+".", st.Held.Reason, problems, do)
		l.last().Since = st.Held.Since
	}
	if st.Error != "" {
		l.add(Bad, "The files could not be read; what was read before is served.", st.Error, problems, "See the problem")
		l.last().Since = st.LastSuccess
	}
	if st.Errors > 0 {
		served := "."
		if st.Quarantined > 0 {
			served = "; what " + catalog.Count(st.Quarantined, "file") + " said before is served."
		}
		l.add(Bad, "The files have "+catalog.Count(st.Errors, "error")+served, first(st, "error"), problems, "See where")
	}
	if st.Warnings > 0 {
		l.add(Warn, "The files have "+catalog.Count(st.Warnings, "warning")+".", first(st, "warning"), problems, "See where")
	}
	if st.LowDisk != "" {
		l.add(Bad, "The disk is nearly full: changes are refused until there is room.", st.LowDisk, problems,
			"See the problem")
	}
	if f.Store != "" {
		l.add(Bad, "The store on disk is not in use: look-ups go on from memory, changes are refused.", f.Store, problems,
			"See the problem")
	}
}

// first is the first problem of a severity, with its line.
func first(st *configsrc.Status, severity string) string {
	for _, p := range st.Problems {
		if fmt.Sprint(p.Severity) != severity {
			continue
		}
		if p.File == "" {
			return p.Summary
		}
		return p.File + ":" + strconv.Itoa(p.Start.Line) + ": " + p.Summary
	}
	return ""
}

func (l *list) git(g *Git) {
	if g.Conflict != "" {
		l.add(Bad, "Git needs a person: until then nothing is pulled or pushed.", g.Conflict, problems, "See what to do")
	}
	for _, e := range g.Errors[:min(maxErrors, len(g.Errors))] {
		l.add(Bad, "Git does not work; the service goes on.", e, problems, "See the problem")
	}
	if g.Behind > 0 && g.Conflict == "" {
		l.add(Warn, "The git server has "+catalog.Count(g.Behind, "commit")+" that "+isAre(g.Behind)+" not live here yet.",
			"", "/console/live", "See the state")
	}
	if n := len(g.Overruled); n > 0 {
		l.add(Warn, catalog.Count(n, "change")+" "+isAre(n)+" set aside: a person's commit changed the same, and won.", "",
			problems, "See them")
	}
}

const suspended = "PROJECT_SUSPENDED"

func (l *list) mail(f *Facts) {
	if f.MailRoom != "" {
		l.add(Bad, "New mail is refused until there is room.", f.MailRoom, "/console/mail", "See the queue")
	}
	for _, code := range codesOf(f.Stopped) {
		n, why := len(l.items), say.ReasonOf(code).Why
		for i := range f.Stopped {
			if f.Stopped[i].Code == code {
				l.stopped(f, &f.Stopped[i], why)
			}
		}
		l.fold(n, 0, func(n int) string { return "No mail of " + catalog.Count(n, "project") + " is sent: " + why + "." },
			"/console/mail", "See them")
	}
	if f.More > 0 {
		l.add(Bad, "The mail of "+catalog.Count(f.More, "more project")+" is stopped, too.", "", "/console/mail", "See them")
	}
}

// codesOf lists the codes of stopped projects, each once.
func codesOf(stopped []Stopped) (codes []string) {
	for i := range stopped {
		if !slices.Contains(codes, stopped[i].Code) {
			codes = append(codes, stopped[i].Code)
		}
	}
	return codes
}

func (l *list) stopped(f *Facts, s *Stopped, why string) {
	detail := s.Code
	if s.Waiting > 0 {
		wait := map[bool]string{true: " waits", false: " wait"}[s.Waiting == 1]
		detail += ", " + catalog.Count(s.Waiting, "mail") + wait
	}
	id := strconv.FormatInt(s.Project, 10)
	to, do := "/console/mail?project="+id, "See its mail"
	switch {
	case f.May.Edit && s.Code == suspended:
		to, do = "/console/edit?kind=project&project="+id, "Change its status"
	case f.May.Edit:
		to, do = "/console/edit?kind=smtp-config&project="+id, "Mend the SMTP config"
	}
	l.add(Bad, "No mail of "+s.Name+" is sent: "+why+".", detail, to, do)
	l.last().Since = s.Since
}

// domains tells of domains whose proof is gone, or has not come yet.
func (l *list) domains(f *Facts) {
	for _, x := range unproven {
		n := len(l.items)
		for _, d := range f.Domains {
			if d.State != x.state {
				continue
			}
			to := "/console/projects/" + strconv.FormatInt(d.Project, 10) + "/domains/" + strconv.FormatInt(d.ID, 10)
			l.add(x.kind, fmt.Sprintf(x.one, d.Name), "", to, "See its records")
			l.last().Since = d.Since
		}
		many := func(n int) string { return fmt.Sprintf(x.many, catalog.Count(n, "domain")) }
		l.fold(n, f.MoreDomains[x.state], many, "", "")
	}
}

// unproven are the states of domains that a person has to look at, with a sentence about one domain and about many.
var unproven = []struct{ state, kind, one, many string }{
	{"lost", Bad, "The proof of the domain %s has been gone for too long.",
		"The proofs of %s have been gone for too long."},
	{"failing", Bad, "The proof of the domain %s is gone; it is answered for now.",
		"The proofs of %s are gone; they are answered for now."},
	{"pending", Warn, "The domain %s is not proven yet, and not answered.", "%s are not proven yet, and not answered."},
}

func (l *list) cutOff(f *Facts) {
	if f.CutOff == 0 {
		return
	}
	to, do := "", ""
	if f.May.Everything {
		to, do = "/console/live", "See the state"
	}
	l.add(Bad, "This edge last heard its authority "+catalog.Span(f.CutOff)+" ago: it answers from what was true then, and "+
		"refuses changes and mail.", "", to, do)
}

func (l *list) keys(f *Facts) {
	n, all := len(l.items), ""
	if f.May.Everything {
		all = "/console/keys"
	}
	for i := range f.Keys {
		k := &f.Keys[i]
		end, err := catalog.ParseMoment(k.ExpiresAt)
		if err != nil || end.Before(f.Time) || end.Sub(f.Time) > soon {
			continue
		}
		name, to, do := "The key "+k.Name, "/console/keys", "See the keys"
		if k.Name == f.May.Key {
			name = "Your key " + k.Name
		}
		if !f.May.Everything {
			to, do = "", ""
		}
		l.add(Warn, name+" ends in "+catalog.Span(end.Sub(f.Time))+".", "", to, do)
	}
	l.fold(n, 0, func(n int) string { return catalog.Count(n, "key") + " end within 14 days." }, all, "See the keys")
}

func (l *list) proposals(f *Facts) {
	if !f.May.Edit {
		return
	}
	do, n := "Read it", len(l.items)
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
		detail := ""
		if !p.Mergeable {
			detail = "It conflicts with what is live."
		}
		l.add(Warn, text+".", detail, proposals+"/"+url.PathEscape(p.Name), do)
		l.last().Since, _ = catalog.ParseMoment(p.CreatedAt)
	}
	many := func(n int) string { return catalog.Count(n, "proposal") + " wait for a decision." }
	l.fold(n, 0, many, proposals, "See them")
}

func isAre(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

package history

import (
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// A Generation is a change that went live.
type Generation struct {
	Number uint64
	Time   time.Time
	Loaded bool // it ended the first load of all files
	// Changed has the objects that were changed by their noun in the audit trail, each as a number of its own; with Many
	// there are more of them.
	Changed map[string][]uint64
	Many    bool
	Only    string   // what was done, where one object was changed: "domain.create shop.acme.example"
	Doors   []string // by which it came
	By      []string // the people or keys that made it, where they are known
}

// A Mark is what went live within one step.
type Mark struct {
	Time        time.Time `json:"time"`        // of the last generation
	Generation  uint64    `json:"generation"`  // the last one
	Generations int       `json:"generations"` // how many
	Changed     string    `json:"changed"`     // in words: "2 projects, 1 domain"
	Door        string    `json:"door"`
	// By are at most maxPeople. Not in the JSON: /status asks for no key, and other machines may read it.
	By         []string `json:"-"`
	MorePeople bool     `json:"-"`
}

// A mark collects the generations of a step.
type mark struct {
	step        int
	last        uint64
	generations int
	time        time.Time
	loaded      bool
	counts      [len(nouns)]int
	seen        map[object]bool // of counts: what is saved ten times counts once; at most maxSeen
	many        bool            // more than counts has
	only        string
	doors, by   []string
	more        bool // people
}

// An object is one that was changed.
type object struct {
	noun int // an index of nouns
	id   uint64
}

const (
	maxSeen   = 256 // beyond it, an object counts each time
	maxPeople = 3
	maxText   = 120 // bytes of a name
)

// nouns are the words for objects of the audit trail, one and several.
var nouns = [...]struct{ noun, one, many string }{
	{"project", "project", "projects"},
	{"domain", "domain", "domains"},
	{"service-settings", "project's service settings", "projects' service settings"},
	{"auth-settings", "project's sign-in settings", "projects' sign-in settings"},
	{"smtp-config", "SMTP config", "SMTP configs"},
	{"template", "template", "templates"},
	{"default-template", "default template", "default templates"},
	{"key", "API key", "API keys"},
	{"edge", "edge", "edges"},
	{"defaults", "block of defaults", "blocks of defaults"},
	{"sealing", "sealing block", "sealing blocks"},
}

// Note adds a generation that went live: to the mark of the present step if there is one, so that a flood of them leaves
// the earlier marks in place.
func (r *Recorder) Note(g Generation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.noted++
	if !g.Loaded {
		r.writes++
	}
	var m *mark
	if n := len(r.marks); n > 0 && r.marks[n-1].step == r.steps {
		m = r.marks[n-1]
	} else {
		m = &mark{step: r.steps, only: cut(g.Only), seen: map[object]bool{}}
		r.marks = append(r.marks, m)
		r.forget() // a process that records nothing keeps one mark
	}
	if m.generations++; m.only != cut(g.Only) {
		m.only = ""
	}
	m.last, m.time, m.loaded, m.many = g.Number, g.Time, m.loaded || g.Loaded, m.many || g.Many
	m.count(g.Changed)
	for _, door := range g.Doors {
		if !slices.Contains(m.doors, door) && len(m.doors) < maxPeople {
			m.doors = append(m.doors, cut(door))
		}
	}
	for _, who := range g.By {
		switch who = cut(who); {
		case who == "" || slices.Contains(m.by, who):
		case len(m.by) == maxPeople:
			m.more = true
		default:
			m.by = append(m.by, who)
		}
	}
}

func (m *mark) count(changed map[string][]uint64) {
	for i := range nouns {
		for _, id := range changed[nouns[i].noun] {
			o := object{i, id}
			if m.seen[o] {
				continue
			}
			m.counts[i]++
			if len(m.seen) < maxSeen {
				m.seen[o] = true
			}
		}
	}
}

const loaded = "all files were loaded"

// words says what the generations of a mark changed.
func (m *mark) words() string {
	if action, object, _ := strings.Cut(m.only, " "); m.only != "" {
		return deed(action, object)
	}
	var parts []string
	for i, n := range m.counts {
		switch {
		case n == 1:
			parts = append(parts, "1 "+nouns[i].one)
		case n > 1:
			parts = append(parts, strconv.Itoa(n)+" "+nouns[i].many)
		}
	}
	if m.many {
		parts = append(parts, "many projects and domains")
	}
	words := strings.Join(parts, ", ")
	switch {
	case m.loaded && words != "":
		return loaded + "; " + words
	case m.loaded:
		return loaded
	case words == "":
		return "no values, only the text of files"
	}
	return words
}

// deed says what was done to one object: "domain shop.acme.example created".
func deed(action, object string) string {
	noun, verb, _ := strings.Cut(action, ".")
	done := map[string]string{"create": "created", "delete": "deleted", "rotate": "rotated"}[verb]
	if done == "" {
		done = "changed"
	}
	i := slices.IndexFunc(nouns[:], func(n struct{ noun, one, many string }) bool { return n.noun == noun })
	if i < 0 {
		return action
	}
	word := nouns[i].one
	if of, is := strings.CutPrefix(word, "project's "); is {
		return of + " of project " + object + " " + done
	}
	if object != "" {
		word += " " + object
	}
	return word + " " + done
}

func (m *mark) view() Mark {
	return Mark{Time: m.time.UTC(), Generation: m.last, Generations: m.generations, Changed: m.words(),
		Door: strings.Join(m.doors, ", "), By: slices.Clone(m.by), MorePeople: m.more}
}

// cut returns at most maxText bytes of a text, in memory of its own.
func cut(text string) string {
	if len(text) <= maxText {
		return strings.Clone(text)
	}
	n := maxText - len("…")
	for !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n] + "…"
}

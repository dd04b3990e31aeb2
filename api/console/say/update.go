package say

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"fingerpost/api/client"
	"fingerpost/resolver/catalog"
)

// maxNamed is how many changed fields a sentence names; of more it says how many they are.
const maxNamed = 3

// maxValue is the longest value that stands in a sentence, in characters.
const maxValue = 48

// A writer makes one sentence.
type writer struct {
	e    *client.AuditEntry
	name func(int64) string
	gone bool // the object does not exist after the change
	out  Sentence
}

// text adds text as it stands.
func (w *writer) text(s string) { w.out = append(w.out, Part{Text: s}) }

func (w *writer) strong(s string) { w.out = append(w.out, Part{Text: s, Strong: true}) }

// say adds text in which %p is the entry's project and %o its object.
func (w *writer) say(format string) {
	for format != "" {
		at := strings.IndexByte(format, '%')
		if at < 0 || at+1 == len(format) {
			w.text(format)
			return
		}
		if at > 0 {
			w.text(format[:at])
		}
		if format[at+1] == 'p' {
			w.projectName()
		} else {
			w.object()
		}
		format = format[at+2:]
	}
}

func (w *writer) object() {
	p := Part{Text: word(w.e.Object), Strong: true}
	switch noun, _, _ := strings.Cut(w.e.Action, "."); {
	case w.gone:
	case noun == "domain":
		p.Domain, p.Strong = true, false
	case noun == "webhook":
		p.Webhook, p.Strong = true, false
	}
	w.out = append(w.out, p)
}

// projectName calls the project what it is called now, else what the entry itself says.
func (w *writer) projectName() {
	name := ""
	if w.name != nil && w.e.ProjectID != nil {
		name = w.name(*w.e.ProjectID)
	}
	if name != "" {
		w.out = append(w.out, Part{Text: name, Project: *w.e.ProjectID})
		return
	}
	if strings.HasPrefix(w.e.Action, "project.") {
		if name = w.after("name"); name == "" {
			name = w.before("name")
		}
	}
	switch noun, _, _ := strings.Cut(w.e.Action, "."); {
	case name != "":
	case noun == "domain" || noun == "template" || w.e.Object == nil:
		w.text("a project that is gone")
		return
	default:
		name = *w.e.Object // the slug
	}
	w.strong(name)
}

func (w *writer) change(field string) *client.AuditChange {
	i := slices.IndexFunc(w.e.Changes, func(c client.AuditChange) bool { return c.Field == field })
	if i < 0 {
		return nil
	}
	return &w.e.Changes[i]
}

func (w *writer) before(field string) string {
	if c := w.change(field); c != nil {
		return value(c.Before)
	}
	return ""
}

func (w *writer) after(field string) string {
	if c := w.change(field); c != nil {
		return value(c.After)
	}
	return ""
}

// only reports whether the entry changes these fields and no others.
func (w *writer) only(fields ...string) bool {
	for _, c := range w.e.Changes {
		if !slices.Contains(fields, c.Field) {
			return false
		}
	}
	return len(w.e.Changes) > 0
}

// count says a number that the entry has.
func (w *writer) count(field, what string) string {
	n := w.after(field)
	if n == "" {
		n = "0"
	}
	if n != "1" {
		what += "s"
	}
	return n + " " + what
}

// project tells of a project's new name, slug, status or label.
func (w *writer) project(n *noun) bool {
	name, slug := w.change("name"), w.change("slug")
	switch {
	case name != nil:
		w.say(" renamed ")
		w.strong(value(name.Before))
		w.say(" to ")
		w.out = append(w.out, Part{Text: value(name.After), Project: w.id()})
		if slug != nil {
			w.text(" (slug " + value(slug.After) + ")")
		}
		rest := slices.DeleteFunc(slices.Clone(w.e.Changes), func(c client.AuditChange) bool {
			return c.Field == "name" || c.Field == "slug"
		})
		if len(rest) > 0 {
			w.text(", and changed " + w.fieldList(rest))
		}
	case slug != nil && w.only("slug"):
		w.say(" gave %p the slug ")
		w.strong(value(slug.After))
		w.say(", before: ")
		w.text(value(slug.Before))
	case w.only("status"):
		switch to := w.after("status"); to {
		case catalog.StatusSuspended:
			w.say(" suspended %p")
		case catalog.StatusActive:
			w.say(" activated %p")
		default:
			w.say(" set %p back to ")
			w.text(strings.ToLower(to))
		}
	case w.only("labels"):
		return w.oneLabel()
	default:
		return false
	}
	return true
}

// oneLabel tells of one label of a project that was set or removed.
func (w *writer) oneLabel() bool {
	var was, is map[string]string
	c := w.change("labels")
	_ = json.Unmarshal(c.Before, &was) // null, or a map: the trail has no other labels
	_ = json.Unmarshal(c.After, &is)
	var changed []string
	for _, name := range slices.Sorted(maps.Keys(is)) {
		if old, had := was[name]; !had || old != is[name] {
			changed = append(changed, name)
		}
	}
	var removed []string
	for _, name := range slices.Sorted(maps.Keys(was)) {
		if _, has := is[name]; !has {
			removed = append(removed, name)
		}
	}
	switch {
	case len(changed) == 1 && len(removed) == 0:
		w.say(" set the label ")
		w.strong(short(changed[0] + "=" + is[changed[0]]))
		w.say(" on %p")
	case len(changed) == 0 && len(removed) == 1:
		w.say(" removed the label ")
		w.strong(removed[0])
		w.say(" from %p")
	default:
		return false
	}
	return true
}

// domain tells of a domain that is primary, or switched on or off.
func (w *writer) domain(*noun) bool {
	switch {
	case w.only("active") && w.after("active") == "yes":
		w.say(" activated the domain %o of %p")
	case w.only("active"):
		w.say(" deactivated the domain %o of %p")
	case w.only("primary") && w.after("primary") == "yes":
		w.say(" made %o the primary domain of %p")
	case w.only("primary"):
		w.say(" made %o a secondary domain of %p")
	default:
		return false
	}
	return true
}

// webhook tells of a webhook that was switched on or off.
func (w *writer) webhook(*noun) bool {
	switch {
	case w.only("active") && w.after("active") == "yes":
		w.say(" switched the webhook %o on")
	case w.only("active"):
		w.say(" switched the webhook %o off")
	default:
		return false
	}
	return true
}

// key tells what a key may do, where, and how long.
func (w *writer) key(*noun) bool {
	switch {
	case w.only("allow"):
		w.say(" changed what the key %o may do, from ")
		w.text(listed(w.before("allow")) + " to " + listed(w.after("allow")))
	case w.only("projects"):
		w.say(" changed the projects of the key %o")
	case w.only("expiresAt") && w.after("expiresAt") == "":
		w.say(" let the key %o be valid without an end")
	case w.only("expiresAt"):
		w.say(" changed when the key %o expires")
	default:
		return false
	}
	return true
}

func listed(words string) string {
	if words == "" {
		return "nothing"
	}
	return words
}

func (w *writer) id() int64 {
	if w.e.ProjectID == nil || w.name == nil || w.name(*w.e.ProjectID) == "" {
		return 0
	}
	return *w.e.ProjectID
}

// update tells of changed fields.
func (w *writer) update(n *noun) {
	if n.special != nil && n.special(w, n) {
		return
	}
	switch len(w.e.Changes) {
	case 0:
		w.say(" changed " + n.of)
	case 1:
		w.oneField(n, &w.e.Changes[0])
	default:
		w.say(" changed ")
		w.text(w.fieldList(w.e.Changes))
		w.say(" of " + n.of)
	}
}

// fieldList names the fields of changes, or says how many they are.
func (w *writer) fieldList(changes []client.AuditChange) string {
	if len(changes) > maxNamed {
		return strconv.Itoa(len(changes)) + " values"
	}
	var b strings.Builder
	for i := range changes {
		switch {
		case i == 0:
		case i == len(changes)-1:
			b.WriteString(" and ")
		default:
			b.WriteString(", ")
		}
		b.WriteString(w.label(changes[i].Field))
	}
	return b.String()
}

// oneField tells of the only changed field, with its values if they are short.
func (w *writer) oneField(n *noun, c *client.AuditChange) {
	label, was, is := w.label(c.Field), value(c.Before), value(c.After)
	switch {
	case string(c.After) == "true" || string(c.After) == "false":
		w.say(" turned ")
		w.text(label + map[bool]string{true: " on", false: " off"}[string(c.After) == "true"])
		w.say(" in " + n.of)
	case c.Secret || !fits(was) || !fits(is):
		w.say(" changed ")
		w.text(label)
		w.say(" of " + n.of)
	case is == "":
		w.say(" cleared ")
		w.text(label)
		w.say(" of " + n.of + ", before: ")
		w.text(was)
	case was == "":
		w.say(" set ")
		w.text(label)
		w.say(" of " + n.of + " to ")
		w.text(is)
	default:
		w.say(" changed ")
		w.text(label)
		w.say(" of " + n.of + " from ")
		w.text(was + " to " + is)
	}
}

// label returns what people call a field of the entry's object, in quotation marks.
func (w *writer) label(field string) string {
	noun, _, _ := strings.Cut(w.e.Action, ".")
	return "“" + Label(catalog.KindOfNoun(noun), field, field) + "”"
}

// Label returns what people call a field of a kind of object, other if it has no name for them.
func Label(kind catalog.Kind, field, other string) string {
	if f := catalog.FieldOf(kind, field); f != nil && f.Label != "" {
		return f.Label
	}
	return other
}

func fits(s string) bool { return len([]rune(s)) <= maxValue && !strings.ContainsAny(s, "\r\n") }

// short returns the beginning of a text that is too long for a sentence.
func short(s string) string {
	if r := []rune(s); len(r) > maxValue {
		return string(r[:maxValue]) + "…"
	}
	return s
}

// value returns a value of the trail as people read it; null is "".
func value(raw json.RawMessage) string {
	var v any
	if len(raw) == 0 || json.Unmarshal(raw, &v) != nil {
		return ""
	}
	switch v := v.(type) {
	case nil:
		return ""
	case bool:
		if v {
			return "yes"
		}
		return "no"
	case string:
		return v
	case []any:
		words := make([]string, len(v))
		for i := range v {
			words[i] = fmt.Sprint(v[i])
		}
		return strings.Join(words, ", ")
	case map[string]any:
		var words []string
		for _, name := range slices.Sorted(maps.Keys(v)) {
			words = append(words, name+"="+fmt.Sprint(v[name]))
		}
		return strings.Join(words, ", ")
	}
	return string(raw) // a number
}

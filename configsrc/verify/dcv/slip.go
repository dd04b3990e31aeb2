package dcv

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// StrayNames returns the names at which a subject's record may stand by mistake, and none of the ways': the name itself,
// the top of the zone (apex, "" if it is not known), the label there, the label without its underscore, and the labels of
// other scopes.
func StrayNames(s Subject, apex string, ways []Way) (names []string) {
	name := strings.TrimPrefix(s.Name, "*.")
	label := labels[ScopeExact]
	if name != s.Name {
		label = labels[ScopeWildcard]
	}
	names = []string{name, strings.TrimPrefix(label, "_") + name, labels[ScopeExact] + name, labels[ScopeWildcard] + name}
	if apex != "" && apex != name {
		names = append(names, apex, label+apex)
	}
	return slices.DeleteFunc(names, func(name string) bool {
		return slices.ContainsFunc(ways, func(w Way) bool { return w.Type == "TXT" && w.Name == name })
	})
}

// atOtherLabel reports whether a name has the label of a scope, at the subject's name.
func (s *sight) atOtherLabel(name string) bool {
	for _, label := range labels {
		if name == label+strings.TrimPrefix(s.st.Subject.Name, "*.") {
			return true
		}
	}
	return false
}

// strayAt returns values with the token of a way, at the label of another scope or elsewhere; nil: there are none, or a
// proof is in place.
func (s *sight) strayAt(otherLabel bool) (*Stray, *Way) {
	if s.proven {
		return nil, nil
	}
	for i := range s.facts.Zone.Strays {
		stray := &s.facts.Zone.Strays[i]
		if s.atOtherLabel(stray.Name) != otherLabel {
			continue
		}
		for j := range s.ways {
			w := &s.ways[j]
			has := func(value string) bool { return strings.Contains(strings.ToLower(value), w.Token) }
			if w.Type == "TXT" && slices.ContainsFunc(stray.Values, has) {
				return stray, w
			}
		}
	}
	return nil, nil
}

func atTheName(s *sight) (message, line string) {
	stray, w := s.strayAt(false)
	if w == nil {
		return "", ""
	}
	return fmt.Sprintf("The record stands at %s. It belongs at %s, with the underscore.", stray.Name, w.Name), w.line()
}

// assignment finds a token that may be cut off, with what people put in the place of the equals sign.
var assignment = regexp.MustCompile(`(?i)token\s*[=:]?\s*([a-z2-7]{8,})`)

func valueSpoilt(s *sight) (message, line string) {
	if s.proven {
		return "", ""
	}
	s.txtValues(func(w *Way, value string) bool {
		if w.proves([]string{value}) || ProvesTXT(unquote.Replace(value), w.Token) {
			return false // a proof, or one with quotation marks: see quotedTwice
		}
		spoilt := strings.Contains(strings.ToLower(value), w.Token)
		if found := assignment.FindStringSubmatch(value); found != nil {
			spoilt = spoilt || strings.HasPrefix(w.Token, strings.ToLower(found[1]))
		}
		if !spoilt {
			return false
		}
		message = fmt.Sprintf("The value of %s is %.200q, and must be %q.", w.Name, value, w.value())
		line = w.line()
		return true
	})
	return message, line
}

package dcv

import (
	"slices"
	"strings"
)

// proves reports whether the values of w's record, as a server gave them, prove w.
func (w *Way) proves(values []string) bool {
	if w.Type == "CNAME" {
		return len(values) == 1 && canonical(values[0]) == w.Target
	}
	for _, value := range values {
		if ProvesTXT(value, w.Token) {
			return true
		}
	}
	return false
}

// ProvesTXT reports whether the value of a TXT record, its strings joined, has the field token=<token>.
func ProvesTXT(value, token string) bool {
	want := "token=" + token
	return strings.Contains(value, want) && // most values are not ours, and hostile ones are long
		slices.Contains(fields(value), want)
}

// fields splits a TXT record's value at blanks and semicolons. Double quotes around the value, which some forms for
// records add, are not part of it.
func fields(value string) []string {
	value = strings.Trim(value, blanks)
	if len(value) >= 2 && value[0] == '"' && value[len(value)-1] == '"' {
		value = value[1 : len(value)-1]
	}
	return strings.FieldsFunc(value, func(r rune) bool { return r == ';' || strings.ContainsRune(blanks, r) })
}

const blanks = " \t\r\n"

// canonical is the form of a host name that compares: lower case, without the trailing dot.
func canonical(host string) string { return strings.ToLower(strings.TrimSuffix(host, ".")) }

// A verdict is what the answers say about a proof.
type verdict int

const (
	undecided verdict = iota
	hit               // a server has the proof, and no server answers definitely without it
	miss              // all servers answer definitely, none with the proof
)

// judge returns the verdict on all ways together, whether servers disagree about a proof, and the way that is a hit.
func judge(ways []Way, proofs []Finding) (v verdict, spreading bool, by *Way) {
	misses := 0
	for i := range ways {
		with, without, open := count(&ways[i], proofs)
		switch {
		case with > 0 && without == 0:
			return hit, false, &ways[i]
		case with > 0:
			spreading = true
		case without > 0 && open == 0:
			misses++
		}
	}
	if misses == len(ways) && misses > 0 {
		return miss, false, nil
	}
	return undecided, spreading, nil
}

// Proves reports whether facts prove one of the ways.
func Proves(ways []Way, f *Facts) bool {
	v, _, _ := judge(ways, f.Proofs)
	return v == hit
}

// count returns how many servers answer with w's proof, definitely without it, and not definitely.
func count(w *Way, proofs []Finding) (with, without, open int) {
	f := find(proofs, w.Type, w.Name)
	if f == nil || f.Error != "" {
		return 0, 0, 1
	}
	for i := range f.Answers {
		switch answer := &f.Answers[i]; {
		case !answer.Definite():
			open++
		case w.proves(answer.Values):
			with++
		default:
			without++
		}
	}
	return with, without, open
}

// find returns the finding about a record; nil if it was not asked for.
func find(findings []Finding, kind, name string) *Finding {
	for i := range findings {
		if findings[i].Type == kind && findings[i].Name == name {
			return &findings[i]
		}
	}
	return nil
}

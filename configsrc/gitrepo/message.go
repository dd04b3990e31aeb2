package gitrepo

import (
	"cmp"
	"fmt"
	"net/mail"
	"strings"
	"time"
	"unicode"

	"fingerpost/resolver/catalog"
)

// maxSubject is the length of a commit's first line, in characters.
const maxSubject = 72

// authorOf returns the variables of the author of a write: whom the client acts for, else its key.
func (r *Repo) authorOf(w *pendingWrite, at time.Time) []string {
	name, address := r.identityOfAuthor(w.Author)
	return identity("AUTHOR", name, address, fmt.Sprintf("%d +0000", at.Unix()))
}

func (r *Repo) identityOfAuthor(by catalog.Author) (name, address string) {
	if a, err := mail.ParseAddress(by.Actor); err == nil {
		return cmp.Or(a.Name, a.Address), a.Address
	}
	key := cmp.Or(by.Key, "fingerpost")
	return key, key + "@" + r.o.Domain
}

func identity(who, name, address, date string) []string {
	return []string{"GIT_" + who + "_NAME=" + nameOnly(name), "GIT_" + who + "_EMAIL=" + nameOnly(address), "GIT_" + who +
		"_DATE=@" + date}
}

// nameOnly takes out what git gives a meaning to in the line of an author.
func nameOnly(s string) string {
	s = strings.Map(func(r rune) rune {
		if r == '<' || r == '>' || unicode.IsControl(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
	if strings.Trim(s, " .,:;\"'\\") == "" {
		return "unknown"
	}
	return s
}

// message makes the message of a commit with the writes.
func message(writes []*pendingWrite) string { return messageWith(writes, "", nil) }

// messageWith is message with a text after the first line, and with those who have approved of the commit as trailers.
func messageWith(writes []*pendingWrite, text string, approved []Approval) string {
	var lines []string
	seen := map[string]bool{}
	for _, w := range writes {
		line := oneLine(cmp.Or(w.Message, w.Subject), 500)
		if !seen[line] {
			seen[line] = true
			lines = append(lines, line)
		}
	}
	var b strings.Builder
	if len(lines) == 1 {
		b.WriteString(oneLine(lines[0], maxSubject) + "\n")
	} else {
		more := fmt.Sprintf(" (and %d more)", len(lines)-1)
		b.WriteString(oneLine(lines[0], maxSubject-len(more)) + more + "\n")
	}
	if len(lines) > 1 || oneLine(lines[0], maxSubject) != lines[0] {
		b.WriteString("\n")
		for _, line := range lines {
			b.WriteString("- " + line + "\n")
		}
	}
	b.WriteString("\n")
	if text != "" {
		b.WriteString(text + "\n\n")
	}
	said := withoutEnds(b.String())
	b.Reset()
	b.WriteString(said)
	generation := uint64(0)
	for _, w := range writes {
		generation = max(generation, w.Generation)
	}
	trailer := func(name, value string) {
		if value != "" {
			b.WriteString(name + ": " + oneLine(value, 300) + "\n")
		}
	}
	for _, a := range approved {
		trailer("Approved-by", a.By)
	}
	trailer("Fingerpost-Key", writes[0].Author.Key)
	for _, w := range writes {
		trailer("Fingerpost-Request", w.Author.RequestID)
	}
	if generation > 0 {
		trailer("Fingerpost-Generation", fmt.Sprint(generation))
	}
	return b.String()
}

// withoutEnds indents the lines of a text at which git takes a message to end: it would read the trailers before them,
// which are the author's of the text, and not ours behind it.
func withoutEnds(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, "---") || strings.Contains(line, "- >8 -") {
			lines[i] = " " + line
		}
	}
	return strings.Join(lines, "\n")
}

// oneLine makes one line of printable text, of at most n characters.
func oneLine(s string, n int) string {
	s = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(s, "\uFFFD"),
		func(r rune) bool { return unicode.IsControl(r) || unicode.IsSpace(r) }), " ")
	if s == "" {
		s = "change"
	}
	if runes := []rune(s); len(runes) > n {
		return string(runes[:n-1]) + "…"
	}
	return s
}

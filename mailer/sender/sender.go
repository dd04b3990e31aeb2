package sender

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"fingerpost/resolver/catalog"
	"fingerpost/resolver/hostname"
)

// The levels of a Line, and the states of a Result, which is never Note.
const (
	OK      = "ok"
	Note    = "note"
	Unknown = "unknown" // DNS did not answer
	Warning = "warning"
	Error   = "error"
)

// The checks.
const (
	CheckFrom  = "from"
	CheckMX    = "mx"
	CheckSPF   = "spf"
	CheckDKIM  = "dkim"
	CheckDMARC = "dmarc"
	CheckPTR   = "ptr"
)

// A Line is one finding.
type Line = catalog.SenderLine

// A Sender is what decides how mail of a project is judged.
type Sender struct {
	From      string     // the address
	Include   string     // what SPF must include for the relay; "": not said
	Selectors []string   // of the relay's DKIM keys; nil: not said
	OneClick  bool       // some template has a category, so its mail carries List-Unsubscribe
	Address   netip.Addr // from which the relay sends; zero: not known
}

// SenderOf returns the sender of the SMTP config in force. oneClick says whether a template of the project has a category.
func SenderOf(c *catalog.SMTPConfig, oneClick bool) Sender {
	return Sender{From: c.FromEmail, Include: c.SPFInclude, Selectors: c.DKIMSelectors, OneClick: oneClick}
}

// Domain returns the domain of From, in A-labels.
func (s *Sender) Domain() (string, error) {
	return hostname.Parse(s.From[strings.LastIndexByte(s.From, '@')+1:])
}

// DNS asks for the records of a name: values of TXT records with their strings joined, "10 mx.acme.example" of MX, names
// and addresses of the others, along CNAMEs. exists is false if there is no such name. An error: DNS did not answer.
type DNS interface {
	Ask(kind, name string) (values []string, exists bool, err error)
}

// Examine asks DNS about a sender. The order of the lines is that of the checks.
func Examine(dns DNS, s Sender) []Line {
	e := &examination{dns: dns, sender: s}
	domain, err := s.Domain()
	if err != nil {
		e.say(Error, CheckFrom, "", "the address %q in From: has no domain that can be asked for: %v", s.From, err)
		return e.lines
	}
	if e.domain = domain; !e.from() {
		return e.lines
	}
	e.mx()
	spf := e.spf()
	dkim := e.dkim()
	e.dmarc(spf, dkim)
	e.oneClick()
	e.ptr()
	return e.lines
}

// An examination is one Examine.
type examination struct {
	dns    DNS
	sender Sender
	domain string
	lines  []Line
}

// say adds a line. record is the record to set, "" for none.
func (e *examination) say(level, check, record, format string, args ...any) {
	l := Line{Level: level, Check: check, Message: fmt.Sprintf(format, args...)}
	if record != "" {
		l.Record = &record
	}
	e.lines = append(e.lines, l)
}

// unknown adds a line about a question without an answer.
func (e *examination) unknown(check, kind, name string, err error) {
	e.say(Unknown, check, "", "DNS did not answer for %s %s: %v", name, kind, err)
}

// txt returns the record of a name as zone files have it. Long texts are several strings there (RFC 1035 3.3.14).
func txt(name, text string) string {
	var b strings.Builder
	b.WriteString(name + ". TXT")
	for part := range slices.Chunk([]byte(text), 255) {
		fmt.Fprintf(&b, " \"%s\"", part)
	}
	return b.String()
}

// A can says whether mail can pass a check of receivers.
type can uint8

const (
	maybe can = iota // not known
	yes
	no
)

// rank orders the levels by how bad they are.
func rank(level string) int { return slices.Index([]string{OK, Note, Unknown, Warning, Error}, level) }

// StateOf returns the worst level of the lines that is a state. Without lines it is Unknown.
func StateOf(lines []Line) string {
	worst := Unknown
	for i, l := range lines {
		if level := l.Level; i == 0 || rank(level) > rank(worst) {
			worst = level
		}
	}
	if worst == Note {
		worst = OK
	}
	return worst
}

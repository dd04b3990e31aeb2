package sender

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"fingerpost/resolver/catalog"
)

// Received is what the server that has taken a test mail says of it.
type Received = catalog.SenderHeaders

// The headers of one-click unsubscribe (RFC 8058).
const (
	unsubscribe     = "List-Unsubscribe"
	unsubscribePost = "List-Unsubscribe-Post"
)

const (
	resultsHeader  = "authentication-results"
	signature      = "dkim-signature"
	maxReceived    = 256 << 10 // bytes of a mail that are read
	maxResults     = 50
	maxResultBytes = 200
)

// ReadReceived reads the headers of a received mail, or a whole mail. It believes the topmost Authentication-Results and
// those of the same server right below it: whoever sent the mail may have written the others. Nothing that it returns
// has control characters.
func ReadReceived(mail string) Received {
	all := headers(mail)
	r := Received{State: Error, Lines: []Line{}, Mail: oneClickIn(all), Others: []string{}}
	believed := true
	for _, h := range all {
		if h.name != resultsHeader {
			believed = believed && r.Server == ""
			continue
		}
		server, results := parseResults(h.value)
		switch {
		case server == "":
		case believed && (r.Server == "" || r.Server == server):
			r.Server = server
			r.Lines = append(r.Lines, results...)
		default:
			believed = false
			if !slices.Contains(r.Others, server) && len(r.Others) < maxResults {
				r.Others = append(r.Others, server)
			}
		}
	}
	if r.Lines = r.Lines[:min(len(r.Lines), maxResults)]; r.Server != "" {
		r.Lines = oneSignature(r.Lines)
		r.State = StateOf(append(slices.Clone(r.Lines), r.Mail...))
	}
	return r
}

// oneClickIn says whether receivers offer the one-click link of a mail: it and its mark must be under one signature
// (RFC 8058 4). Whether a signature is valid is what the server says. A mail without a link has no line.
func oneClickIn(mail []header) []Line {
	link, post, signatures := false, false, 0
	var best []string // what the signature that covers most does not cover
	for _, h := range mail {
		switch h.name {
		case strings.ToLower(unsubscribe):
			link = true
		case strings.ToLower(unsubscribePost):
			post = true
		case signature:
			if missing := notSigned(h.value); signatures == 0 || len(missing) < len(best) {
				best = missing
			}
			signatures++
		}
	}
	warn := func(format string, args ...any) []Line {
		return []Line{{Level: Warning, Check: CheckDKIM, Message: fmt.Sprintf(format, args...)}}
	}
	switch {
	case !link:
		return []Line{}
	case !post:
		return warn("the mail has %s without %s: it offers no unsubscribe with one click", unsubscribe, unsubscribePost)
	case signatures == 0:
		return warn("the mail has %s and no DKIM signature: receivers offer no unsubscribe with one click", unsubscribe)
	case len(best) > 0:
		return warn("no DKIM signature of the mail covers both %s and %s (h= lacks %s): receivers offer no unsubscribe with "+
			"one click until the relay signs them", unsubscribe, unsubscribePost, strings.Join(best, " and "))
	}
	return []Line{{Level: OK, Check: CheckDKIM, Message: fmt.Sprintf("a DKIM signature covers %s and %s", unsubscribe,
		unsubscribePost)}}
}

// notSigned lists which of the headers of one-click unsubscribe a DKIM-Signature does not cover.
func notSigned(value string) (missing []string) {
	tags, _, _ := parseTags(value)
	signed := splitTrim(tags["h"])
	for _, name := range []string{unsubscribe, unsubscribePost} {
		if !slices.Contains(signed, strings.ToLower(name)) {
			missing = append(missing, name)
		}
	}
	return missing
}

// oneSignature makes failed signatures notes where another one has passed: receivers want one.
func oneSignature(lines []Line) []Line {
	good := slices.ContainsFunc(lines, func(l Line) bool { return l.Check == CheckDKIM && l.Level == OK })
	for i := range lines {
		if l := &lines[i]; good && l.Check == CheckDKIM && l.Level != OK {
			l.Level = Note
		}
	}
	return lines
}

// A header is a field, with its name in lower case and its value on one line.
type header struct{ name, value string }

// headers splits the head of a mail. It takes as long as the head is, however many lines a field has.
func headers(mail string) (list []header) {
	mail = strings.TrimLeft(mail[:min(len(mail), maxReceived)], "\r\n\ufeff")
	var more []string // lines of the last field
	end := func() {
		if n := len(list); n > 0 && more != nil {
			list[n-1].value = strings.Join(append([]string{list[n-1].value}, more...), " ")
		}
		more = nil
	}
	for line := range strings.Lines(mail) {
		line = strings.TrimRight(line, "\r\n")
		if line == "" {
			break
		}
		if line[0] == ' ' || line[0] == '\t' {
			more = append(more, strings.TrimSpace(line))
			continue
		}
		end()
		if name, value, is := strings.Cut(line, ":"); is {
			list = append(list, header{strings.ToLower(strings.TrimSpace(name)), strings.TrimSpace(value)})
		}
	}
	end()
	return list
}

// parseResults reads one header (RFC 8601 2.2). server is "" if it cannot be read.
func parseResults(value string) (server string, lines []Line) {
	parts := splitResults(value)
	words := parts[0]
	if len(words) == 0 {
		return "", nil
	}
	server = clean(words[0])
	for _, words := range parts[1:] {
		if len(words) == 0 {
			continue
		}
		method, result, is := strings.Cut(words[0], "=")
		method, _, _ = strings.Cut(method, "/")
		if method, result = strings.ToLower(method), strings.ToLower(result); is {
			lines = append(lines, resultLine(method, result, words[1:]))
		}
	}
	return server, lines
}

// resultLine is the line of a method's result.
func resultLine(method, result string, properties []string) Line {
	level := Warning
	switch result {
	case "pass":
		level = OK
	case "fail", "hardfail", "permerror":
		level = Error
	case "temperror":
		level = Unknown
	}
	if !slices.Contains([]string{CheckSPF, CheckDKIM, CheckDMARC}, method) && level != OK {
		level = Note // such as arc, iprev
	}
	text := fmt.Sprintf("%s is %s", clean(method), clean(result))
	for _, p := range properties[:min(len(properties), 5)] {
		text += ", " + clean(p)
	}
	return Line{Level: level, Check: clean(method), Message: text}
}

// splitResults splits a header at semicolons, and each part into words, without comments; a quoted text belongs to its
// word.
func splitResults(value string) [][]string {
	parts := [][]string{nil}
	var word strings.Builder
	end := func() {
		if n := len(parts) - 1; word.Len() > 0 {
			parts[n] = append(parts[n], word.String())
			word.Reset()
		}
	}
	depth, quoted, escaped := 0, false, false
	for _, c := range value {
		switch {
		case escaped:
			if escaped = false; depth == 0 {
				word.WriteRune(c)
			}
		case c == '\\' && (quoted || depth > 0):
			escaped = true
		case c == '"' && depth == 0:
			quoted = !quoted
		case quoted:
			word.WriteRune(c)
		case c == '(':
			depth++
		case c == ')' && depth > 0:
			depth--
		case depth > 0:
		case c == ';':
			end()
			parts = append(parts, nil)
		case unicode.IsSpace(c):
			end()
		default:
			word.WriteRune(c)
		}
	}
	end()
	return parts
}

// clean makes a text of a stranger fit for a terminal.
func clean(text string) string {
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
	n := 0
	for i := range text {
		if n++; n > maxResultBytes {
			return text[:i] + "…"
		}
	}
	return text
}

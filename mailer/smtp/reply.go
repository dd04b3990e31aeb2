package smtp

import (
	"encoding/base64"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// maxReplyText is how many characters of a server's reply are passed on.
const maxReplyText = 200

// withheld replaces a reply that contains a secret.
const withheld = "(withheld: it repeats a secret)"

var enhancedCode = regexp.MustCompile(`^([245]\.\d{1,3}\.\d{1,3})(?:\s+|$)`)

// clean splits the enhanced status code (RFC 3463) off a reply, and makes the text fit for people and logs: one line,
// printable, of limited length. A reply that repeats a secret, in clear or as AUTH encodes it, is withheld.
func (a *attempt) clean(reply string) (enhanced, text string) {
	lines := strings.Split(reply, "\n")
	for i, line := range lines {
		if m := enhancedCode.FindStringSubmatch(line); m != nil {
			enhanced, lines[i] = m[1], line[len(m[0]):]
		}
	}
	joined := strings.ToValidUTF8(strings.Join(lines, " "), "?")
	text = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r):
			return '?'
		}
		return r
	}, joined)
	text = strings.TrimSpace(text)
	for _, secret := range a.secrets() {
		if repeats(reply, secret) || repeats(strings.Join(lines, ""), secret) || repeats(text, secret) {
			return enhanced, withheld
		}
	}
	n := 0
	for i := range text {
		if n++; n > maxReplyText {
			return enhanced, text[:i]
		}
	}
	return enhanced, text
}

// secrets lists what no reply may show.
func (a *attempt) secrets() []string {
	list := []string{a.server.Password, a.server.OAuth.Secret}
	if a.session != nil {
		list = append(list, a.session.token)
	}
	return list
}

// repeats reports whether a text contains a secret, in clear or in base64, at any position of the answer to AUTH.
func repeats(text, secret string) bool {
	if secret == "" || text == "" {
		return false
	}
	if strings.Contains(strings.ToLower(text), strings.ToLower(secret)) || strings.Contains(text, secret) {
		return true
	}
	for before := range 3 {
		// Only the base64 characters that depend on the secret alone, not on the bytes next to it.
		encoded := base64.RawStdEncoding.EncodeToString([]byte(strings.Repeat("\x00", before) + secret))
		encoded = encoded[[...]int{0, 2, 3}[before]:]
		if (before+len(secret))%3 != 0 {
			encoded = encoded[:len(encoded)-1]
		}
		if len(encoded) >= 3 && strings.Contains(text, encoded) {
			return true
		}
	}
	return false
}

// maxHint is the longest wait that a server may ask for.
const maxHint = time.Hour

var (
	hintWords = regexp.MustCompile(`(?i)\b(?:in|for|after|wait)\s+(\d{1,6})\s*(s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?)\b`)
	hintClock = regexp.MustCompile(`\b(?:in|for|after|wait)\s+(\d{1,2}):(\d\d):(\d\d)\b`)
)

// retryHint returns how long a 4xx reply asks to wait ("try again in 300 seconds", "come back in 00:04:59"), at most
// maxHint; 0 if it does not say. The class of a reply never depends on its text.
func retryHint(reply string) time.Duration {
	var d time.Duration
	if m := hintWords.FindStringSubmatch(reply); m != nil {
		n, _ := strconv.Atoi(m[1])
		unit := map[byte]time.Duration{'s': time.Second, 'm': time.Minute, 'h': time.Hour}[m[2][0]|0x20]
		d = time.Duration(n) * unit
	} else if m := hintClock.FindStringSubmatch(reply); m != nil {
		for i, unit := range []time.Duration{time.Hour, time.Minute, time.Second} {
			n, _ := strconv.Atoi(m[i+1])
			d += time.Duration(n) * unit
		}
	}
	return min(d, maxHint)
}

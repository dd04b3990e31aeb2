package say

import (
	"strings"
	"time"

	"fingerpost/resolver/catalog"
)

// Ago says how long ago a time was: "just now" within a minute, and also if it is yet to come.
func Ago(t, now time.Time) string {
	if d := now.Sub(t); d >= time.Minute {
		return catalog.Span(d) + " ago"
	}
	return "just now"
}

// Until says how far away a time is, "now" if it has passed.
func Until(t, now time.Time) string {
	switch d := t.Sub(now); {
	case d <= 0:
		return "now"
	case d < time.Minute:
		return "in less than a minute"
	default:
		return "in " + catalog.Span(d)
	}
}

// AsSentence writes a message of the API, which begins with a small letter and ends without a stop, as a sentence of a page.
// A first word that is a name, such as jwt_secret, stays as it is.
func AsSentence(message string) string {
	first, _, _ := strings.Cut(message, " ")
	if first != "" && strings.Trim(first, "abcdefghijklmnopqrstuvwxyz,") == "" {
		message = strings.ToUpper(message[:1]) + message[1:]
	}
	if message != "" && !strings.ContainsAny(message[len(message)-1:], ".!?:") {
		message += "."
	}
	return message
}

// A mark is what a User-Agent header has of a browser or a system. The first one decides: most browsers also name those
// that they are compatible with.
type mark struct{ text, name string }

var (
	browsers = []mark{{"Edg/", "Edge"}, {"EdgA/", "Edge"}, {"EdgiOS/", "Edge"}, {"OPR/", "Opera"},
		{"SamsungBrowser/", "Samsung Internet"}, {"Firefox/", "Firefox"}, {"FxiOS/", "Firefox"}, {"CriOS/", "Chrome"},
		{"HeadlessChrome/", "Chrome without a window"}, {"Chromium/", "Chromium"}, {"Chrome/", "Chrome"},
		{"Safari/", "Safari"}, {"curl/", "curl"}}
	systems = []mark{{"Android", "Android"}, {"iPhone", "an iPhone"}, {"iPad", "an iPad"}, {"Windows", "Windows"},
		{"CrOS", "ChromeOS"}, {"Mac OS X", "macOS"}, {"Linux", "Linux"}, {"FreeBSD", "FreeBSD"}, {"OpenBSD", "OpenBSD"}}
)

// Browser says which browser sent a User-Agent header, and on which system. The words are the package's own: nothing of
// the header is in them.
func Browser(agent string) string {
	browser, system := first(browsers, agent), first(systems, agent)
	switch {
	case agent == "":
		return "a program that gives no name"
	case browser == "":
		browser = "an unknown browser"
	}
	if system == "" {
		return browser
	}
	return browser + " on " + system
}

func first(marks []mark, agent string) string {
	for _, m := range marks {
		if strings.Contains(agent, m.text) {
			return m.name
		}
	}
	return ""
}

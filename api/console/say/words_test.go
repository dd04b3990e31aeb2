package say_test

import (
	"testing"
	"time"

	"fingerpost/api/console/say"
)

func TestSentence(t *testing.T) {
	for message, want := range map[string]string{"": "", "no such template": "No such template.", "Already one.": "Already one.",
		"jwt_secret is required": "jwt_secret is required.", "host: say one": "host: say one.", "read projects.d/a: no": "Read projects.d/a: no.",
		"already, or not?": "Already, or not?", "é is no letter": "é is no letter.", "5 mails wait": "5 mails wait."} {
		if got := say.AsSentence(message); got != want {
			t.Errorf("%q is written %q, want %q", message, got, want)
		}
	}
}

func TestTimes(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	const day = 24 * time.Hour
	for d, want := range map[time.Duration]string{
		-time.Hour: "just now", 0: "just now", 59 * time.Second: "just now", time.Minute: "1 minute ago",
		119 * time.Minute: "1 hour ago", 23 * time.Hour: "23 hours ago", day: "1 day ago", 59 * day: "59 days ago",
		60 * day: "2 months ago", 364 * day: "12 months ago", 365 * day: "1 year ago", 800 * day: "2 years ago",
	} {
		if got := say.Ago(now.Add(-d), now); got != want {
			t.Errorf("%v ago: %s, want %s", d, got, want)
		}
	}
	for d, want := range map[time.Duration]string{
		-time.Hour: "now", time.Second: "in less than a minute", time.Minute: "in 1 minute", 13 * day: "in 13 days",
	} {
		if got := say.Until(now.Add(d), now); got != want {
			t.Errorf("in %v: %s, want %s", d, got, want)
		}
	}
}

func TestBrowser(t *testing.T) {
	for agent, want := range map[string]string{
		"Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0":                                                                  "Firefox on Linux",
		"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36 Edg/126.0.0.0":           "Edge on Windows",
		"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36":                         "Chrome on Windows",
		"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.5 Safari/605.1.15":                   "Safari on macOS",
		"Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.5 Mobile/15E148 Safari/604.1": "Safari on an iPhone",
		"Mozilla/5.0 (Linux; Android 14) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Mobile Safari/537.36":                            "Chrome on Android",
		"curl/8.5.0":             "curl",
		"":                       "a program that gives no name",
		"<script>":               "an unknown browser",
		"Something new on Linux": "an unknown browser on Linux",
	} {
		if got := say.Browser(agent); got != want {
			t.Errorf("%s: %s, want %s", agent, got, want)
		}
	}
}

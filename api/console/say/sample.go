package say

import "strings"

// samples are what the last word of a variable's name usually stands for.
var samples = []struct{ word, value string }{
	{"email", "ada@example.com"}, {"mail", "ada@example.com"}, {"name", "Ada Lovelace"}, {"user", "Ada Lovelace"},
	{"url", "https://example.com/"}, {"link", "https://example.com/"}, {"code", "483920"}, {"otp", "483920"},
	{"pin", "483920"}, {"token", "483920"}, {"date", "31 January 2026"}, {"time", "9:30"}, {"minutes", "15"},
	{"hours", "24"}, {"days", "7"}, {"count", "3"}, {"amount", "42.00"}, {"price", "42.00"}, {"total", "42.00"},
}

// Sample returns a value that a template's variable may have, so that a preview looks like a mail: "Ada Lovelace" for
// userName, and the name itself where it says nothing.
func Sample(variable string) string {
	name := strings.ToLower(variable)
	for _, s := range samples {
		if strings.HasSuffix(name, s.word) {
			return s.value
		}
	}
	return variable
}

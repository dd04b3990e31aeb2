package sender

import "strings"

// parseTags reads a list of tags as records of DKIM and DMARC have it (RFC 6376 3.2). ok is false if it is none. A tag
// that is there twice makes it none, too.
func parseTags(text string) (tags map[string]string, first string, ok bool) {
	tags = map[string]string{}
	for part := range strings.SplitSeq(text, ";") {
		name, value, is := strings.Cut(part, "=")
		name = strings.TrimSpace(name)
		switch _, twice := tags[name]; {
		case strings.TrimSpace(part) == "":
			continue
		case !is || name == "" || twice:
			return nil, "", false
		case first == "":
			first = name
		}
		tags[name] = strings.TrimSpace(value)
	}
	return tags, first, len(tags) > 0
}

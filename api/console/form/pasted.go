package form

import (
	"net/url"
	"slices"
	"strings"

	"fingerpost/configsrc/hclfile"
)

// around are the characters that stand around a pasted address and are no part of it.
const around = "\"'`<>()[]{},;:!?…“”„‚‘’«»| \t\r\n\u00a0\u200b\u200e\u200f\ufeff"

// Host returns the domain in a pasted text: in a URL, host:port or a mail address, with blanks and brackets around it.
// It is in lower case and without a dot at its end. A text without a domain comes back trimmed, for the API to refuse.
func Host(text string) string {
	whole := strings.Trim(text, around)
	for _, word := range strings.Fields(whole) { // "see https://shop.example/cart, please"
		if word = strings.Trim(word, around); strings.Contains(word, "://") ||
			strings.Contains(strings.Trim(word, "."), ".") {
			whole = word
			break
		}
	}
	if u, err := url.Parse(whole); err == nil && u.Host != "" {
		whole = u.Host
	}
	if _, rest, found := strings.Cut(whole, "://"); found { // a URL that is none to a parser
		whole = rest
	}
	if at := strings.IndexAny(whole, "/?#\\"); at >= 0 {
		whole = whole[:at]
	}
	whole = whole[strings.LastIndexByte(whole, '@')+1:]
	if host, port, found := strings.Cut(whole, ":"); found && strings.Trim(port, "0123456789") == "" {
		whole = host
	}
	whole = strings.Trim(whole, around)
	return strings.ToLower(strings.TrimRight(whole, ".。"+around))
}

// MinPiece is the shortest text that is worth a search.
const MinPiece = 3

// Pieces returns what to search for to find the names that are near to a host: the names above it, and both halves of
// its labels. A typing error is in one half of a label, so that the other one finds the name.
func Pieces(host string) (pieces []string) {
	add := func(piece string) {
		if len(piece) >= MinPiece && !slices.Contains(pieces, piece) {
			pieces = append(pieces, piece)
		}
	}
	labels := strings.Split(host, ".")
	if len(labels) > 2 {
		add(strings.Join(labels[1:], "."))
	}
	if len(labels) > 1 {
		labels = labels[:len(labels)-1] // the last one is everybody's
	}
	if len(labels) > maxLabels {
		labels = labels[len(labels)-maxLabels:]
	}
	for _, l := range labels {
		if half := len(l) / 2; half >= MinPiece {
			add(l[:half])
			add(l[half:])
		} else {
			add(l)
		}
	}
	return pieces
}

// maxLabels bounds the searches for one host.
const maxLabels = 3

// Near returns the names that a host was probably meant to be, the nearest first, and then those below the same name;
// at most so many. Wildcards are no such names: they would have matched.
func Near(host string, names []string, most int) (near []string) {
	var left []string
	for _, n := range names {
		if !strings.HasPrefix(n, "*.") && n != host && !slices.Contains(left, n) {
			left = append(left, n)
		}
	}
	take := func(n string) {
		near = append(near, n)
		left = slices.DeleteFunc(left, func(o string) bool { return o == n })
	}
	for len(near) < most {
		best := hclfile.Nearest(host, left)
		if best == "" {
			break
		}
		take(best)
	}
	_, above, _ := strings.Cut(host, ".")
	for _, n := range slices.Clone(left) {
		if len(near) < most && strings.Contains(above, ".") && (n == above || strings.HasSuffix(n, "."+above)) {
			take(n)
		}
	}
	return near
}

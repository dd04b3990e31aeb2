package catalog

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// unmarked replaces the letters that have no decomposition into a plain letter and a mark.
var unmarked = strings.NewReplacer("ß", "ss", "ẞ", "ss", "ø", "o", "Ø", "o", "æ", "ae", "Æ", "ae", "œ", "oe", "Œ", "oe",
	"ł", "l", "Ł", "l", "đ", "d", "Đ", "d", "ı", "i")

// withoutMarks removes accents and umlauts: they are marks of their own in the decomposed form.
func withoutMarks(text string) string {
	return strings.Map(func(c rune) rune {
		if unicode.Is(unicode.Mn, c) {
			return -1
		}
		return c
	}, norm.NFKD.String(text))
}

// SlugOf makes a slug from a name, "" if no character of the name can be in a slug.
func SlugOf(name string) string {
	plain := strings.ToLower(withoutMarks(unmarked.Replace(name)))
	words := strings.FieldsFunc(plain, func(c rune) bool { return !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9') })
	slug := strings.Join(words, "-")
	return strings.TrimRight(slug[:min(len(slug), MaxSlugLen)], "-")
}

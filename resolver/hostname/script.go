package hostname

import (
	"strings"
	"unicode"
)

// MixedScript returns the first label of a canonical name, decoded, that mixes scripts in a way that no language does,
// or "". Such labels usually imitate others. Latin with Chinese, Japanese or Korean is usual (the "highly restrictive"
// level of Unicode's UTS 39).
func MixedScript(name string) string {
	if !strings.Contains(name, "xn--") {
		return ""
	}
	for label := range strings.SplitSeq(name, ".") {
		if !strings.HasPrefix(label, "xn--") {
			continue
		}
		if u, err := lookup.ToUnicode(label); err == nil && mixed(u) {
			return u
		}
	}
	return ""
}

// usual are the sets of scripts that are written together.
var usual = [][]*unicode.RangeTable{
	{unicode.Latin, unicode.Han, unicode.Hiragana, unicode.Katakana},
	{unicode.Latin, unicode.Han, unicode.Bopomofo},
	{unicode.Latin, unicode.Han, unicode.Hangul},
}

func mixed(label string) bool {
	for _, set := range usual {
		if within(label, set...) {
			return false
		}
	}
	var own *unicode.RangeTable
	for _, r := range label {
		if unicode.In(r, unicode.Common, unicode.Inherited) {
			continue
		}
		if own == nil {
			if own = script(r); own == nil {
				return true
			}
		}
		if !unicode.Is(own, r) {
			return true
		}
	}
	return false
}

func within(label string, set ...*unicode.RangeTable) bool {
	for _, r := range label {
		if !unicode.In(r, unicode.Common, unicode.Inherited) && !unicode.In(r, set...) {
			return false
		}
	}
	return true
}

func script(r rune) *unicode.RangeTable {
	for _, table := range unicode.Scripts {
		if unicode.Is(table, r) {
			return table
		}
	}
	return nil
}

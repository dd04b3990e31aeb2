package hclfile

import "strings"

// didYouMean returns the detail that names the option nearest to got, or "".
func didYouMean(got string, options []string) string {
	if best := Nearest(got, options); best != "" {
		return "did you mean `" + best + "`?"
	}
	return ""
}

// Nearest returns the option that got was probably meant to be: equal but for case, hyphens and underscores, or at a
// small edit distance; "" if none is near. The first of equals wins.
func Nearest(got string, options []string) string {
	if len(got) > 64 {
		return ""
	}
	folded := fold(got)
	best, least := "", 1+min(3, max(1, len(folded)/3))
	for _, o := range options {
		if d := distance(folded, fold(o)); d < least {
			best, least = o, d
		}
	}
	return best
}

var foldWord = strings.NewReplacer("_", "", "-", "", " ", "")

func fold(s string) string { return foldWord.Replace(strings.ToLower(s)) }

// distance returns the number of single-byte insertions, deletions, replacements and swaps of neighbours that turn a
// into b (optimal string alignment). It is for short words; longer ones all count as far apart.
func distance(a, b string) int {
	const most = 64
	if len(a) > most || len(b) > most {
		return most
	}
	var rows [3][most + 1]int
	for j := range len(b) + 1 {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		before, last, row := &rows[(i+1)%3], &rows[(i-1)%3], &rows[i%3]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := last[j-1]
			if a[i-1] != b[j-1] {
				change++
			}
			row[j] = min(change, last[j]+1, row[j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
	}
	return rows[len(a)%3][len(b)]
}

package hcledit_test

import (
	"strings"

	"fingerpost/configsrc/hcledit"
	"fingerpost/configsrc/hclfile"
)

// rounds is how often a random test goes round.
func rounds(n int) int {
	if hcledit.UnderRace {
		return n / 10
	}
	return n
}

func text(ds hclfile.Diagnostics) string {
	var b strings.Builder
	if err := ds.WriteText(&b, false); err != nil {
		panic(err)
	}
	return b.String()
}

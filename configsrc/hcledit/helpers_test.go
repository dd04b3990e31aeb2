package hcledit_test

import (
	"strings"
	"testing"

	"fingerpost/configsrc/hcledit"
	"fingerpost/configsrc/hclfile"
)

// rounds is the number of rounds of a random test: a tenth under the race detector and with -short.
func rounds(n int) int {
	if hcledit.UnderRace || testing.Short() {
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

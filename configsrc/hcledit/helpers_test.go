package hcledit_test

import (
	"strings"
	"testing"

	"fingerpost/cmd/testrig"
	"fingerpost/configsrc/hclfile"
)

// rounds is the number of rounds of a random test: all n in CI, a twentieth elsewhere; a tenth under the race detector.
func rounds(t testing.TB, n int) int {
	t.Helper()
	if testrig.Race {
		n /= 10
	}
	return testrig.Size(t, n, max(n/80, 12))
}

func text(ds hclfile.Diagnostics) string {
	var b strings.Builder
	if err := ds.WriteText(&b, false); err != nil {
		panic(err)
	}
	return b.String()
}

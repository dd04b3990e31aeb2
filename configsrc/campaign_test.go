package configsrc_test

import (
	"os"
	"testing"
)

// campaign is the size of a random or long test: full in CI, small on a developer's machine. With -short it skips the test.
func campaign(t testing.TB, full, small int) int {
	t.Helper()
	switch {
	case testing.Short():
		t.Skip("a campaign, which -short leaves out")
	case os.Getenv("CI") != "":
		return full
	}
	return small
}

// slow leaves a test out with -short.
func slow(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("left out with -short: it takes seconds")
	}
}

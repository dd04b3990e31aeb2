package catalog

import (
	"testing"
	"time"
)

// Each form that a time is written in is read as the same time.
func TestMoments(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 31, 10, 30, 0, 120000000, time.FixedZone("CET", 3600))
	for text, want := range map[string]time.Time{
		Moment(at): at, FileMoment(at): at, Moment(at) + "Z": at, "2026-01-31T09:30:00": at.Truncate(time.Second),
		FileMoment(at.Truncate(time.Second)): at.Truncate(time.Second),
	} {
		if got, err := ParseMoment(text); err != nil || !got.Equal(want) {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	if got := SayMoment(at); got != "2026-01-31 09:30:00 UTC" {
		t.Error(got)
	}
	for _, bad := range []string{"", "2026-01-31", "2026-01-31 09:30:00", "2026-01-31T09:30:00+01:00", "2026-02-30T00:00:00"} {
		if got, err := ParseMoment(bad); err == nil {
			t.Errorf("%s is read as %v", bad, got)
		}
	}
}

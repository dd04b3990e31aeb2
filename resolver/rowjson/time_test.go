package rowjson

import (
	"testing"
	"time"
)

func TestTimes(t *testing.T) {
	t.Parallel()
	for _, when := range []time.Time{
		{}, time.Date(2026, 1, 31, 9, 30, 0, 123456789, time.UTC), time.Date(1999, 12, 31, 23, 59, 59, 999999999, time.FixedZone("", 3600)),
		time.Unix(0, 0), time.Date(9999, 12, 31, 0, 0, 0, 1000, time.UTC),
	} {
		micros, millisecs := when.UTC().Format("2006-01-02T15:04:05.000000"), when.UTC().Format("2006-01-02T15:04:05.000Z")
		if got, want := string(AppendObject(nil, "a", when, "b", Millis(when))), `{"a":"`+micros+`","b":"`+millisecs+`"}`; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

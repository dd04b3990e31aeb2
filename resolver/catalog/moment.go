package catalog

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// How times are written, in UTC everywhere.
const (
	// MomentLayout is that of the API and the audit trail: with microseconds, without a zone.
	MomentLayout = "2006-01-02T15:04:05.000000"
	// FileLayout is that of the files: with a fraction of a second only if there is one, without a zone.
	FileLayout = "2006-01-02T15:04:05.999999999"
	// PeopleLayout is that of what commands and pages say, before " UTC".
	PeopleLayout = "2006-01-02 15:04:05"
)

// Moment writes a time as the API does.
func Moment(t time.Time) string { return t.UTC().Format(MomentLayout) }

// FileMoment writes a time as files do.
func FileMoment(t time.Time) string { return t.UTC().Format(FileLayout) }

// SayMoment writes a time for people: "2026-01-31 09:30:00 UTC".
func SayMoment(t time.Time) string { return t.UTC().Format(PeopleLayout) + " UTC" }

// ParseMoment reads a time in UTC, to the second or finer, as the API and the files write it, with or without a Z.
func ParseMoment(text string) (time.Time, error) {
	return time.ParseInLocation("2006-01-02T15:04:05", strings.TrimSuffix(text, "Z"), time.UTC)
}

// A JSONMoment is a time that JSON has as Moment writes it.
type JSONMoment struct{ time.Time }

// MarshalJSON implements json.Marshaler.
func (m JSONMoment) MarshalJSON() ([]byte, error) { return []byte(`"` + Moment(m.Time) + `"`), nil }

// UnmarshalJSON implements json.Unmarshaler.
func (m *JSONMoment) UnmarshalJSON(b []byte) (err error) {
	if m.Time, err = ParseMoment(strings.Trim(string(b), `"`)); err != nil {
		return fmt.Errorf("%s is not a time in UTC such as \"2026-01-31T09:30:00.123456\"", b)
	}
	return nil
}

// Count writes a number with its noun: "1 project", "2 projects".
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

// Span says a length of time by its largest unit, rounded down: "3 hours".
func Span(d time.Duration) string {
	const day = 24 * time.Hour
	for _, unit := range []struct {
		length time.Duration
		name   string
	}{{365 * day, "year"}, {60 * day, ""}, {day, "day"}, {time.Hour, "hour"}, {time.Minute, "minute"}} {
		switch n := int(d / unit.length); {
		case n == 0:
		case unit.name == "":
			return Count(int(d/(30*day)), "month")
		default:
			return Count(n, unit.name)
		}
	}
	return Count(max(1, int(d/time.Second)), "second")
}

package catalog

import (
	"encoding/json"
	"fmt"
	"time"
)

// A Former is what is known of a uuid whose project was removed: a project that comes back with it may be another
// customer's, because people use a slug again in a file, and the uuid follows from the slug.
type Former struct {
	Removed time.Time `json:"removed,omitzero"` // when the project was removed; zero: it is there again
	Block   []byte    `json:"block,omitempty"`  // digest of its block then, see configsrc
	Other   time.Time `json:"other,omitzero"`   // when another project came with the uuid; zero: none has
}

// formerLife is how long a Former is known.
const formerLife = 366 * 24 * time.Hour

// Old reports whether f is not to be known any more. A time in the future is that of a clock that was ahead.
func (f *Former) Old(now time.Time) bool {
	return now.Sub(f.Removed) > formerLife && now.Sub(f.Other) > formerLife
}

// stashed is how long a project may be gone and still counts as the same, whatever its content.
const stashed = time.Hour

// Replaced reports whether a project that comes back with this digest of its block is another one: the former one was
// removed more than an hour and less than a year ago, and its block was another. A stash, a revert and a move give the block back as it was.
func (f *Former) Replaced(block []byte, now time.Time) bool {
	gone := now.Sub(f.Removed)
	return !f.Removed.IsZero() && gone > stashed && gone <= formerLife && string(block) != string(f.Block)
}

const formerPrefix = "former-project/"

// FormerName is the name of the Former of a uuid among the named values.
func FormerName(project UUID) string { return formerPrefix + project.String() }

// Formers returns the Former of each uuid that has one. One that cannot be read is left out: it says nothing.
func Formers(notes interface {
	EachNamed(prefix string, f func(name string, value []byte) error) error
}) (map[UUID]Former, error) {
	all := map[UUID]Former{}
	err := notes.EachNamed(formerPrefix, func(name string, value []byte) error {
		var f Former
		uuid, err := ParseUUID(name[len(formerPrefix):])
		if err == nil && json.Unmarshal(value, &f) == nil {
			all[uuid] = f
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read which projects were removed: %w", err)
	}
	return all, nil
}

// FormerOf returns the Former of a uuid, the zero Former if it has none.
func FormerOf(notes interface {
	Named(name string) (value []byte, found bool, err error)
}, project UUID) (f Former, err error) {
	value, found, err := notes.Named(FormerName(project))
	if err == nil && found {
		err = json.Unmarshal(value, &f)
	}
	if err != nil {
		return Former{}, fmt.Errorf("read whether a project's uuid was another's: %w", err)
	}
	return f, nil
}

// Value is f as it is stored; nil: nothing is left to know.
func (f *Former) Value() []byte {
	if f.Removed.IsZero() && f.Other.IsZero() {
		return nil
	}
	value, err := json.Marshal(f)
	if err != nil { // a year beyond 9999
		return nil
	}
	return value
}

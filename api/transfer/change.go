package transfer

import (
	"fmt"

	"fingerpost/configsrc/hcledit"
	"fingerpost/resolver/catalog"
)

// The kinds of changes.
const (
	Added   = "add"
	Changed = "change"
	Removed = "remove"
)

// A Change is the change of one object. Its JSON is that of "plan --json".
type Change struct {
	Action  string       `json:"action"`            // add, change, remove
	Kind    catalog.Kind `json:"kind"`              // the block's name in the files
	Project string       `json:"project,omitempty"` // the slug, in the files where they have it
	Name    string       `json:"name,omitempty"`    // slug, domain, template code or key name
	// of an added object: those that differ from their value without a line
	Fields []FieldChange `json:"fields"`

	id int64 // of the object that is changed or removed, where it is now
}

// A FieldChange is the change of one field. A secret never has values.
type FieldChange struct {
	Field  string `json:"field"` // as files write it
	Old    any    `json:"old"`
	New    any    `json:"new"`
	Secret bool   `json:"secret,omitempty"`

	whole bool // the values are shown as they are: they are printable, and all of them counts
}

// Title names an object the way its block begins.
func (c *Change) Title() string {
	if c.Name == "" {
		return string(c.Kind)
	}
	return string(c.Kind) + " " + hcledit.Quote(c.Name)
}

// Mark returns the beginning of a line about the change: +, ~ or -.
func (c *Change) Mark() string { return marks[c.Action] }

// A Tally counts objects by kind of change.
type Tally struct {
	Add    int `json:"add"`
	Change int `json:"change"`
	Remove int `json:"remove"`
}

// TallyOf counts changes.
func TallyOf(changes []Change) (t Tally) {
	for i := range changes {
		switch changes[i].Action {
		case Added:
			t.Add++
		case Changed:
			t.Change++
		case Removed:
			t.Remove++
		}
	}
	return t
}

func (t Tally) String() string {
	return fmt.Sprintf("%d to add, %d to change, %d to remove", t.Add, t.Change, t.Remove)
}

package catalog

import "time"

// An ObjectTime is when the store of the authority first saw an object, and when the object's content last changed.
type ObjectTime struct {
	Kind                 Kind // project, domain or template
	UUID                 UUID
	CreatedAt, UpdatedAt time.Time // UTC, in whole microseconds
}

// A TreeFile is one accepted file of the config folder: a config file, or a file whose text a config file uses.
type TreeFile struct {
	Path  string // slash-separated, below the config folder
	Bytes []byte
	Times []ObjectTime // of the objects that a config file declares; nil for other files
}

// A TreeChange is the difference that one generation makes to the accepted tree: what an authority sends to its edges.
type TreeChange struct {
	Position Position   // after the change
	Put      []TreeFile // new or changed, sorted by path
	Removed  []string   // sorted
}

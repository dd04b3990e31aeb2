package configsrc

import (
	"errors"
	"sync/atomic"

	"fingerpost/resolver/catalog"
)

// A writeCount counts the writes of clients by what became of them.
type writeCount struct{ written, refused, failed atomic.Uint64 }

// count counts a write by its error. neverWrites: the node refuses every write.
func (c *writeCount) count(err error, neverWrites bool) {
	switch {
	case err == nil:
		c.written.Add(1)
	case isFault(err, neverWrites):
		c.failed.Add(1)
	default:
		c.refused.Add(1)
	}
}

// isFault reports whether a write failed for a reason that the client cannot mend: the disk, the permissions of the
// files, a reload that takes too long, or a fault of ours.
func isFault(err error, neverWrites bool) bool {
	known, is := errors.AsType[*catalog.Error](err)
	switch {
	case !is:
		return true
	case known.Code == catalog.CodeReadOnly:
		return !neverWrites
	}
	return known.Code == catalog.CodeUnavailable
}

func (c *writeCount) each(yield func(result string, count uint64)) {
	yield("written", c.written.Load())
	yield("refused", c.refused.Load())
	yield("failed", c.failed.Load())
}

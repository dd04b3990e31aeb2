package configsrc

import (
	"context"
	"errors"
	"sync/atomic"

	"fingerpost/resolver/catalog"
)

// A writeCount counts the writes of clients by what became of them.
type writeCount struct{ written, refused, failed atomic.Uint64 }

// Write is writer.Write, and counts.
func (s *Source) Write(ctx context.Context, e *catalog.Edit) (Outcome, error) {
	out, err := s.writer.Write(ctx, e)
	switch {
	case e.DryRun, err == nil && len(out.Paths) == 0: // nothing was to be changed
	case err == nil:
		s.writes.written.Add(1)
	case s.faulty(err):
		s.writes.failed.Add(1)
	default:
		s.writes.refused.Add(1)
	}
	return out, err
}

// faulty reports whether a write failed for a reason that the client cannot mend: the disk, the permissions of the
// files, a reload that takes too long, or a fault of ours.
func (s *Source) faulty(err error) bool {
	known, is := errors.AsType[*catalog.Error](err)
	switch {
	case !is:
		return true
	case known.Code == catalog.CodeReadOnly:
		return !s.o.ReadOnly && !s.o.Follow
	}
	return known.Code == catalog.CodeUnavailable
}

// EachWrite yields how many writes of clients changed files, were refused for what they asked, and failed. Dry runs, and
// writes that had nothing to change, are not counted.
func (s *Source) EachWrite(yield func(result string, count uint64)) {
	yield("written", s.writes.written.Load())
	yield("refused", s.writes.refused.Load())
	yield("failed", s.writes.failed.Load())
}

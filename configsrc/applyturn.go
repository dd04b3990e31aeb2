package configsrc

import (
	"context"

	"fingerpost/configsrc/compare"
	"fingerpost/configsrc/edits"
	"fingerpost/configsrc/hclfile"
	"fingerpost/resolver/catalog"
)

// Weigh returns what a Difference touches.
func (s *Source) Weigh(d *compare.Difference) *compare.Weight {
	return compare.Weigh(d, s.base.UsersOf)
}

// ApplyTurn judges a Difference as a look would judge the files after it, against what is live, and runs move, which
// puts it in place, in a GitTurn, and looks at the files. No write comes in between: it would be judged without the
// names that are in the files by then. A Difference that has become wrong is a CONFLICT, and move does not run.
func (s *Source) ApplyTurn(ctx context.Context, d *compare.Difference, permit Permit, move func() error) error {
	return s.turns.insistOn(ctx, func(running context.Context) error {
		if err := s.permitted(d, permit, nil); err != nil {
			return err
		}
		if err := s.GitTurn(move); err != nil {
			return err
		}
		sc := scope{hash: true}
		for _, f := range d.Files {
			sc.Paths = append(sc.Paths, f.Path)
		}
		_ = s.look.lookTwice(running, sc) // errors are in the log and the status
		return nil
	})
}

// JudgeTurn returns why ApplyTurn would refuse a Difference now, else the warnings that it would bring. It changes
// nothing.
func (s *Source) JudgeTurn(ctx context.Context, d *compare.Difference, permit Permit) (brings hclfile.Diagnostics,
	err error) {
	err = s.turns.insistOn(ctx, func(context.Context) error { return s.permitted(d, permit, &brings) })
	return brings, err
}

// A Permit may refuse a change of that weight. It returns the coverages of the keys that must be allowed to make it now,
// that of the caller first.
type Permit = func(w *compare.Weight) ([]catalog.Coverage, error)

// permitted returns why a Difference cannot be put in place now, by what is live and by permit. It adds the warnings
// that it would bring to brings, unless that is nil. It runs in a turn.
func (s *Source) permitted(d *compare.Difference, permit Permit, brings *hclfile.Diagnostics) error {
	if s.report.isHeld() {
		return edits.Busy("a reload is held back until someone confirms it (fingerpost reload --confirm)")
	}
	w := s.Weigh(d)
	limits, err := permit(w)
	if err != nil {
		return err
	}
	return s.base.JudgeDifference(d, w, limits, brings)
}

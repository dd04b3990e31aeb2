package proposals

import (
	"context"
	"log/slog"
	"time"

	"fingerpost/resolver/catalog"
)

// Expire drops the proposals that nobody has written to for maxAge, and those that somebody has merged, now and again,
// until ctx is done.
func (s *Set) Expire(ctx context.Context, maxAge time.Duration, log *slog.Logger) error {
	for {
		pause := min(time.Hour, maxAge)
		dropped, err := s.repo.DropProposals(ctx, time.Now().Add(-maxAge))
		if err != nil && ctx.Err() == nil {
			log.Warn("git: old proposals cannot be dropped; it is tried again", "error", err)
			pause = min(pause, 10*time.Second) // git was at work in the clone, most likely
		}
		for _, d := range dropped {
			why := "no write since " + maxAge.String()
			if d.Merged {
				why = "the branch was merged by hand"
			}
			log.Info("git: a proposal is dropped", "proposal", d.Name, "reason", why)
			s.live.Note(catalog.AuditDrop, catalog.Author{Door: catalog.DoorGit},
				catalog.FieldChange{Field: "proposal", After: d.Name},
				catalog.FieldChange{Field: "reason", After: why})
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil
		}
	}
}

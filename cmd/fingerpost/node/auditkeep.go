package node

import (
	"cmp"
	"context"
	"encoding/hex"
	"log/slog"
	"slices"
	"time"

	"fingerpost/configsrc"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
	"fingerpost/resolver/records"
)

const auditEvery = time.Hour

// MaxHeads is how many heads are logged at once: those with the newest entries.
const MaxHeads = 100

// keepAudit deletes the entries and deliveries of webhooks whose retention has ended, and logs the heads of the chains
// that have grown, once an hour until ctx ends.
func keepAudit(ctx context.Context, r *resolver.Resolver, log *slog.Logger) {
	last := int64(0)
	tick := time.NewTicker(auditEvery)
	defer tick.Stop()
	for {
		if err := r.PruneAudit(ctx, time.Now()); err != nil {
			log.Debug("entries of the audit trail stay for now", "error", err)
		}
		pruneWebhooks(r, time.Now(), log)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			last = LogHeads(r, log, last)
		}
	}
}

// LogHeads logs the heads of the chains with entries after last, and returns the newest entry's id.
func LogHeads(r *resolver.Resolver, log *slog.Logger, last int64) int64 {
	var heads []records.AuditChain
	newest, err := r.AuditHeads(last, func(c *records.AuditChain) { heads = append(heads, *c) })
	if err != nil {
		log.Debug("the audit trail cannot be read", "error", err)
		return last
	}
	slices.SortFunc(heads, func(a, b records.AuditChain) int { return int(b.Last - a.Last) })
	for i := range heads {
		if i == MaxHeads {
			log.Info("audit heads left out", "chains", len(heads)-MaxHeads)
			break
		}
		c := &heads[i]
		log.Info("audit head", "project", c.Project, "entry", c.Last, "hash", hex.EncodeToString(c.Head[:]))
	}
	return newest
}

// NoteConfirm adds to the audit trail that removals were let through which the brake would have held back.
func NoteConfirm(r *resolver.Resolver, h configsrc.Held) {
	by := h.By
	by.Door = cmp.Or(by.Door, catalog.DoorCLI)
	r.Note(catalog.AuditConfirm, by,
		catalog.FieldChange{Field: "reason", After: h.Reason},
		catalog.FieldChange{Field: "projects", After: int64(h.Projects)},
		catalog.FieldChange{Field: "domains", After: int64(h.Domains)})
}

package logs

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strconv"
	"strings"

	"fingerpost/api/client"
	"fingerpost/cmd/fingerpost/cli"
	"fingerpost/resolver/catalog"
	"fingerpost/resolver/datadir"
	"fingerpost/resolver/rowjson"
)

// storedAudit shows the audit trail of a server that does not run.
func storedAudit(ctx context.Context, t cli.Terminal, f auditFlags) error {
	if f.follow {
		return cli.Usage("--data shows the trail of a server that does not run: leave out --follow")
	}
	projects, err := storedProjects(f)
	if err != nil {
		return err
	}
	log := tail[client.AuditEntry]{line: auditLine}
	log.newest = func(_ context.Context, n int) ([]client.AuditEntry, error) {
		var entries []client.AuditEntry
		for _, id := range projects {
			rows, err := storedEntries(f, id, max(n, 1))
			if err != nil {
				return nil, err
			}
			entries = append(entries, rows...)
		}
		return client.SortAudit(entries), nil
	}
	return log.show(ctx, t.Out, t.Err, f.printing())
}

// storedEntries reads the newest entries of a project, as the API has them.
func storedEntries(f auditFlags, project int64, limit int) (entries []client.AuditEntry, err error) {
	page, err := datadir.Audit(f.data, catalog.AuditQuery{ProjectID: project, Actor: f.actor, Action: f.action,
		From: f.from(), Page: 1, Limit: limit})
	if pid, held := datadir.HeldBy(err); held {
		return nil, fmt.Errorf("process %d has %s open: ask the server by --url, or stop it first", pid, f.data)
	}
	if err != nil {
		return nil, fmt.Errorf("read the audit trail in %s: %w", f.data, err)
	}
	for i := range page.Entries {
		var e client.AuditEntry
		if err := json.Unmarshal(rowjson.AppendAudit(nil, &page.Entries[i]), &e); err != nil {
			return nil, err
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// storedProjects returns the ids that --project names, of which one is 0 for everything. A slug is looked up in the
// store; without one an id is taken as it is.
func storedProjects(f auditFlags) (ids []int64, err error) {
	if f.projects == nil {
		return []int64{0}, nil
	}
	known := map[string]int64{}
	s, noStore := datadir.OpenStored(f.data, slog.New(slog.DiscardHandler)) // it is derived, and may be gone
	if noStore == nil {
		defer s.Close()
		rows, err := s.Projects()
		if err != nil {
			return nil, err
		}
		for i := range rows {
			known[rows[i].Slug] = rows[i].ID
		}
	}
	var unknown []string
	for _, slug := range f.projects {
		id, found := known[slug]
		if !found && digits.MatchString(slug) {
			id, _ = strconv.ParseInt(slug, 10, 64)
		} else if !found {
			unknown = append(unknown, strconv.Quote(slug))
		}
		ids = append(ids, id)
	}
	if unknown != nil && noStore != nil {
		return nil, fmt.Errorf("look up the slugs: %w; give the ids of projects instead", noStore)
	}
	if unknown != nil {
		return nil, cli.No("no such project: %s", strings.Join(unknown, ", "))
	}
	return ids, nil
}

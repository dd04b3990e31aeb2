package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"fingerpost/api/client"
)

// auditFlags are the flags of audit.
type auditFlags struct {
	connectFlags
	trailFlags
	actor, action string
	data          string
}

func newAudit(t terminal) *cobra.Command {
	var f auditFlags
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Show who changed what",
		Long: "Prints the newest entries of the audit trail, the latest one last. With --follow it goes on until Ctrl-C.\n\n" +
			"With --json one array, or with --follow one object a line. --data reads the store of a server that does not run.",
		Args: wantsCommand,
		RunE: interruptible(func(cmd *cobra.Command, _ []string) error {
			return audit(cmd.Context(), t, f)
		}),
	}
	f.connectFlags.add(cmd, "read")
	f.trailFlags.add(cmd, &f.connectFlags, "changes", "everything")
	cmd.Flags().StringVar(&f.actor, "actor", "", "actor of the changes that are listed, or the name of the key")
	cmd.Flags().StringVar(&f.action, "action", "", "action of the changes that are listed, such as domain.update")
	cmd.Flags().StringVar(&f.data, "data", "", "folder of the store of a server that does not run")
	cmd.AddCommand(newAuditVerify(t))
	return cmd
}

func audit(ctx context.Context, t terminal, f auditFlags) error {
	if err := f.check(nil); err != nil {
		return err
	}
	if f.data != "" {
		return storedAudit(t, f)
	}
	o, err := f.options()
	if err != nil {
		return err
	}
	o.NoMail = true
	r := &auditReader{server: client.New(o), flags: f, t: t}
	if err := r.find(ctx); err != nil {
		return err
	}
	newest, err := r.newest(ctx)
	switch {
	case ctx.Err() != nil:
		return errors.New("interrupted")
	case err != nil:
		return err
	case f.follow:
		return r.follow(ctx, newest)
	case f.json:
		return printJSON(t.out, append([]client.AuditEntry{}, newest...))
	}
	return r.print(newest)
}

// An auditReader reads the audit trail of some projects.
type auditReader struct {
	server   *client.Client
	flags    auditFlags
	projects []int64 // 0: everything
	t        terminal
	last     client.AuditEntry // that --follow has seen
}

// find finds the requested projects.
func (r *auditReader) find(ctx context.Context) error {
	if r.flags.projects == nil {
		r.projects = []int64{0}
		return nil
	}
	return r.flags.find(ctx, r.server, func(id int64, _ string) {
		if !slices.Contains(r.projects, id) {
			r.projects = append(r.projects, id)
		}
	})
}

// read reads entries, page by page, until it has enough of each project. They are in the order of their ids.
func (r *auditReader) read(ctx context.Context, q client.AuditQuery, enough int) (entries []client.AuditEntry,
	err error) {
	for _, q.Project = range r.projects {
		n := 0
		q.Page, q.Limit = 0, min(max(enough, 1), client.MaxLogPage)
		for more := true; more && n < enough; {
			q.Page++
			var rows []client.AuditEntry
			if rows, more, err = r.server.Audit(ctx, q); err != nil {
				return nil, err
			}
			entries = append(entries, rows...)
			n += len(rows)
		}
	}
	slices.SortFunc(entries, func(a, b client.AuditEntry) int { return cmp.Compare(a.ID, b.ID) })
	return slices.CompactFunc(entries, func(a, b client.AuditEntry) bool { return a.ID == b.ID }), nil
}

func (r *auditReader) query() client.AuditQuery {
	return client.AuditQuery{Actor: r.flags.actor, Action: r.flags.action, From: r.flags.from()}
}

// newest reads the latest entries, the latest one last. For --follow it reads at least one.
func (r *auditReader) newest(ctx context.Context) ([]client.AuditEntry, error) {
	enough := r.flags.limit
	if r.flags.follow {
		enough = max(enough, 1)
	}
	all, err := r.read(ctx, r.query(), enough)
	if len(all) > 0 {
		r.last = all[len(all)-1]
	}
	return all[max(0, len(all)-r.flags.limit):], err
}

// follow prints the newest entries, and then what comes, until ctx ends.
func (r *auditReader) follow(ctx context.Context, newest []client.AuditEntry) error {
	if err := r.print(newest); err != nil {
		return err
	}
	news := func() ([]client.AuditEntry, error) { return r.news(ctx) }
	return pollTrail(ctx, &r.flags.trailFlags, r.t.err, news, r.print)
}

// news reads the entries after the last one. It reads a little more, because the clock of the server may be set back.
func (r *auditReader) news(ctx context.Context) ([]client.AuditEntry, error) {
	q := r.query()
	q.OldestFirst = true // entries that arrive during the reading are on the last page
	if at, err := time.Parse(client.TimeLayout, r.last.Time); err == nil {
		q.From = at.Add(-overlap)
	}
	entries, err := r.read(ctx, q, int(^uint(0)>>1))
	entries = slices.DeleteFunc(entries, func(e client.AuditEntry) bool { return e.ID <= r.last.ID })
	if len(entries) > 0 {
		r.last = entries[len(entries)-1]
	}
	return entries, err
}

// print prints a line for each entry.
func (r *auditReader) print(entries []client.AuditEntry) (err error) {
	line := json.NewEncoder(r.t.out)
	line.SetEscapeHTML(false)
	for i := range entries {
		if r.flags.json {
			err = line.Encode(entries[i])
		} else {
			_, err = fmt.Fprintln(r.t.out, auditLine(&entries[i]))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// maxShown is how much of a value a line shows, in bytes.
const maxShown = 60

// auditLine returns the entry for people. Text of others is made harmless for terminals.
func auditLine(e *client.AuditEntry) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-26s  %-18s", e.Time, e.Action)
	if object := orEmpty(e.Object); object != "" {
		fmt.Fprintf(&b, "  %s", object)
	}
	by := orEmpty(e.Actor)
	if key := orEmpty(e.Key); key != "" && key != by {
		by += " with " + key
	}
	fmt.Fprintf(&b, "  by %s", cmp.Or(by, e.Door))
	for i, c := range e.Changes {
		sep := ", "
		if i == 0 {
			sep = "  "
		}
		b.WriteString(sep + c.Field)
		if !c.Secret {
			fmt.Fprintf(&b, " %s → %s", shorten(c.Before), shorten(c.After))
		}
	}
	if commit := orEmpty(e.Commit); commit != "" {
		fmt.Fprintf(&b, "  commit %.12s", commit)
	}
	fmt.Fprintf(&b, "  #%d", e.ID)
	return client.Printable(b.String())
}

func shorten(value json.RawMessage) string {
	text := string(value)
	if len(text) <= maxShown {
		return text
	}
	return strings.ToValidUTF8(text[:maxShown], "") + "…"
}

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"fingerpost/api/client"
	"fingerpost/resolver/catalog"
)

// logsFlags are the flags of logs.
type logsFlags struct {
	remoteFlags
	trailFlags
	status, template, to string
}

func newLogs(t terminal) *cobra.Command {
	var f logsFlags
	cmd := &cobra.Command{
		Use:   "logs",
		Short: "Show the mail log of a running server",
		Long: "Prints the newest entries, the latest one last. With --follow it goes on: each new mail gets a line, and " +
			"so does each\n" +
			"step that a mail takes (an attempt, its end), until Ctrl-C.\n\n" +
			"With --json one array, or with --follow one object a line.",
		Args: cobra.NoArgs,
		RunE: interruptible(func(cmd *cobra.Command, _ []string) error {
			return logs(cmd.Context(), t, f)
		}),
	}
	f.connectFlags.add(cmd, "read")
	f.addMail(cmd)
	f.trailFlags.add(cmd, &f.connectFlags, "mail", "every project")
	fl := cmd.Flags()
	fl.StringVar(&f.status, "status", "", "state of the mails that are listed: "+strings.Join(mailStates, ", "))
	fl.StringVar(&f.template, "template", "", "code of the template that the listed mails were made from")
	fl.StringVar(&f.to, "to", "", "recipient of the mails that are listed")
	_ = cmd.RegisterFlagCompletionFunc("status", cobra.FixedCompletions(mailStates, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

var mailStates = []string{string(catalog.MailPending), string(catalog.MailSending), string(catalog.MailSent),
	string(catalog.MailRetrying), string(catalog.MailFailed), string(catalog.MailExpired)}

// check parses the flags that are not plain, and returns all problems at once.
func (f *logsFlags) check() error {
	var bad []string
	if f.status != "" && !slices.Contains(mailStates, f.status) {
		bad = append(bad, "--status must be one of "+strings.Join(mailStates, ", "))
	}
	return f.trailFlags.check(bad)
}

func logs(ctx context.Context, t terminal, f logsFlags) error {
	if err := f.check(); err != nil {
		return err
	}
	f.parallel = logParallel
	r, err := f.connect()
	if err != nil {
		return err
	}
	l := &logReader{server: r, flags: f, t: t}
	if err := l.find(ctx); err != nil {
		return err
	}
	newest, err := l.newest(ctx)
	switch {
	case ctx.Err() != nil:
		return errors.New("interrupted")
	case err != nil:
		return err
	case f.follow:
		return l.follow(ctx, newest)
	case f.json:
		return printJSON(t.out, append([]mailEntry{}, newest...))
	}
	return l.print(newest)
}

// A mailEntry is an entry of the mail log with its project's slug.
type mailEntry struct {
	Project string `json:"project"`
	client.MailEntry
}

func (e *mailEntry) ended() bool { return catalog.MailStatus(e.Status).Ended() }

// state is the part of an entry that changes while a mail is being sent.
func (e *mailEntry) state() string { return fmt.Sprint(e.Status, e.Attempts, e.Uncertain) }

func orEmpty(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// line returns the entry for people. Text from a mail is made harmless for terminals.
func (e *mailEntry) line() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-26s  %-8s  %s  to %s", e.CreatedAt, e.Status, e.Project, e.ToEmail)
	if code := orEmpty(e.TemplateCode); code != "" {
		fmt.Fprintf(&b, "  %s", code)
	}
	fmt.Fprintf(&b, "  %q  #%d", e.Subject, e.ID)
	if e.Attempts > 1 {
		fmt.Fprintf(&b, "  attempt %d", e.Attempts)
	}
	if e.Uncertain {
		b.WriteString("  uncertain")
	}
	if code := orEmpty(e.ErrorCode); code != "" && e.Status != string(catalog.MailSent) {
		fmt.Fprintf(&b, "  %s: %s", code, orEmpty(e.ErrorMessage))
	}
	if next := orEmpty(e.NextAttemptAt); next != "" {
		fmt.Fprintf(&b, "  next %s", next)
	}
	if what := orEmpty(e.WaitingFor); what != "" {
		fmt.Fprintf(&b, "  waits for %s", what)
	}
	return client.Printable(b.String())
}

// byTime puts older entries first.
func byTime(a, b mailEntry) int {
	return cmp.Or(strings.Compare(a.CreatedAt, b.CreatedAt), cmp.Compare(a.ID, b.ID))
}

// A logReader reads the log of some projects.
type logReader struct {
	server   *client.Client
	flags    logsFlags
	projects []*loggedProject
	t        terminal
}

// A loggedProject is a project whose log is read.
type loggedProject struct {
	id   int64
	slug string

	// The state of --follow.
	seen  map[int64]mailEntry // the latest entries, and those that have not ended
	first mailEntry           // entries older than this are not news
	last  string              // createdAt of the latest entry, "" if there is none
	news  []mailEntry         // not printed yet
}

// find finds the requested projects.
func (l *logReader) find(ctx context.Context) error {
	add := func(id int64, slug string) {
		if !slices.ContainsFunc(l.projects, func(p *loggedProject) bool { return p.id == id }) {
			l.projects = append(l.projects, &loggedProject{id: id, slug: slug, seen: map[int64]mailEntry{}})
		}
	}
	if l.flags.projects == nil {
		all, err := l.server.Projects(ctx)
		for i := range all {
			add(all[i].ID, all[i].Slug)
		}
		return err
	}
	return l.flags.find(ctx, l.server, add)
}

// logParallel is how many projects are read at once.
const logParallel = 8

// query returns the filters without the state, because --follow looks at mails in all states.
func (l *logReader) query() client.LogQuery {
	return client.LogQuery{Template: l.flags.template, To: l.flags.to, From: l.flags.from()}
}

// read reads a project's log, page by page, until it has so many entries or all.
func (l *logReader) read(ctx context.Context, p *loggedProject, q client.LogQuery, enough int) (entries []mailEntry,
	err error) {
	q.Limit = min(enough, client.MaxLogPage)
	for more := true; more && len(entries) < enough; {
		q.Page++
		var rows []client.MailEntry
		rows, more, err = l.server.MailLog(ctx, p.id, q)
		if client.Status(err, http.StatusNotFound) {
			return nil, no("project %s has no mail log on this server: %v", strconv.Quote(p.slug), err)
		}
		if err != nil {
			return nil, err
		}
		for _, e := range rows {
			entries = append(entries, mailEntry{p.slug, e})
		}
	}
	return entries, nil
}

// newest reads the latest entries of all projects, the latest one last. For --follow it reads at least one, in any
// state.
func (l *logReader) newest(ctx context.Context) ([]mailEntry, error) {
	var all []mailEntry
	q, enough := l.query(), l.flags.limit
	if l.flags.follow {
		enough = max(enough, 1)
	} else {
		q.Status = l.flags.status
	}
	get := func(ctx context.Context, i int) ([]mailEntry, error) { return l.read(ctx, l.projects[i], q, enough) }
	err := client.InOrder(ctx, logParallel, len(l.projects), get, func(i int, rows []mailEntry) error {
		l.projects[i].begin(rows)
		all = append(all, rows...)
		slices.SortFunc(all, byTime)
		all = slices.CompactFunc(all, func(a, b mailEntry) bool { return a.ID == b.ID && a.ProjectID == b.ProjectID })
		all = all[max(0, len(all)-l.flags.limit):]
		return nil
	})
	return all, err
}

// print prints a line for each entry that has the state of --status.
func (l *logReader) print(entries []mailEntry) (err error) {
	line := json.NewEncoder(l.t.out)
	line.SetEscapeHTML(false)
	for _, e := range entries {
		switch {
		case l.flags.status != "" && e.Status != l.flags.status:
		case l.flags.json:
			err = line.Encode(e)
		default:
			_, err = fmt.Fprintln(l.t.out, e.line())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

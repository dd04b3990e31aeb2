package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"fingerpost/api/client"
	"fingerpost/resolver/catalog"
)

// logsFlags are the flags of logs.
type logsFlags struct {
	remoteFlags
	projects             []string
	status, template, to string
	since                string
	limit                int
	follow, json         bool
	every                time.Duration
}

func newLogs(t terminal) *cobra.Command {
	var f logsFlags
	cmd := &cobra.Command{
		Use:   "logs",
		Short: "Show the mail log of a running server",
		Long: "Prints the newest entries, the latest one last. With --follow it goes on: each new mail gets a line, and so does each\n" +
			"step that a mail takes (an attempt, its end), until Ctrl-C.\n\n" +
			"With --json one array, or with --follow one object a line.",
		Args: cobra.NoArgs,
		RunE: command(func(cmd *cobra.Command, _ []string) error {
			ctx, stop := interruptible(cmd.Context())
			defer stop()
			return logs(ctx, t, f)
		}),
	}
	f.connectFlags.add(cmd, "read")
	f.addMail(cmd)
	fl := cmd.Flags()
	at := fl.Lookup("url")
	at.DefValue = "http://127.0.0.1:8080"
	f.url = at.DefValue
	fl.StringSliceVar(&f.projects, "project", nil, "slugs of the projects, or the ids of deleted ones (default every project that the key reaches)")
	fl.StringVar(&f.status, "status", "", "only mail in this state: "+strings.Join(mailStates, ", "))
	fl.StringVar(&f.template, "template", "", "only mail made from the template with this code")
	fl.StringVar(&f.to, "to", "", "only mail to this address")
	fl.StringVar(&f.since, "since", "", "only mail of the last while: 90d, 12h, 30m")
	fl.IntVar(&f.limit, "limit", 50, "at most so many entries, before --follow goes on")
	fl.BoolVar(&f.follow, "follow", false, "go on with what comes")
	fl.DurationVar(&f.every, "every", time.Second, "how often --follow asks")
	fl.BoolVar(&f.json, "json", false, "JSON on stdout")
	return cmd
}

var mailStates = []string{string(catalog.MailPending), string(catalog.MailSending), string(catalog.MailSent),
	string(catalog.MailRetrying), string(catalog.MailFailed), string(catalog.MailExpired)}

// maxLogRows bounds --limit.
const maxLogRows = 10_000

// check returns all problems of the flags at once.
func (f *logsFlags) check() error {
	var bad []string
	if f.status != "" && !slices.Contains(mailStates, f.status) {
		bad = append(bad, "--status must be one of "+strings.Join(mailStates, ", "))
	}
	if f.limit < 0 || f.limit > maxLogRows {
		bad = append(bad, fmt.Sprintf("--limit must be from 0 to %d", maxLogRows))
	}
	if f.every < 10*time.Millisecond {
		bad = append(bad, "--every must be at least 10ms")
	}
	if f.since != "" {
		if _, err := parseLifetime(f.since); err != nil {
			bad = append(bad, fmt.Sprintf("--since: %v", err))
		}
	}
	if namesNothing(f.projects) {
		bad = append(bad, "--project must name a project")
	}
	if bad != nil {
		return usage("%s", strings.Join(bad, "; "))
	}
	return nil
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
	l := &logReader{server: r, flags: f, out: t.out, err: t.err}
	if err := l.find(ctx); err != nil {
		return err
	}
	newest, err := l.newest(ctx)
	switch {
	case ctx.Err() != nil:
		return &exitError{exitFailed, errors.New("interrupted")}
	case err != nil:
		return err
	case f.follow:
		return l.follow(ctx, newest)
	case f.json:
		return printJSON(t.out, append([]mailEntry{}, newest...))
	}
	for i := range newest {
		fmt.Fprintln(t.out, newest[i].line())
	}
	return nil
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
	fmt.Fprintf(&b, "%-26s  %-8s  %s  to %s", client.Printable(e.CreatedAt), client.Printable(e.Status), client.Printable(e.Project), client.Printable(e.ToEmail))
	if code := orEmpty(e.TemplateCode); code != "" {
		fmt.Fprintf(&b, "  %s", client.Printable(code))
	}
	fmt.Fprintf(&b, "  %s  #%d", client.Printable(strconv.Quote(e.Subject)), e.ID)
	if e.Attempts > 1 {
		fmt.Fprintf(&b, "  attempt %d", e.Attempts)
	}
	if e.Uncertain {
		b.WriteString("  uncertain")
	}
	if code := orEmpty(e.ErrorCode); code != "" && e.Status != string(catalog.MailSent) {
		fmt.Fprintf(&b, "  %s: %s", client.Printable(code), client.Printable(orEmpty(e.ErrorMessage)))
	}
	if next := orEmpty(e.NextAttemptAt); next != "" {
		fmt.Fprintf(&b, "  next %s", client.Printable(next))
	}
	return b.String()
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
	out, err io.Writer
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

var digits = regexp.MustCompile(`^[1-9][0-9]{0,15}$`)

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
	var unknown []string
	for _, slug := range l.flags.projects {
		p, err := l.server.ProjectBySlug(ctx, slug)
		switch {
		case err == nil:
			add(p.ID, slug)
		case !client.Status(err, http.StatusNotFound):
			return err
		case digits.MatchString(slug):
			id, _ := strconv.ParseInt(slug, 10, 64)
			add(id, slug)
		default:
			unknown = append(unknown, strconv.Quote(slug))
		}
	}
	if unknown != nil {
		return no("no such project: %s", strings.Join(unknown, ", "))
	}
	return nil
}

// logParallel is how many projects are read at once.
const logParallel = 8

// query returns the filters without the state, because --follow looks at mails in all states.
func (l *logReader) query() client.LogQuery {
	q := client.LogQuery{Template: l.flags.template, To: l.flags.to}
	if l.flags.since != "" {
		ago, _ := parseLifetime(l.flags.since) // check has parsed it already
		q.From = time.Now().Add(-ago)
	}
	return q
}

// page reads one page of a project's log.
func (l *logReader) page(ctx context.Context, p *loggedProject, q client.LogQuery) (entries []mailEntry, more bool, err error) {
	rows, more, err := l.server.MailLog(ctx, p.id, q)
	if client.Status(err, http.StatusNotFound) {
		return nil, false, no("project %s has no mail log on this server: %v", strconv.Quote(p.slug), err)
	}
	for _, e := range rows {
		entries = append(entries, mailEntry{p.slug, e})
	}
	return entries, more, err
}

// newest reads the latest entries of all projects, the latest one last. For --follow it reads at least one, in any
// state.
func (l *logReader) newest(ctx context.Context) ([]mailEntry, error) {
	var all []mailEntry
	most := l.flags.limit
	if l.flags.follow {
		most = max(most, 1)
	}
	get := func(ctx context.Context, i int) (rows []mailEntry, err error) {
		q := l.query()
		if l.flags.status != "" && !l.flags.follow {
			q.Status = l.flags.status
		}
		q.Limit = min(most, client.MaxLogPage)
		for more := true; more && len(rows) < most; {
			q.Page++
			var page []mailEntry
			if page, more, err = l.page(ctx, l.projects[i], q); err != nil {
				return nil, err
			}
			rows = append(rows, page...)
		}
		return rows, nil
	}
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

// print shows an entry of --follow.
func (l *logReader) print(e *mailEntry) error {
	if l.flags.status != "" && e.Status != l.flags.status {
		return nil
	}
	if l.flags.json {
		line := json.NewEncoder(l.out)
		line.SetEscapeHTML(false)
		return line.Encode(e)
	}
	_, err := fmt.Fprintln(l.out, e.line())
	return err
}

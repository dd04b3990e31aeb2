package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"fingerpost/api/client"
)

// trailFlags are the flags of the commands that read what has happened, the mail log and the audit trail.
type trailFlags struct {
	projects     []string
	since        string
	ago          time.Duration // since
	limit        int
	follow, json bool
	every        time.Duration
}

// add adds the flags, and makes the address of a local server the default of c. what is what --since selects; all is
// what the command reads without --project.
func (f *trailFlags) add(cmd *cobra.Command, c *connectFlags, what, all string) {
	fl := cmd.Flags()
	c.local(cmd)
	fl.StringSliceVar(&f.projects, "project", nil,
		"slugs of the projects, or the ids of deleted ones (default "+all+" that the key reaches)")
	fl.StringVar(&f.since, "since", "", "time up to now of which "+what+" is listed: 90d, 12h, 30m")
	fl.IntVar(&f.limit, "limit", 50, "number of entries that are printed before --follow goes on")
	fl.BoolVar(&f.follow, "follow", false, "print what comes after that, until the command is ended")
	fl.DurationVar(&f.every, "every", time.Second, "interval between two questions of --follow")
	fl.BoolVar(&f.json, "json", false, "print JSON on stdout")
	completeFlag(cmd, "project", projectSlugs)
}

// maxTrailRows bounds --limit.
const maxTrailRows = 10_000

// check parses the flags that are not plain, and adds their problems to those of the command's own flags. The error
// has all of them.
func (f *trailFlags) check(bad []string) error {
	if f.limit < 0 || f.limit > maxTrailRows {
		bad = append(bad, fmt.Sprintf("--limit must be from 0 to %d", maxTrailRows))
	}
	if f.every < 10*time.Millisecond {
		bad = append(bad, "--every must be at least 10ms")
	}
	if f.since != "" {
		var err error
		if f.ago, err = parseLifetime(f.since); err != nil {
			bad = append(bad, fmt.Sprintf("--since: %v", err))
		}
	}
	if namesNothing(f.projects) {
		bad = append(bad, "--project must name a project")
	}
	return usageAll(bad)
}

// from returns the time of --since, zero without it.
func (f *trailFlags) from() time.Time {
	if f.since == "" {
		return time.Time{}
	}
	return time.Now().Add(-f.ago)
}

var digits = regexp.MustCompile(`^[1-9][0-9]{0,15}$`)

// find calls add for each project of --project. The id of a project that is gone is taken as it is.
func (f *trailFlags) find(ctx context.Context, server *client.Client, add func(id int64, slug string)) error {
	var unknown []string
	for _, slug := range f.projects {
		p, err := server.ProjectBySlug(ctx, slug)
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

// A trail is what a command reads of what has happened.
type trail[Entry any] struct {
	newest func(ctx context.Context, n int) ([]Entry, error) // at most n, the latest one last
	news   func(ctx context.Context) ([]Entry, error)        // that came since; also with an error
	line   func(*Entry) string
}

// show prints the newest entries, and with --follow what comes, until ctx ends.
func (tr *trail[Entry]) show(ctx context.Context, t terminal, f *trailFlags) error {
	n := f.limit
	if f.follow {
		n = max(n, 1) // to know where to go on
	}
	newest, err := tr.newest(ctx, n)
	if ctx.Err() != nil {
		return errors.New("interrupted")
	}
	if err != nil {
		return err
	}
	newest = newest[max(0, len(newest)-f.limit):]
	if f.json && !f.follow {
		return printJSON(t.out, append([]Entry{}, newest...)) // [], not null
	}
	if err := tr.print(t, f, newest); err != nil || !f.follow {
		return err
	}
	return tr.poll(ctx, t, f)
}

// poll prints the news every f.every, until ctx ends. It says once that the server fails, until it works again.
func (tr *trail[Entry]) poll(ctx context.Context, t terminal, f *trailFlags) error {
	failing := false
	tick := time.NewTicker(f.every)
	defer tick.Stop()
	for {
		news, err := tr.news(ctx)
		switch {
		case err == nil:
			failing = false
		case ctx.Err() != nil:
		case !passing(err):
			return err
		case !failing:
			failing = true
			fmt.Fprintf(t.err, "fingerpost: %s; asking on\n", err)
		}
		if err := tr.print(t, f, news); err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// print prints a line for each entry.
func (tr *trail[Entry]) print(t terminal, f *trailFlags, entries []Entry) (err error) {
	line := json.NewEncoder(t.out)
	line.SetEscapeHTML(false)
	for i := range entries {
		if f.json {
			err = line.Encode(entries[i])
		} else {
			_, err = fmt.Fprintln(t.out, client.Printable(tr.line(&entries[i]))) // text of others is harmless for terminals
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// passing reports whether a retry may help: the server is unreachable, or reports that it is not ready.
func passing(err error) bool {
	var refused *client.Error
	if errors.As(err, &refused) {
		return refused.Status >= http.StatusInternalServerError || refused.Status == http.StatusTooManyRequests
	}
	var exit *exitError
	return !errors.As(err, &exit)
}

func orEmpty(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

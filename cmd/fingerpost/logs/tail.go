package logs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"fingerpost/api/client"
)

// tailOptions say what show prints.
type tailOptions struct {
	limit        int // of the newest entries
	follow, json bool
	every        time.Duration // between two questions of follow
}

// A tail prints the newest entries of a log, the mail log or the audit trail, and then, if asked, new ones as they come.
// Entries come in their order, the latest one last, and each one once. What others have written is harmless for a
// terminal.
type tail[Entry any] struct {
	newest func(ctx context.Context, n int) ([]Entry, error) // at most n, the latest one last
	news   func(ctx context.Context) ([]Entry, error)        // that came since; also with an error
	line   func(*Entry) string                               // for people
	passes func(error) bool                                  // a retry of news may help
}

// show prints the newest entries to out, and with tailOptions.follow new ones until ctx ends. It tells errs once that
// the server fails, and goes on when the server answers again.
func (l *tail[Entry]) show(ctx context.Context, out, errs io.Writer, o tailOptions) error {
	n := o.limit
	if o.follow {
		n = max(n, 1) // to know where to go on
	}
	newest, err := l.newest(ctx, n)
	if ctx.Err() != nil {
		return errors.New("interrupted")
	}
	if err != nil {
		return err
	}
	newest = newest[max(0, len(newest)-o.limit):]
	if o.json && !o.follow {
		enc := json.NewEncoder(out)
		enc.SetIndent("", "  ")
		enc.SetEscapeHTML(false)
		return enc.Encode(append([]Entry{}, newest...)) // [], not null
	}
	if err := l.print(out, o.json, newest); err != nil || !o.follow {
		return err
	}
	return l.poll(ctx, out, errs, o)
}

// poll prints the news every tailOptions.every, until ctx ends. It says once that the server fails, until it works again.
func (l *tail[Entry]) poll(ctx context.Context, out, errs io.Writer, o tailOptions) error {
	failing := false
	tick := time.NewTicker(o.every)
	defer tick.Stop()
	for {
		news, err := l.news(ctx)
		switch {
		case err == nil:
			failing = false
		case ctx.Err() != nil:
		case !l.passes(err):
			return err
		case !failing:
			failing = true
			fmt.Fprintf(errs, "fingerpost: %s; asking on\n", err)
		}
		if err := l.print(out, o.json, news); err != nil {
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
func (l *tail[Entry]) print(out io.Writer, asJSON bool, entries []Entry) (err error) {
	line := json.NewEncoder(out)
	line.SetEscapeHTML(false)
	for i := range entries {
		if asJSON {
			err = line.Encode(entries[i])
		} else {
			_, err = fmt.Fprintln(out, client.Printable(l.line(&entries[i]))) // text of others is harmless for terminals
		}
		if err != nil {
			return err
		}
	}
	return nil
}

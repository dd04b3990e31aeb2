// Package tail prints what has happened: the newest entries of a log, and then, if asked, what comes. The mail log and the
// audit trail are such logs.
//
// It promises that
//   - entries come in their order, the latest one last, and each one once,
//   - what others have written is harmless for a terminal,
//   - a server that fails for a while is told of once, and the printing goes on when it answers again.
//
// It needs a Log that finds the entries, which package client has for both. It knows no command and no flag.
package tail

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"fingerpost/api/client"
)

// Options say what Show prints.
type Options struct {
	Limit        int // of the newest entries
	Follow, JSON bool
	Every        time.Duration // between two questions of Follow
}

// A Log is what a command reads of what has happened.
type Log[Entry any] struct {
	Newest func(ctx context.Context, n int) ([]Entry, error) // at most n, the latest one last
	News   func(ctx context.Context) ([]Entry, error)        // that came since; also with an error
	Line   func(*Entry) string                               // for people
	Passes func(error) bool                                  // a retry of News may help
}

// Show prints the newest entries to out, and with Options.Follow what comes, until ctx ends. It tells errs that the server
// fails.
func (l *Log[Entry]) Show(ctx context.Context, out, errs io.Writer, o Options) error {
	n := o.Limit
	if o.Follow {
		n = max(n, 1) // to know where to go on
	}
	newest, err := l.Newest(ctx, n)
	if ctx.Err() != nil {
		return errors.New("interrupted")
	}
	if err != nil {
		return err
	}
	newest = newest[max(0, len(newest)-o.Limit):]
	if o.JSON && !o.Follow {
		enc := json.NewEncoder(out)
		enc.SetIndent("", "  ")
		enc.SetEscapeHTML(false)
		return enc.Encode(append([]Entry{}, newest...)) // [], not null
	}
	if err := l.print(out, o.JSON, newest); err != nil || !o.Follow {
		return err
	}
	return l.poll(ctx, out, errs, o)
}

// poll prints the news every Options.Every, until ctx ends. It says once that the server fails, until it works again.
func (l *Log[Entry]) poll(ctx context.Context, out, errs io.Writer, o Options) error {
	failing := false
	tick := time.NewTicker(o.Every)
	defer tick.Stop()
	for {
		news, err := l.News(ctx)
		switch {
		case err == nil:
			failing = false
		case ctx.Err() != nil:
		case !l.Passes(err):
			return err
		case !failing:
			failing = true
			fmt.Fprintf(errs, "fingerpost: %s; asking on\n", err)
		}
		if err := l.print(out, o.JSON, news); err != nil {
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
func (l *Log[Entry]) print(out io.Writer, asJSON bool, entries []Entry) (err error) {
	line := json.NewEncoder(out)
	line.SetEscapeHTML(false)
	for i := range entries {
		if asJSON {
			err = line.Encode(entries[i])
		} else {
			_, err = fmt.Fprintln(out, client.Printable(l.Line(&entries[i]))) // text of others is harmless for terminals
		}
		if err != nil {
			return err
		}
	}
	return nil
}

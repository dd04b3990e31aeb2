package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

// A command is one measurement.
type command struct {
	name  string
	brief string
	// tune changes defaults that do not fit the command, before its flags are parsed. May be nil.
	tune func(o *options)
	run  func(ctx context.Context, b *bench) (*report, error)
}

// commands lists the measurements, in the order in which all runs them.
func commands() []command {
	return []command{
		{"resolve", "requests a second, latency and CPU of resolve, against baselines and other servers", nil, runResolve},
		{"reload", "from save to visible; resolve while a file is rewritten every 100 ms", nil, runReload},
		{"write", "durable writes, against a bare program with the same fsyncs; resolve while writes come in", nil, runWrite},
		{"mail", "sends against a bare SMTP client with the same syncs; beside a dead server; the mail log", tuneMail, runMail},
		{"flood", "memory and hit ratio around 1,000,000 unknown domains", nil, runFlood},
		{"start", "cold start, warm start, resident memory", nil, runStart},
		{"miss", "CPU of a resolve that goes to the store, against one that the cache answers", nil, runMiss},
		{"checkout", "resolve while git switches every file at once", nil, runCheckout},
		{"feed", "resolve while files change, with 1,000 subscribers of the change feed and without", nil, runFeed},
		{"scale", "resolve, start and memory from 1,000 domains to a million and more", nil, runScale},
	}
}

// A desk is a sub-command that does not measure but reads results.
type desk struct {
	name  string
	brief string
	run   func(args []string, stdout, stderr io.Writer) int
}

func desks() []desk {
	return []desk{
		{"compare", "two results: ratios with confidence; exit code 1 where something became slower beyond noise", runCompare},
		{"report", "charts, and the figures in bench/README.md, from the results in bench/results", runWriteUp},
	}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run is main without the process: it returns the exit code. 0: measured, and every goal met; 1: a goal missed, or a
// regression; 2: wrong usage, or files that cannot be compared; 3: could not run; 4: the machine was too noisy for a
// verdict, and no goal was missed.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		usage(stderr)
		return 2
	}
	switch args[0] {
	case floorCommand:
		return exitCode(runFloor(args[1:], os.Stdin, stdout), stderr)
	case allCommand:
		return measure(ctx, allCommand, commands(), args[1:], stdout, stderr)
	case "help", "-h", "-help", "--help":
		usage(stderr)
		return 0
	}
	for _, c := range commands() {
		if c.name == args[0] {
			return measure(ctx, c.name, []command{c}, args[1:], stdout, stderr)
		}
	}
	for _, d := range desks() {
		if d.name == args[0] {
			return d.run(args[1:], stdout, stderr)
		}
	}
	fmt.Fprintf(stderr, "there is no command %q\n", args[0])
	usage(stderr)
	return 2
}

func usage(w io.Writer) {
	fmt.Fprintln(w, "usage: go run ./bench COMMAND [flags]; COMMAND is one of")
	fmt.Fprintf(w, "  %-10s%s\n", allCommand, "all of these below that measure, with sizes that together take less than ten minutes")
	for _, c := range commands() {
		fmt.Fprintf(w, "  %-10s%s\n", c.name, c.brief)
	}
	for _, d := range desks() {
		fmt.Fprintf(w, "  %-10s%s\n", d.name, d.brief)
	}
	fmt.Fprintln(w, "COMMAND -h lists the flags of a command")
}

// measure runs commands, prints their reports and saves them to a file.
func measure(ctx context.Context, name string, list []command, args []string, stdout, stderr io.Writer) int {
	benches := make([]*bench, len(list))
	for i, c := range list {
		b, err := parse(name, c, args, stderr)
		switch {
		case errors.Is(err, flag.ErrHelp):
			return 0
		case err != nil:
			return 2
		}
		benches[i] = b
	}
	o := benches[0].options
	if err := os.MkdirAll(o.work, 0o755); err != nil {
		return exitCode(fmt.Errorf("bench %s: %w", name, err), stderr)
	}
	r := newResult(ctx, name, o)
	fmt.Fprintf(stderr, "%s on %s\n", r.Source, r.Machine)
	r.runAll(ctx, list, benches)
	if len(r.Reports) == 0 && !o.json {
		return r.exitCode() // the reason was printed already
	}
	var err error
	if o.json {
		err = r.writeJSON(stdout)
	} else {
		err = r.writeText(stdout)
	}
	if err != nil {
		return exitCode(fmt.Errorf("bench %s: write the result: %w", name, err), stderr)
	}
	if len(r.Reports) == 0 {
		return r.exitCode()
	}
	if err := o.keep(r, stderr); err != nil {
		return exitCode(fmt.Errorf("bench %s: %w", name, err), stderr)
	}
	return r.exitCode()
}

// parse reads a command's flags over its defaults, or over those of all.
func parse(name string, c command, args []string, stderr io.Writer) (*bench, error) {
	o := defaultOptions()
	if c.tune != nil {
		c.tune(&o)
	}
	if name == allCommand {
		tuneAll(&o)
	}
	flags := flag.NewFlagSet("bench "+name, flag.ContinueOnError)
	flags.SetOutput(stderr)
	o.register(flags)
	if err := flags.Parse(args); err != nil {
		return nil, err // it was printed already
	}
	err := o.check()
	if err == nil && flags.NArg() > 0 {
		err = fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if err != nil {
		fmt.Fprintln(stderr, "bench "+name+":", err)
		return nil, err
	}
	return &bench{options: o, progress: stderr}, nil
}

// keep saves the result, unless -save is false.
func (o *options) keep(r *result, stderr io.Writer) error {
	if !o.save {
		return nil
	}
	dir := o.to
	if dir == "" {
		folder := benchFolder()
		if folder == "" {
			fmt.Fprintln(stderr, "the result is not kept: this is no checkout of fingerpost, and -results names no folder")
			return nil
		}
		dir = filepath.Join(folder, "results")
	}
	path, err := r.save(dir)
	if err != nil {
		return err
	}
	fmt.Fprintf(stderr, "the result is in %s\n", path)
	return nil
}

// runAll runs the commands one after the other, and continues after one that fails.
func (r *result) runAll(ctx context.Context, list []command, benches []*bench) {
	built := "" // built once, so that all commands measure the same even if the source is edited
	for i, c := range list {
		b := benches[i]
		if b.binary == "" {
			b.binary = built
		}
		if len(list) > 1 {
			b.say("\n[%d of %d, %.0f s so far] %s: %s", i+1, len(list), time.Since(r.Began).Seconds(), c.name, c.brief)
		}
		began := time.Now()
		rep, err := c.run(ctx, b)
		built = b.binary
		if err == nil {
			rep.Command, rep.Seconds = c.name, time.Since(began).Seconds()
			r.Reports = append(r.Reports, rep)
			continue
		}
		b.say("bench %s: %v", c.name, err)
		r.Failures = append(r.Failures, failure{Command: c.name, Error: err.Error()})
		if _, ok := errors.AsType[usageError](err); ok {
			r.usage = true
		}
		if ctx.Err() != nil {
			return // interrupted: what is there is saved
		}
	}
}

// A usageError reports flags that do not go together in a command.
type usageError struct{ error }

func exitCode(err error, stderr io.Writer) int {
	if err == nil {
		return 0
	}
	fmt.Fprintln(stderr, err)
	if _, ok := errors.AsType[usageError](err); ok {
		return 2
	}
	return 3
}

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// A command is one measurement.
type command struct {
	name  string
	brief string
	// tune changes defaults that do not fit the command, before its flags are parsed. May be nil.
	tune func(o *options)
	run  func(ctx context.Context, b *bench) (*report, error)
}

func commands() []command {
	return []command{
		{"resolve", "requests a second and CPU per resolve hit, against the floor", nil, runResolve},
		{"scale", "the hit path at 1,000 and at 1,000,000 domains", nil, runScale},
		{"miss", "CPU of a resolve that goes to the store, against one that the cache answers", nil, runMiss},
		{"reload", "from save to visible; resolve while a file is rewritten every 100 ms", nil, runReload},
		{"write", "durable writes, against a bare program with the same fsyncs; resolve while writes come in", nil, runWrite},
		{"checkout", "resolve while git switches every file at once", nil, runCheckout},
		{"start", "cold start, warm start, resident memory", nil, runStart},
		{"feed", "resolve while files change, with 1,000 subscribers of the change feed and without", nil, runFeed},
		{"mail", "sends against a bare SMTP client with the same syncs; beside a dead server; the mail log", tuneMail, runMail},
		{"flood", "memory and hit ratio around 1,000,000 unknown domains", nil, runFlood},
	}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run is main without the process: it returns the exit code. 0: measured, and every goal met; 1: a goal missed;
// 2: wrong usage; 3: could not run.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) > 0 && args[0] == floorCommand {
		return exitCode(runFloor(args[1:], os.Stdin, stdout), stderr)
	}
	if len(args) > 0 && args[0] == bareMailCommand {
		return exitCode(runBareMail(args[1:], os.Stdin, stdout), stderr)
	}
	if len(args) > 0 {
		for _, c := range commands() {
			if c.name == args[0] {
				return measureCommand(ctx, c, args[1:], stdout, stderr)
			}
		}
	}
	fmt.Fprintln(stderr, "usage: go run ./bench COMMAND [flags]; COMMAND is one of")
	for _, c := range commands() {
		fmt.Fprintf(stderr, "  %-10s%s\n", c.name, c.brief)
	}
	return 2
}

func measureCommand(ctx context.Context, c command, args []string, stdout, stderr io.Writer) int {
	o := defaultOptions()
	if c.tune != nil {
		c.tune(&o)
	}
	flags := flag.NewFlagSet("bench "+c.name, flag.ContinueOnError)
	flags.SetOutput(stderr)
	o.register(flags)
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return 0
		}
		return 2
	}
	err := o.check()
	if err == nil && flags.NArg() > 0 {
		err = fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if err != nil {
		fmt.Fprintln(stderr, "bench "+c.name+":", err)
		return 2
	}
	load := loadAverage()
	rep, err := c.run(ctx, &bench{options: o, progress: stderr})
	if err != nil {
		return exitCode(fmt.Errorf("bench %s: %w", c.name, err), stderr)
	}
	rep.Command = c.name
	rep.Machine = describeMachine()
	if load > quietLoad {
		rep.note("The machine was busy before this began (load %.2f): ratios are rough, and latencies mean little.", load)
	}
	if o.json {
		err = rep.writeJSON(stdout)
	} else {
		err = rep.writeText(stdout)
	}
	if err != nil {
		return exitCode(fmt.Errorf("bench %s: write the report: %w", c.name, err), stderr)
	}
	if rep.missed() {
		return 1
	}
	return 0
}

// A usageError is about flags that do not go together in a command.
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

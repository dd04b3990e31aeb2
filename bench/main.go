// Command bench measures fingerpost on this machine, together with baselines in the same run.
//
//	go -C bench run . all                     every measurement, in less than ten minutes
//	go -C bench run . resolve                 one of them; "go -C bench run . help" lists all
//	go -C bench run . compare A.json B.json   what became better or worse between two results
//	go -C bench run . report                  the figures in README.md, from the results
//
// It generates a seeded corpus, builds the real binary, starts it and talks to it over real sockets. It checks every
// answer's content, not only its status. It prints the results as a table, and saves them in bench/results with the
// machine's fingerprint. README.md describes the methods, the baselines, and what the figures do
// not show.
//
// A command is a function that returns a report: rows, each with its baseline. Whatever it starts or changes ends with
// the command, see bench.atEnd. What it compares are sides: each has workers that ask, write or send. A load lets them
// work for a while, a turn measures one round of a load, and bench.alternate is the only loop over rounds.
//
// It needs Linux.
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
	"time"
)

// A command is one measurement.
type command struct {
	name  string
	brief string
	run   func(ctx context.Context, b *bench) (*report, error)
}

// commands lists the measurements, in the order in which all runs them.
func commands() []command {
	return []command{
		{"resolve", "requests a second, latency and CPU of resolve, against the floor", runResolve},
		{"reload", "from save to visible; resolve while a file is rewritten every 100 ms", runReload},
		{"write", "durable writes, against a bare program with the same fsyncs; resolve while writes come in", runWrite},
		{"mail", "sends with TLS and without; next to a dead server", runMail},
		{"start", "cold start, warm start, resident memory", runStart},
		{"gate", "CPU of a gateway's check and of /api/auth/me, against a resolve hit and the floor", runGate},
		{"cluster", "from a write to all edges, against a bare NATS; what a cluster costs its authority and an edge",
			runCluster},
		{"client", "lookups in the memory of a client, against resolve; its memory; from a write to its answer", runClient},
		{"scale", "resolve, start and memory from 1,000 domains to a million and more", runScale},
	}
}

// allCommand runs every measurement, one after the other.
const allCommand = "all"

const otherCommands = `  all       all of these, with sizes that together take less than ten minutes
  speed     two builds: CPU of each operation, of this checkout's build against another binary
  compare   two results: changes with significance; exit code 1 where something became slower beyond noise
  report    the figures in bench/README.md, from the results in bench/results
COMMAND -h lists the flags of a command
`

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
	case allCommand:
		return measure(ctx, allCommand, commands(), args[1:], stdout, stderr)
	case speedCommand:
		return measure(ctx, speedCommand, []command{speed}, args[1:], stdout, stderr)
	case "compare":
		return runCompare(args[1:], stdout, stderr)
	case "report":
		return runReport(args[1:], stdout, stderr)
	case floorCommand:
		return failed(runFloor(ctx, args[1:]), stderr)
	case "help", "-h", "-help", "--help":
		usage(stderr)
		return 0
	}
	for _, c := range commands() {
		if c.name == args[0] {
			return measure(ctx, c.name, []command{c}, args[1:], stdout, stderr)
		}
	}
	fmt.Fprintf(stderr, "there is no command %q\n", args[0])
	usage(stderr)
	return 2
}

func usage(w io.Writer) {
	fmt.Fprintln(w, "usage: go -C bench run . COMMAND [flags]; COMMAND is one of")
	for _, c := range commands() {
		fmt.Fprintf(w, "  %-10s%s\n", c.name, c.brief)
	}
	fmt.Fprint(w, otherCommands)
}

// failed prints an error and returns the exit code for it.
func failed(err error, stderr io.Writer) int {
	if err == nil {
		return 0
	}
	fmt.Fprintln(stderr, err)
	return 3
}

// parseFlags returns false and an exit code if the command cannot go on: after -h, or after a wrong flag, which is
// printed.
func parseFlags(flags *flag.FlagSet, args []string, operands int, stderr io.Writer) (code int, ok bool) {
	flags.SetOutput(stderr)
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0, false
	case err != nil:
		return 2, false
	case flags.NArg() != operands:
		fmt.Fprintf(stderr, "bench %s: %d arguments after the flags, want %d\n", flags.Name(), flags.NArg(), operands)
		flags.Usage()
		return 2, false
	}
	return 0, true
}

// measure runs commands, prints their reports and saves them to a file.
func measure(ctx context.Context, name string, list []command, args []string, stdout, stderr io.Writer) int {
	o := defaultOptions(name)
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	o.register(flags, name)
	if code, ok := parseFlags(flags, args, 0, stderr); !ok {
		return code
	}
	if err := o.check(name); err != nil {
		fmt.Fprintf(stderr, "bench %s: %v\n", name, err)
		return 2
	}
	if err := os.MkdirAll(o.work, 0o755); err != nil {
		return failed(fmt.Errorf("bench %s: %w", name, err), stderr)
	}
	r := newResult(ctx, name, o)
	fmt.Fprintf(stderr, "%s on %s\n", r.Source, r.Machine)
	r.runAll(ctx, list, o, stderr)
	if len(r.Reports) == 0 {
		return r.exitCode() // the reason was printed already
	}
	err := r.writeText(stdout)
	if err == nil && o.results != "" {
		var path string
		if path, err = r.save(o.results); err == nil {
			fmt.Fprintf(stderr, "the result is in %s\n", path)
		}
	}
	if err != nil {
		return failed(fmt.Errorf("bench %s: %w", name, err), stderr)
	}
	return r.exitCode()
}

// runAll runs the commands one after the other, and continues after one that fails.
func (r *result) runAll(ctx context.Context, list []command, o options, progress io.Writer) {
	for i, c := range list {
		b := &bench{options: o, progress: progress}
		if len(list) > 1 {
			b.say("\n[%d of %d, %.0f s so far] %s: %s", i+1, len(list), time.Since(r.Began).Seconds(), c.name, c.brief)
		}
		began := time.Now()
		rep, err := c.run(ctx, b)
		if err = errors.Join(err, b.end()); err == nil {
			rep.Command, rep.Seconds = c.name, time.Since(began).Seconds()
			r.Reports = append(r.Reports, rep)
		} else {
			b.say("bench %s: %v", c.name, err)
			r.Failures = append(r.Failures, failure{Command: c.name, Error: err.Error()})
		}
		if ctx.Err() != nil {
			return // interrupted: what is there is saved
		}
		o.binary = b.binary // built once, so that all commands measure the same even if the source is edited
	}
}

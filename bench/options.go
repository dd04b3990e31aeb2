package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// options are the flags that every command takes, and those of single commands. register documents each.
type options struct {
	work, binary, results string

	corpus      corpusParams
	connections int // how the server is asked
	rounds      int
	round       time.Duration

	scale   scaleOptions
	mail    mailOptions
	cluster clusterOptions
	client  clientOptions
	speed   speedOptions
}

// intList is a flag of comma-separated numbers: positive, distinct, in ascending order.
type intList []int

func (l *intList) String() string {
	var text []string
	for _, n := range *l {
		text = append(text, strconv.Itoa(n))
	}
	return strings.Join(text, ",")
}

func (l *intList) Set(text string) error {
	var list intList
	for field := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(field))
		if err != nil || n < 1 {
			return fmt.Errorf("%q must be numbers above 0 with commas between them, such as 1,16,64", text)
		}
		list = append(list, n)
	}
	slices.Sort(list)
	*l = slices.Compact(list)
	return nil
}

// defaultOptions are the defaults of a command. Those of all make it take less than ten minutes on two cores.
func defaultOptions(command string) options {
	o := options{
		work: filepath.Join(os.TempDir(), "fingerpost-bench"), results: filepath.Join(benchFolder(), "results"),
		corpus:      corpusParams{Projects: 100_000, Domains: 300_000},
		connections: 64, rounds: 7, round: 3 * time.Second,
		scale:   scaleOptions{sizes: intList{1000, 10_000, 100_000, 1_000_000}},
		mail:    mailOptions{waiting: 10_000, listed: 1_000_000},
		cluster: clusterOptions{edges: intList{1, 5, 10, 20}, followers: 1000},
		client:  clientOptions{entries: intList{10_000, 1_000_000}, clients: 100, writes: 50},
	}
	switch command {
	case speedCommand:
		o.corpus.Projects, o.corpus.Domains = 5_000, 15_000
		o.rounds, o.round, o.results = 8, 2*time.Second, ""
	case "mail":
		o.rounds = 5
	case allCommand:
		o.corpus.Projects, o.corpus.Domains = 10_000, 30_000
		o.rounds, o.round = 5, time.Second
		o.scale = scaleOptions{sizes: intList{1000, 10_000, 100_000}}
		o.mail = mailOptions{waiting: 2000, listed: 100_000}
		o.cluster = clusterOptions{edges: intList{1, 5}, followers: 100}
		o.client = clientOptions{entries: intList{10_000}, clients: 100, writes: 20}
	}
	return o
}

// register registers the flags of a command.
func (o *options) register(f *flag.FlagSet, command string) {
	f.StringVar(&o.work, "work", o.work, "folder for corpora, stores and the built binary; reused by later runs")
	f.StringVar(&o.binary, "binary", o.binary, "a ready fingerpost binary (default: built from this checkout)")
	f.StringVar(&o.results, "results", o.results, "folder that keeps the result as a file; empty keeps none")
	f.IntVar(&o.corpus.Projects, "projects", o.corpus.Projects, "projects, one file each")
	f.IntVar(&o.corpus.Domains, "domains", o.corpus.Domains, "domains in all projects; a multiple of -projects")
	f.IntVar(&o.connections, "connections", o.connections, "keep-alive connections")
	f.IntVar(&o.rounds, "rounds", o.rounds, "interleaved rounds")
	f.DurationVar(&o.round, "round", o.round, "length of one round of one side")
	own := map[string]func(*flag.FlagSet){
		"scale": o.scale.register, "mail": o.mail.register, "cluster": o.cluster.register,
		"client":     o.client.register,
		speedCommand: o.speed.register,
	}
	for name, register := range own {
		if name == command || command == allCommand && name != speedCommand {
			register(f)
		}
	}
}

func (o *options) check(command string) error {
	if o.connections < 1 || o.rounds < 1 || o.round <= 0 {
		return errors.New("-connections, -rounds and -round must be positive")
	}
	if (command == "write" || command == allCommand) && o.corpus.Projects < o.connections {
		return fmt.Errorf("-projects is %d, it must be at least -connections (%d): each client writes files of its own",
			o.corpus.Projects, o.connections)
	}
	if command == speedCommand {
		if err := o.checkSpeed(); err != nil {
			return err
		}
	}
	return errors.Join(o.scale.check(), o.mail.check(), o.corpus.check())
}

// bench is one run of a command.
type bench struct {
	options
	progress io.Writer
	cleanup  []func() error
}

// say prints progress for the person at the terminal.
func (b *bench) say(format string, args ...any) {
	fmt.Fprintf(b.progress, format+"\n", args...)
}

// atEnd lets end call f, before what was registered earlier.
func (b *bench) atEnd(f func() error) { b.cleanup = append(b.cleanup, f) }

// end stops what the command has started and puts back what it has changed.
func (b *bench) end() error {
	var errs []error
	for _, f := range slices.Backward(b.cleanup) {
		errs = append(errs, f())
	}
	b.cleanup = nil
	return errors.Join(errs...)
}

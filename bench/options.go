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

// options are the flags that every command takes. register documents each.
type options struct {
	work, binary, results, cacheSize string
	base, serverCPU                  string // of speed
	json, fresh, save, peers, git    bool

	corpus corpusParams

	// how the server is asked
	connections, rounds, warmUp int
	round                       time.Duration
	rate, zipf                  float64

	saves               int
	writeRate           float64
	logEntries, waiting int
	sweep, sizes        intList
	clients, edges      intList
	followers           int
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
		work: filepath.Join(os.TempDir(), "fingerpost-bench"), save: true, peers: true,
		corpus:      corpusParams{Projects: 100_000, Domains: 300_000, Seed: 1},
		connections: 64, rounds: 7, round: 3 * time.Second, zipf: 1.01, warmUp: scheduleLen,
		saves: 200, writeRate: 50, logEntries: 100_000, waiting: 10_000,
		sweep: intList{1, 4, 16, 64, 256}, sizes: intList{1000, 10_000, 100_000, 1_000_000}, clients: intList{1, 4, 16},
		edges: intList{1, 5, 10, 20}, followers: 1000,
	}
	switch command {
	case speedCommand:
		o.corpus.Projects, o.corpus.Domains = 5_000, 15_000
		o.rounds, o.round, o.save = 8, 2*time.Second, false
	case "mail":
		o.rounds = 5
	case allCommand:
		o.corpus.Projects, o.corpus.Domains = 10_000, 30_000
		o.rounds, o.round = 5, time.Second
		o.saves, o.logEntries, o.waiting = 100, 20_000, 2000
		o.edges, o.followers = intList{1, 5, 20}, 100
		o.sweep, o.sizes = intList{1, 16, 256}, intList{1000, 10_000, 100_000}
	}
	return o
}

func (o *options) register(f *flag.FlagSet) {
	f.StringVar(&o.work, "work", o.work, "folder for corpora, stores and the built binary; reused by later runs")
	f.StringVar(&o.binary, "binary", o.binary, "a ready fingerpost binary (default: built from this checkout)")
	f.StringVar(&o.base, "base", o.base, "speed: the binary to compare with")
	f.StringVar(&o.serverCPU, "server-cpu", o.serverCPU,
		"processors that servers may use, as in taskset -c (default: all)")
	f.BoolVar(&o.json, "json", o.json, "print the result as JSON")
	f.BoolVar(&o.save, "save", o.save, "keep the result as a file")
	f.StringVar(&o.results, "results", o.results, "folder of kept results (default: bench/results of this checkout)")
	f.BoolVar(&o.peers, "peers", o.peers, "resolve: measure nginx, too, where it is installed")
	f.Var(&o.sweep, "sweep", "resolve: numbers of connections that are compared")
	f.Var(&o.sizes, "sizes", "scale: numbers of domains that are compared, each a multiple of 10")
	f.Var(&o.clients, "clients", "write: numbers of clients, in addition to -connections")
	f.BoolVar(&o.git, "git", o.git, "write: measure serve --git, too")
	f.IntVar(&o.followers, "followers", o.followers, "cluster: followers in the bench's process, which only keep hashes")
	f.Var(&o.edges, "edges", "cluster: numbers of edges that are compared")
	f.BoolVar(&o.fresh, "fresh", o.fresh, "delete the stores of earlier runs first")
	f.IntVar(&o.corpus.Projects, "projects", o.corpus.Projects, "projects, one file each")
	f.IntVar(&o.corpus.Domains, "domains", o.corpus.Domains, "domains in all projects; a multiple of -projects")
	f.Uint64Var(&o.corpus.Seed, "seed", o.corpus.Seed, "seed of corpus and load")
	f.IntVar(&o.connections, "connections", o.connections, "keep-alive connections")
	f.IntVar(&o.rounds, "rounds", o.rounds, "interleaved rounds")
	f.DurationVar(&o.round, "round", o.round, "length of one round of one side")
	f.Float64Var(&o.rate, "rate", o.rate, "requests a second at a constant rate (default: half of what is reached)")
	f.Float64Var(&o.zipf, "zipf", o.zipf, "exponent of the Zipf distribution of hits, above 1")
	f.IntVar(&o.warmUp, "warm-up", o.warmUp, "questions before anything is measured")
	f.StringVar(&o.cacheSize, "cache-size", o.cacheSize, "the server's --cache-size (default: the server's own)")
	f.IntVar(&o.saves, "saves", o.saves,
		"reload: saves that are timed, in each way of saving; cluster: writes that are timed in a round")
	f.Float64Var(&o.writeRate, "write-rate", o.writeRate, "write: writes a second while resolve is asked")
	f.IntVar(&o.logEntries, "log-entries", o.logEntries, "mail: entries of the log that is read; earlier ones stay")
	f.IntVar(&o.waiting, "waiting", o.waiting, "mail: mails that wait for a dead server")
}

func (o *options) check(command string) error {
	switch {
	case o.connections < 1 || o.rounds < 1 || o.round <= 0 || o.warmUp < 1:
		return errors.New("-connections, -rounds, -round and -warm-up must be positive")
	case o.zipf <= 1:
		return fmt.Errorf("-zipf is %v, it must be above 1", o.zipf)
	case o.saves < 1:
		return errors.New("-saves must be positive")
	case !(o.writeRate > 0 && o.writeRate <= 1e6):
		return fmt.Errorf("-write-rate is %v, it must be above 0 and at most 1,000,000", o.writeRate)
	case o.logEntries <= deepPage*logPage || o.waiting < 1:
		return fmt.Errorf("-log-entries must be more than %d, and -waiting positive", deepPage*logPage)
	case (command == "write" || command == allCommand) && o.corpus.Projects < o.connections:
		return fmt.Errorf("-projects is %d, it must be at least -connections (%d): each client writes files of its own",
			o.corpus.Projects, o.connections)
	}
	if command == speedCommand {
		if err := o.checkSpeed(); err != nil {
			return err
		}
	}
	for _, n := range o.sizes {
		if n%scalePerProject != 0 || n < scaleAsked || n/scalePerProject > maxProjects {
			return fmt.Errorf("-sizes has %d, each must be a multiple of %d from %d to %d",
				n, scalePerProject, scaleAsked, maxProjects*scalePerProject)
		}
	}
	return o.corpus.check()
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

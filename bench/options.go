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

// options are the flags that every command takes.
type options struct {
	work   string // where corpora, stores and the binary stay between runs
	binary string // a ready fingerpost; empty: built from the checkout
	json   bool
	fresh  bool   // delete the stores of earlier runs
	save   bool   // keep the result as a file
	to     string // the folder of results; empty: bench/results of the checkout

	corpus corpusParams
	load   loadParams

	cacheSize string // --cache-size of the server; empty: its default
	saves     int    // reload: how many saves are timed
	unknown   int    // flood: how many unknown domains are asked
	streams   int    // feed: how many subscribe

	changeEvery time.Duration // feed: between two saves
	writeRate   float64       // write: writes a second while resolve is asked
	logEntries  int           // mail: entries of the log that is read
	waiting     int           // mail: mails that wait for a dead server

	peers   bool    // resolve: compare with other servers, if they are installed
	sweep   intList // resolve: numbers of connections
	sizes   intList // scale: numbers of domains
	clients intList // write: numbers of clients, in addition to -connections
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

// loadParams say how the server is asked.
type loadParams struct {
	connections int
	rounds      int
	round       time.Duration // length of one round of one side
	rate        float64       // requests a second of the open loop; 0: half of what was measured
	zipf        float64       // exponent of the distribution of hits, above 1
	warmUp      int           // questions before anything is measured
}

func defaultOptions() options {
	return options{
		work:    filepath.Join(os.TempDir(), "fingerpost-bench"),
		corpus:  corpusParams{Projects: 100_000, Domains: 300_000, Seed: 1},
		load:    loadParams{connections: 64, rounds: 7, round: 3 * time.Second, zipf: 1.01, warmUp: scheduleLen},
		saves:   200,
		unknown: 1_000_000,
		streams: 1000, changeEvery: 200 * time.Millisecond, writeRate: 50,
		logEntries: 100_000, waiting: 10_000,
		save: true, peers: true,
		sweep: intList{1, 4, 16, 64, 256}, sizes: intList{1000, 10_000, 100_000, 1_000_000}, clients: intList{1, 4, 16},
	}
}

func (o *options) register(f *flag.FlagSet) {
	f.StringVar(&o.work, "work", o.work, "folder for corpora, stores and the built binary; reused by later runs")
	f.StringVar(&o.binary, "binary", o.binary, "a ready fingerpost binary (default: built from this checkout)")
	f.BoolVar(&o.json, "json", o.json, "print the result as JSON")
	f.BoolVar(&o.save, "save", o.save, "keep the result as a file")
	f.StringVar(&o.to, "results", o.to, "folder of the results that are kept (default: bench/results of this checkout)")
	f.BoolVar(&o.peers, "peers", o.peers, "resolve: measure other servers, too, where they are installed")
	f.Var(&o.sweep, "sweep", "resolve: numbers of connections that are compared")
	f.Var(&o.sizes, "sizes", "scale: numbers of domains that are compared, each a multiple of 10")
	f.Var(&o.clients, "clients", "write: numbers of clients, beside -connections")
	f.BoolVar(&o.fresh, "fresh", o.fresh, "delete the stores of earlier runs first")
	f.IntVar(&o.corpus.Projects, "projects", o.corpus.Projects, "projects, one file each")
	f.IntVar(&o.corpus.Domains, "domains", o.corpus.Domains, "domains in all projects; a multiple of -projects")
	f.Uint64Var(&o.corpus.Seed, "seed", o.corpus.Seed, "seed of corpus and load")
	f.IntVar(&o.load.connections, "connections", o.load.connections, "keep-alive connections")
	f.IntVar(&o.load.rounds, "rounds", o.load.rounds, "interleaved rounds")
	f.DurationVar(&o.load.round, "round", o.load.round, "length of one round of one side; also of quiet and busy phases (three rounds each)")
	f.Float64Var(&o.load.rate, "rate", o.load.rate, "requests a second at a constant rate (default: half of what the machine reaches)")
	f.Float64Var(&o.load.zipf, "zipf", o.load.zipf, "exponent of the Zipf distribution of hits, above 1")
	f.IntVar(&o.load.warmUp, "warm-up", o.load.warmUp, "questions before anything is measured")
	f.StringVar(&o.cacheSize, "cache-size", o.cacheSize, "the server's -cache-size (default: the server's own)")
	f.IntVar(&o.saves, "saves", o.saves, "reload: saves that are timed, in each way of saving")
	f.IntVar(&o.streams, "streams", o.streams, "feed: subscribers of the change feed")
	f.DurationVar(&o.changeEvery, "change-every", o.changeEvery, "feed: time between two saves of a file")
	f.Float64Var(&o.writeRate, "write-rate", o.writeRate, "write: writes a second while resolve is asked")
	f.IntVar(&o.logEntries, "log-entries", o.logEntries, "mail: entries of the log that is read; those of earlier runs stay")
	f.IntVar(&o.waiting, "waiting", o.waiting, "mail: mails that wait for a dead server")
	f.IntVar(&o.unknown, "unknown", o.unknown, "flood: unknown domains that are asked")
}

func (o *options) check() error {
	switch {
	case o.load.connections < 1 || o.load.rounds < 1 || o.load.round <= 0 || o.load.warmUp < 1:
		return errors.New("-connections, -rounds, -round and -warm-up must be positive")
	case o.load.zipf <= 1:
		return fmt.Errorf("-zipf is %v, it must be above 1", o.load.zipf)
	case o.saves < 1 || o.unknown < 1 || o.streams < 1 || o.changeEvery <= 0:
		return errors.New("-saves, -unknown, -streams and -change-every must be positive")
	case !(o.writeRate > 0 && o.writeRate <= 1e6):
		return fmt.Errorf("-write-rate is %v, it must be above 0 and at most 1,000,000", o.writeRate)
	case o.logEntries <= deepPage*logPage || o.waiting < 1:
		return fmt.Errorf("-log-entries must be more than %d, and -waiting positive", deepPage*logPage)
	}
	for _, n := range o.sizes {
		if n%scalePerProject != 0 || n < scaleAsked || n/scalePerProject > maxProjects {
			return fmt.Errorf("-sizes has %d, each must be a multiple of %d from %d to %d", n, scalePerProject, scaleAsked, maxProjects*scalePerProject)
		}
	}
	return o.corpus.check()
}

// phase returns the length of a phase that is not repeated.
func (o *options) phase() time.Duration { return 3 * o.load.round }

// bench is one run of a command.
type bench struct {
	options
	progress io.Writer
}

// say prints progress for the person at the terminal.
func (b *bench) say(format string, args ...any) {
	fmt.Fprintf(b.progress, format+"\n", args...)
}

// Command report reads "go test -json" from its standard input. It prints the output of what failed and a line for each
// package, then the slowest tests, the figures of campaigns, and the counts. It exits with 1 if anything failed, or if
// no test ran.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

type event struct {
	Action, Package, Test, Output, ImportPath string
	Elapsed                                   float64
}

// A test is a top-level test, or with no name the whole package.
type test struct{ pkg, name string }

type timed struct {
	test
	seconds float64
}

type report struct {
	output                  map[test]*strings.Builder // of what is still running, subtests with their test
	slowest                 []timed
	figures                 []string
	failures                []test
	passed, failed, skipped int
}

func main() {
	label := flag.String("label", "tests", "what these tests are")
	most := flag.Int("slowest", 20, "how many of the slowest tests are listed")
	flag.Parse()
	began := time.Now()
	r := &report{output: map[test]*strings.Builder{}}
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 64<<20)
	for in.Scan() {
		var e event
		if json.Unmarshal(in.Bytes(), &e) != nil {
			fmt.Println(in.Text()) // of the go command itself
			continue
		}
		r.take(e)
	}
	r.print(*label, *most, time.Since(began))
	if r.failed > 0 || len(r.failures) > 0 || r.passed == 0 || in.Err() != nil {
		os.Exit(1)
	}
}

func (r *report) take(e event) {
	top, _, sub := strings.Cut(e.Test, "/")
	at := test{e.Package + e.ImportPath, top}
	switch e.Action {
	case "output", "build-output":
		if r.output[at] == nil {
			r.output[at] = new(strings.Builder)
		}
		r.output[at].WriteString(e.Output)
		if _, figure, ok := strings.Cut(e.Output, "campaign: "); ok {
			r.figures = append(r.figures, fmt.Sprintf("%s: %s", top, strings.TrimSpace(figure)))
		}
	case "pass", "fail", "skip":
		if sub {
			return
		}
		r.end(at, e)
	case "build-fail":
		fmt.Print(r.output[at])
		r.failures = append(r.failures, at)
	}
}

func (r *report) end(at test, e event) {
	if e.Action == "fail" {
		r.failures = append(r.failures, at)
		if out := r.output[at]; out != nil {
			fmt.Print(out)
		}
	}
	delete(r.output, at)
	if at.name == "" {
		fmt.Printf("%-5s %s %.1fs\n", e.Action, at.pkg, e.Elapsed)
		return
	}
	switch e.Action {
	case "pass":
		r.passed++
	case "fail":
		r.failed++
	case "skip":
		r.skipped++
	}
	r.slowest = append(r.slowest, timed{at, e.Elapsed})
}

func (r *report) print(label string, most int, took time.Duration) {
	slices.SortFunc(r.slowest, func(a, b timed) int { return int(1000 * (b.seconds - a.seconds)) })
	fmt.Printf("\n-- %s: %.0f s; the slowest tests\n", label, took.Seconds())
	for _, t := range r.slowest[:min(most, len(r.slowest))] {
		fmt.Printf("%8.1f s  %s %s\n", t.seconds, strings.TrimPrefix(t.pkg, "fingerpost/"), t.name)
	}
	for _, figure := range r.figures {
		fmt.Println("figure:", figure)
	}
	for _, t := range r.failures {
		fmt.Println("FAILED:", t.pkg, t.name)
	}
	fmt.Printf("%d passed, %d failed, %d skipped\n", r.passed, r.failed, r.skipped)
}

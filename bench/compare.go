package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"golang.org/x/perf/benchmath"
)

// A change is one if the rounds of both results differ at this level of significance, and the medians by more than this
// share. The level is lower than benchstat's own, because there are more than a hundred rows and each may err.
const (
	compareAlpha  = 0.01
	compareMargin = 0.03
	leastRounds   = 5 // with fewer, nothing is significant
)

// runCompare compares two results. It returns 0 without a regression, 1 with one, 2 if the files cannot be compared.
func runCompare(args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("compare", flag.ContinueOnError)
	flags.Usage = func() { fmt.Fprintln(stderr, "usage: go -C bench run . compare BEFORE.json AFTER.json") }
	if code, ok := parseFlags(flags, args, 2, stderr); !ok {
		return code
	}
	before, err1 := readResult(flags.Arg(0))
	after, err2 := readResult(flags.Arg(1))
	if err := errors.Join(err1, err2); err != nil {
		fmt.Fprintln(stderr, err)
		return 2
	}
	changes, notes, err := compareResults(before, after)
	if err != nil {
		fmt.Fprintf(stderr, "%s and %s cannot be compared:\n%v\n", flags.Arg(0), flags.Arg(1), err)
		return 2
	}
	fmt.Fprintf(stdout, "before: %s on %s\nafter:  %s on %s\n\n",
		before.Source, before.Machine, after.Source, after.Machine)
	if err := writeChanges(stdout, changes, notes); err != nil {
		return failed(fmt.Errorf("bench compare: %w", err), stderr)
	}
	if slices.ContainsFunc(changes, func(c change) bool { return c.verdict == worse }) {
		return 1
	}
	return 0
}

// The verdicts on a row; others begin with notJudged.
const (
	worse     = "WORSE"
	better    = "better"
	unchanged = "no change beyond noise"
	notJudged = "not judged: "
)

// A change is the difference of one row. If both results have rounds with a baseline, the figures are the ratios to it,
// because what slowed the machine on one of the two days has slowed the baseline, too.
type change struct {
	row           string
	against       string // the baseline, if the figures are ratios to it
	before, after float64
	delta         string // with the significance
	verdict       string
}

// compareResults compares two results. Its error names every reason why they cannot be compared; a row that the second
// lacks is a note.
func compareResults(before, after *result) (changes []change, notes []string, err error) {
	same := before.Machine.SameAs(after.Machine)
	if !same {
		notes = append(notes, "These are two kinds of machine: only figures with a baseline of the same run are judged.")
	}
	notes = slices.Concat(notes, before.Machine.Warnings(), after.Machine.Warnings())
	var errs []error
	for _, was := range before.Reports {
		is := after.report(was.Command)
		if is == nil {
			notes = append(notes, fmt.Sprintf("The second has no %s.", was.Command))
			continue
		}
		errs = append(errs, differentWork(was, is)...)
		for _, w := range was.Rows {
			at := slices.IndexFunc(is.Rows, func(r row) bool { return r.Name == w.Name && r.Unit == w.Unit })
			if at >= 0 {
				changes = append(changes, judge(was.Command, w, is.Rows[at], same))
			} else {
				notes = append(notes, fmt.Sprintf("The second lacks the row %q, %s of %s.", w.Name, w.Unit, was.Command))
			}
		}
	}
	if len(errs) == 0 && len(changes) == 0 {
		errs = append(errs, errors.New("  they have no row in common"))
	}
	return changes, notes, errors.Join(errs...)
}

// found are the parameters that the machine determines, not the user.
var found = []string{"rate", "fileSystem", "rounds"}

// differentWork names the parameters in which two reports differ.
func differentWork(before, after *report) (errs []error) {
	for name, was := range before.Parameters {
		is, ok := after.Parameters[name]
		if ok && !slices.Contains(found, name) && fmt.Sprint(was) != fmt.Sprint(is) {
			errs = append(errs, fmt.Errorf("  %s was other work: %s was %v and is %v", before.Command, name, was, is))
		}
	}
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errs
}

// judge compares a row of two reports. same means that both are from the same kind of machine.
func judge(command string, was, is row, same bool) change {
	c := change{row: fmt.Sprintf("%s: %s, %s", command, was.Name, was.Unit),
		before: was.Figure.Median, after: is.Figure.Median}
	var before, after []float64
	if was.Rounds != nil && is.Rounds != nil {
		before, after = was.Rounds.Figure, is.Rounds.Figure
		if was.Ratio != nil && is.Ratio != nil && was.Against == is.Against {
			before, after = was.Rounds.ratios(), is.Rounds.ratios()
			c.before, c.after, c.against = was.Ratio.Median, is.Ratio.Median, " × "+was.Against
		}
	}
	sign := higherIsBetter(was.Unit)
	switch {
	case was.Aside || is.Aside:
		c.verdict = notJudged + "for information"
	case c.against == "" && !same:
		c.verdict = notJudged + "another kind of machine, and no baseline"
	case min(len(before), len(after)) < leastRounds:
		if c.verdict = fmt.Sprintf("%sfewer than %d rounds", notJudged, leastRounds); goalLost(was.Goal, is.Goal) {
			c.verdict, c.delta = worse, "its goal was met and is missed: "+is.Goal.text()
		}
	case sign == 0:
		c.verdict = notJudged + "of the unit it is not known whether more is better"
	default:
		test := benchmath.AssumeNothing.Compare(sampleOf(before), sampleOf(after))
		c.delta, c.verdict = fmt.Sprintf("%s (%s)", test.FormatDelta(c.before, c.after), test), worse
		if test.P > test.Alpha || math.Abs(c.after-c.before) <= compareMargin*c.before {
			c.verdict = unchanged
		} else if (c.after > c.before) == (sign > 0) {
			c.verdict = better
		}
	}
	return c
}

// sampleOf returns the values of rounds for benchmath, which sorts them.
func sampleOf(values []float64) *benchmath.Sample {
	return benchmath.NewSample(slices.Clone(values), &benchmath.Thresholds{CompareAlpha: compareAlpha})
}

func goalLost(was, is *goal) bool {
	return was != nil && is != nil && was.Met && !was.Noisy && !is.Met && !is.Noisy
}

// higherIsBetter returns 1 for units of which more is better, -1 if less is better, 0 for others.
func higherIsBetter(unit string) int {
	what, per, _ := strings.Cut(unit, "/")
	switch {
	case unit == "part of all", per == "s":
		return 1
	case slices.Contains([]string{"ms", "µs", "ns", "MiB"}, what), unit == "s":
		return -1
	}
	return 0
}

func writeChanges(w io.Writer, changes []change, notes []string) error {
	count := map[string]int{}
	text := "| | before | after | change | |\n"
	for _, c := range changes {
		if strings.HasPrefix(c.verdict, notJudged) {
			count[notJudged]++
		}
		count[c.verdict]++
		text += fmt.Sprintf("| %s | %s%s | %s%s | %s | %s |\n",
			c.row, number(c.before), c.against, number(c.after), c.against, c.delta, c.verdict)
	}
	if err := align(w, text); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\n%s\n%d worse, %d better, %d without a change beyond noise, %d not judged.\n",
		strings.Join(notes, "\n"), count[worse], count[better], count[unchanged], count[notJudged])
	return err
}

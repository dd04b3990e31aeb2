package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"

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
	missing := flags.Bool("missing-ok", false, "compare what both have, although the second lacks some of the first")
	if code, ok := parseFlags(flags, args, 2, stderr); !ok {
		return code
	}
	before, err1 := readResult(flags.Arg(0))
	after, err2 := readResult(flags.Arg(1))
	if err := errors.Join(err1, err2); err != nil {
		fmt.Fprintln(stderr, err)
		return 2
	}
	changes, notes, err := compareResults(before, after, *missing)
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

// A verdict is the result for one row.
type verdict string

const (
	worse     verdict = "WORSE"
	better    verdict = "better"
	unchanged verdict = "no change beyond noise"
	unjudged  verdict = "not judged"
)

// A change is the difference of one row. If both results have rounds with a baseline, the figures are the ratios to it,
// because what slowed the machine on one of the two days has slowed the baseline, too.
type change struct {
	row           string
	against       string // the baseline, if the figures are ratios to it
	before, after float64
	delta         string // with the significance
	verdict       verdict
	why           string
}

// compareResults compares two results. Its error names every reason why they cannot be compared.
func compareResults(before, after *result, missing bool) (changes []change, notes []string, err error) {
	same := before.Machine.sameAs(after.Machine)
	if !same {
		notes = append(notes, "These are two kinds of machine: only figures beside a baseline of the same run are judged.")
	}
	notes = slices.Concat(notes, before.Machine.warnings(), after.Machine.warnings())
	var errs []error
	lacks := func(format string, args ...any) {
		text := fmt.Sprintf(format, args...)
		if missing {
			notes = append(notes, text+".")
			return
		}
		errs = append(errs, fmt.Errorf("  %s (-missing-ok goes on without)", text))
	}
	for _, was := range before.Reports {
		is := after.report(was.Command)
		if is == nil {
			lacks("the second has no %s", was.Command)
			continue
		}
		errs = append(errs, differentWork(was, is)...)
		for _, w := range was.Rows {
			if now := is.row(w.Name, w.Unit); now != nil {
				changes = append(changes, judge(was.Command, w, *now, same))
			} else if !w.Aside {
				lacks("the second lacks the row %q, %s of %s", w.Name, w.Unit, was.Command)
			}
		}
	}
	if len(errs) == 0 && len(changes) == 0 {
		errs = append(errs, errors.New("  they have no row in common"))
	}
	return changes, notes, errors.Join(errs...)
}

// report returns a command's report, or nil.
func (r *result) report(command string) *report {
	for _, rep := range r.Reports {
		if rep.Command == command {
			return rep
		}
	}
	return nil
}

// row returns a row, or nil. No report has two of the same name and unit.
func (r *report) row(name, unit string) *row {
	for i := range r.Rows {
		if r.Rows[i].Name == name && r.Rows[i].Unit == unit {
			return &r.Rows[i]
		}
	}
	return nil
}

// measured are the parameters that the machine determines, not the user.
var measured = []string{"rate", "bodyBytes", "fileSystem", "rounds"}

// differentWork names the parameters in which two reports differ.
func differentWork(before, after *report) (errs []error) {
	for name, was := range before.Parameters {
		is, ok := after.Parameters[name]
		if slices.Contains(measured, name) || ok && fmt.Sprint(was) == fmt.Sprint(is) {
			continue
		}
		if !ok {
			is = "not told"
		}
		errs = append(errs, fmt.Errorf("  %s was other work: %s was %v and is %v", before.Command, name, was, is))
	}
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errs
}

// judge compares a row of two reports. same means that both are from the same kind of machine.
func judge(command string, was, is row, same bool) change {
	c := change{row: fmt.Sprintf("%s: %s, %s", command, was.Name, was.Unit),
		before: was.Figure.Median, after: is.Figure.Median, verdict: unjudged}
	before, after := was.samples(), is.samples()
	if was.Ratio != nil && is.Ratio != nil && was.Rounds != nil && is.Rounds != nil && was.Against == is.Against {
		before, after = ratios(was.Rounds.Figure, was.Rounds.Baseline), ratios(is.Rounds.Figure, is.Rounds.Baseline)
		c.before, c.after, c.against = was.Ratio.Median, is.Ratio.Median, " × "+was.Against
	}
	test := benchmath.AssumeNothing.Compare(sampleOf(before), sampleOf(after))
	sign := higherIsBetter(was.Unit)
	switch {
	case was.Aside || is.Aside:
		c.why = "for information"
	case c.against == "" && !same:
		c.why = "another kind of machine, and no baseline"
	case len(before) == 0 || len(after) == 0:
		if c.why = "measured once"; goalLost(was.Goal, is.Goal) {
			c.verdict, c.why = worse, "its goal was met and is missed: "+is.Goal.text()
		}
	case sign == 0:
		c.why = "of the unit it is not known whether more is better"
	case min(len(before), len(after)) < leastRounds:
		c.why = fmt.Sprintf("fewer than %d rounds", leastRounds)
	default:
		c.delta = fmt.Sprintf("%s (%s)", test.FormatDelta(c.before, c.after), test)
		c.verdict = verdictOn(test, sign, c.before, c.after)
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

// verdictOn reports a change that is significant and large enough. sign is that of higherIsBetter.
func verdictOn(test benchmath.Comparison, sign int, before, after float64) verdict {
	switch {
	case test.P > test.Alpha, math.Abs(after-before) <= compareMargin*before:
		return unchanged
	case (after > before) == (sign > 0):
		return better
	}
	return worse
}

// samples returns the figures of the rounds, none if the row has no rounds.
func (r row) samples() []float64 {
	if r.Rounds == nil {
		return nil
	}
	return r.Rounds.Figure
}

// higherIsBetter returns 1 for units of which more is better, -1 if less is better, 0 for others.
func higherIsBetter(unit string) int {
	switch unit {
	case "part of all":
		return 1
	case "ms", "µs", "s", "MiB", "KiB", "count":
		return -1
	}
	switch what, per, _ := strings.Cut(unit, "/"); {
	case per == "s":
		return 1
	case per != "" && (what == "ms" || what == "µs" || what == "KiB"):
		return -1
	}
	return 0
}

func writeChanges(w io.Writer, changes []change, notes []string) error {
	count := map[verdict]int{}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "\tbefore\tafter\tchange\t\t")
	for _, c := range changes {
		count[c.verdict]++
		text := string(c.verdict)
		if c.why != "" {
			text += ": " + c.why
		}
		fmt.Fprintf(t, "%s\t%s%s\t%s%s\t%s\t%s\t\n",
			c.row, number(c.before), c.against, number(c.after), c.against, c.delta, text)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, note := range notes {
		fmt.Fprintf(w, "\n%s", note)
	}
	_, err := fmt.Fprintf(w, "\n%d worse, %d better, %d without a change beyond noise, %d not judged.\n",
		count[worse], count[better], count[unchanged], count[unjudged])
	return err
}

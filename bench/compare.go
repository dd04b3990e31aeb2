package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"text/tabwriter"
)

// compareFlags are the flags of compare.
type compareFlags struct {
	json       bool
	missing    bool
	margin     float64
	confidence float64
}

// runCompare compares two results. It returns 0 without a regression, 1 with one, 2 if the files cannot be compared.
func runCompare(args []string, stdout, stderr io.Writer) int {
	var o compareFlags
	flags := flag.NewFlagSet("compare", flag.ContinueOnError)
	flags.Usage = func() {
		fmt.Fprintln(stderr, "usage: go -C bench run . compare [flags] BEFORE.json AFTER.json")
		flags.PrintDefaults()
	}
	flags.BoolVar(&o.json, "json", false, "print the comparison as JSON")
	flags.BoolVar(&o.missing, "missing-ok", false, "compare what both have, although the second lacks some of the first")
	flags.Float64Var(&o.margin, "margin", 0.03,
		"a change is one if the whole confidence interval of the ratio lies farther than this from 1")
	flags.Float64Var(&o.confidence, "confidence", 0.99, "of the interval; there are many rows, and each may err")
	if code, ok := parseFlags(flags, args, 2, stderr); !ok {
		return code
	}
	if !(o.margin >= 0 && o.margin < 1) || !(o.confidence > 0 && o.confidence < 1) {
		fmt.Fprintf(stderr, "bench compare: -margin is %v, it must be from 0 to below 1; -confidence is %v, "+
			"it must be between 0 and 1\n", o.margin, o.confidence)
		return 2
	}
	before, err1 := readResult(flags.Arg(0))
	after, err2 := readResult(flags.Arg(1))
	if err := errors.Join(err1, err2); err != nil {
		fmt.Fprintln(stderr, err)
		return 2
	}
	c, err := compareResults(before, after, o)
	if err != nil {
		fmt.Fprintf(stderr, "%s and %s cannot be compared:\n%v\n", flags.Arg(0), flags.Arg(1), err)
		return 2
	}
	if o.json {
		err = writeJSON(stdout, c)
	} else {
		err = c.writeText(stdout)
	}
	if err != nil {
		return failed(fmt.Errorf("bench compare: %w", err), stderr)
	}
	if c.count(worse) > 0 {
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
	Command string  `json:"command"`
	Row     string  `json:"row"`
	Unit    string  `json:"unit"`
	Beside  string  `json:"beside,omitempty"` // the baseline, if the figures are ratios to it
	Before  float64 `json:"before"`
	After   float64 `json:"after"`
	Ratio   *spread `json:"ratio,omitempty"` // after divided by before, with the interval as low and high
	Verdict verdict `json:"verdict"`
	Why     string  `json:"why,omitempty"`
}

// A comparison compares two results.
type comparison struct {
	Before  string   `json:"before"`
	After   string   `json:"after"`
	Notes   []string `json:"notes,omitempty"`
	Changes []change `json:"changes"`
}

// compareResults compares two results. Its error names every reason why they cannot be compared.
func compareResults(before, after *result, o compareFlags) (*comparison, error) {
	c := &comparison{Before: fmt.Sprintf("%s on %s", before.Source, before.Machine),
		After: fmt.Sprintf("%s on %s", after.Source, after.Machine)}
	same := before.Machine.sameAs(after.Machine)
	if !same {
		c.note("These are two kinds of machine: only figures beside a baseline of the same run are judged.")
	}
	for _, r := range []*result{before, after} {
		c.Notes = append(c.Notes, r.Machine.warnings()...)
	}
	var errs []error
	lacks := func(format string, args ...any) {
		text := fmt.Sprintf(format, args...)
		if o.missing {
			c.note("%s.", text)
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
			now := is.row(w.Name, w.Unit)
			switch {
			case now != nil:
				c.Changes = append(c.Changes, judge(was.Command, w, *now, same, o))
			case !w.Aside:
				lacks("the second lacks the row %q, %s of %s", w.Name, w.Unit, was.Command)
			}
		}
	}
	if len(errs) == 0 && len(c.Changes) == 0 {
		errs = append(errs, errors.New("  they have no row in common"))
	}
	return c, errors.Join(errs...)
}

func (c *comparison) note(format string, args ...any) {
	c.Notes = append(c.Notes, fmt.Sprintf(format, args...))
}

func (c *comparison) count(v verdict) (n int) {
	for _, one := range c.Changes {
		if one.Verdict == v {
			n++
		}
	}
	return n
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

// leastRounds is how many rounds a confidence interval needs.
const leastRounds = 3

// judge compares a row of two reports. same means that both are from the same kind of machine.
func judge(command string, was, is row, same bool, o compareFlags) change {
	c := change{Command: command, Row: was.Name, Unit: was.Unit, Before: was.Figure.Median, After: is.Figure.Median,
		Verdict: unjudged}
	before, after := was.samples(), is.samples()
	if was.Ratio != nil && is.Ratio != nil && was.Rounds != nil && is.Rounds != nil && was.Against == is.Against {
		before, after = ratios(was.Rounds.Figure, was.Rounds.Baseline), ratios(is.Rounds.Figure, is.Rounds.Baseline)
		c.Before, c.After, c.Beside = was.Ratio.Median, is.Ratio.Median, was.Against
	}
	enough := len(before) >= leastRounds && len(after) >= leastRounds &&
		slices.Min(before) > 0 && slices.Min(after) > 0
	if enough {
		r := bootstrapRatio(before, after, o.confidence)
		c.Ratio = &r
	}
	switch {
	case was.Aside || is.Aside:
		c.Why = "for information"
	case c.Beside == "" && !same:
		c.Why = "another kind of machine, and no baseline"
	case !enough && goalLost(was.Goal, is.Goal):
		c.Verdict, c.Why = worse, "its goal was met and is missed: "+is.Goal.text()
	case !enough:
		c.Why = fmt.Sprintf("fewer than %d rounds, or one with 0", leastRounds)
	case higherIsBetter(c.Unit) == 0:
		c.Why = "of the unit it is not known whether more is better"
	default:
		c.Verdict = verdictOn(*c.Ratio, higherIsBetter(c.Unit), o.margin)
	}
	return c
}

func goalLost(was, is *goal) bool {
	return was != nil && is != nil && was.Met && !was.Noisy && !is.Met && !is.Noisy
}

// verdictOn reports a change if the whole interval is beyond the margin.
func verdictOn(ratio spread, higherIsBetter int, margin float64) verdict {
	less, more := worse, better
	if higherIsBetter < 0 {
		less, more = better, worse
	}
	switch {
	case ratio.High < 1-margin:
		return less
	case ratio.Low > 1+margin:
		return more
	}
	return unchanged
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

func (c *comparison) writeText(w io.Writer) error {
	fmt.Fprintf(w, "before: %s\nafter:  %s\n\n", c.Before, c.After)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "\tbefore\tafter\tafter/before (interval)\t\t")
	for _, one := range c.Changes {
		beside, ratio, why := "", "", string(one.Verdict)
		if one.Beside != "" {
			beside = " × " + one.Beside
		}
		if one.Ratio != nil {
			ratio = one.Ratio.ratioText()
		}
		if one.Why != "" {
			why += ": " + one.Why
		}
		fmt.Fprintf(t, "%s: %s, %s\t%s%s\t%s%s\t%s\t%s\t\n", one.Command, one.Row, one.Unit,
			number(one.Before), beside, number(one.After), beside, ratio, why)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, note := range c.Notes {
		fmt.Fprintf(w, "\n%s", note)
	}
	_, err := fmt.Fprintf(w, "\n%d worse, %d better, %d without a change beyond noise, %d not judged.\n",
		c.count(worse), c.count(better), c.count(unchanged), c.count(unjudged))
	return err
}

// bootstrapTimes is the number of resamples. The seed is fixed, so that the same files give the same interval.
const bootstrapTimes = 10_000

// bootstrapRatio returns the ratio of the medians of after and before, with its confidence interval: rounds are
// resampled with replacement, and the ratio is computed for each resample. With few rounds the interval is too wide
// rather than too narrow. All values must be above 0.
func bootstrapRatio(before, after []float64, confidence float64) spread {
	r := rand.New(rand.NewPCG(1, 0xb007))
	drawn := make([]float64, bootstrapTimes)
	b, a := make([]float64, len(before)), make([]float64, len(after))
	for i := range drawn {
		draw(r, b, before)
		draw(r, a, after)
		drawn[i] = median(a) / median(b)
	}
	slices.Sort(drawn)
	out := int((1 - confidence) / 2 * bootstrapTimes) // on each side
	return spread{Median: spreadOf(after).Median / spreadOf(before).Median,
		Low: drawn[out], High: drawn[bootstrapTimes-1-out]}
}

func draw(r *rand.Rand, dst, from []float64) {
	for i := range dst {
		dst[i] = from[r.IntN(len(from))]
	}
}

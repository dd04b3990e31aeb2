package main

import (
	"bytes"
	"strings"
	"testing"

	"fingerpost/cmd/testrig"
)

// A build is not slower than itself, and each operation has its row.
func TestSpeed(t *testing.T) {
	testrig.Slow(t)
	b := smallBench(t)
	if err := b.buildBinary(t.Context()); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	code := measure(t.Context(), speedCommand, []command{speed}, []string{"-base", b.binary, "-binary", b.binary, "-work", t.TempDir(),
		"-projects", "120", "-domains", "360", "-connections", "4", "-rounds", "5", "-round", "50ms", "-server-cpu", "0"}, &out, &errs)
	if code > 1 { // 1: with rounds this short a difference can be noise
		t.Fatalf("speed = %d:\n%s%s", code, out.String(), errs.String())
	}
	for _, name := range []string{"a resolve hit", "a save", "an API write", "a page of a list", "a start", "memory", "size of the binary"} {
		if !strings.Contains(out.String(), name) {
			t.Errorf("no row of %s in\n%s", name, out.String())
		}
	}
}

// Only a ratio whose interval lies above 1 counts as slower.
func TestPairedVerdict(t *testing.T) {
	base := []float64{10, 11, 9, 10, 12, 10, 9, 11}
	scaled := func(factors ...float64) (out []float64) {
		for i, v := range base {
			out = append(out, v*factors[i%len(factors)])
		}
		return out
	}
	f := func(want bool, factors ...float64) {
		t.Helper()
		if r := paired("x", "µs/request", scaled(factors...), base); r.Goal.Met != want {
			t.Errorf("factors %v: met is %v, ratio %+v", factors, r.Goal.Met, r.Ratio)
		}
	}
	f(true, 1)
	f(true, 1.04)
	f(false, 1.1)
	f(false, 1.08, 1.12)
	f(true, 0.8, 1.4)                                // noise
	f(false, 1.1, 1.1, 1.1, 1.1, 1.1, 1.1, 1.1, 0.9) // one round of eight may differ
	f(true, 0.9)
}

func TestSpeedFlags(t *testing.T) {
	for _, args := range [][]string{{}, {"-base", "/no/such/file"}, {"-base", "/bin/sh", "-rounds", "4"}} {
		var out, errs bytes.Buffer
		if code := run(t.Context(), append([]string{speedCommand}, args...), &out, &errs); code != 2 || errs.Len() == 0 {
			t.Errorf("speed %v = %d %s", args, code, errs.String())
		}
	}
}

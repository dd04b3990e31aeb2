package main

import (
	"testing"
	"time"
)

// TestCrowd: many writes at a time get more places, and give them back when they have been few for a while.
func TestCrowd(t *testing.T) {
	changes := make(chan string, 10)
	c := &crowd{enough: 3, quiet: 20 * time.Millisecond, more: func() { changes <- "more" }, usual: func() { changes <- "usual" }}
	for n := range 3 {
		c.writes(n)
	}
	if len(changes) != 0 {
		t.Fatalf("two writes at a time: %s", <-changes)
	}
	for range 2 {
		c.writes(3)
		c.writes(4)
		if got := <-changes; got != "more" {
			t.Fatalf("three writes at a time: %s", got)
		}
		got := <-changes
		for got == "more" { // again, where the first look came while it lasted
			got = <-changes
		}
		if got != "usual" {
			t.Fatalf("after them: %s", got)
		}
	}
}

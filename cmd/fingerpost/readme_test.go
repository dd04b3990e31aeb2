package main

import (
	"os"
	"strings"
	"testing"
)

// TestReadmeCalls: curl -d sends a form unless it is told otherwise, and a form gets 415.
func TestReadmeCalls(t *testing.T) {
	b, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	calls := 0
	for call := range strings.SplitSeq(strings.ReplaceAll(string(b), "\\\n", " "), "\n") {
		if !strings.HasPrefix(call, "$ curl ") || !strings.Contains(call, " -d ") {
			continue
		}
		if calls++; !strings.Contains(call, "-H 'Content-Type: application/json'") {
			t.Errorf("this is answered 415: %s", call)
		}
	}
	if calls == 0 {
		t.Error("no call with a body is shown")
	}
}

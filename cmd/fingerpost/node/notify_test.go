package node

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"fingerpost/api/conditions"
)

// TestTellsConditions: systemd's status line has each kind of condition that says that something does not work, the worst
// in words and the others as a number, and the log has each kind once when it begins and once when it ends.
func TestTellsConditions(t *testing.T) {
	t.Parallel()
	var all []conditions.Condition
	for _, k := range conditions.Kinds() {
		c := conditions.Condition{ID: k.ID, Severity: k.Severity, Subject: "x", Sentence: "It is so: " + k.ID + "."}
		want := ""
		if k.Broken {
			want = "; it is so"
		}
		if got := worst([]conditions.Condition{c}); got != want {
			t.Errorf("%s: %q, want %q", k.ID, got, want)
		}
		if k.Found() {
			all = append(all, c)
		}
	}
	broken := conditions.Condition{ID: "files-broken", Sentence: "The files have 1 error."}
	if got := worst([]conditions.Condition{broken, broken, {ID: "key-ends"}}); got != "; the files have 1 error, and 1 more problem" {
		t.Errorf("of two: %q", got)
	}

	var out bytes.Buffer
	n := &service{o: Options{Log: Log{Logger: slog.New(slog.NewJSONHandler(&out, nil))}}}
	logged := n.logChanges(nil, append(all, all...))
	logged = n.logChanges(logged, all)
	n.logChanges(logged, nil)
	for _, c := range all {
		if begun := strings.Count(out.String(), `"msg":"condition","condition":"`+c.ID+` x","severity":"`+string(c.Severity)+`"`); begun != 1 ||
			strings.Count(out.String(), `"msg":"condition ended","condition":"`+c.ID+` x"`) != 1 {
			t.Errorf("%s has begun %d times: %s", c.ID, begun, out.String())
		}
	}
}

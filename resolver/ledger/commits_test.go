package ledger

import (
	"testing"
	"time"

	"fingerpost/resolver/catalog"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// The trail shows the commit of a write once it is known, also after a power cut and after the commit was made anew. The
// chains hold, and the record goes with its entry.
func TestAuditCommits(t *testing.T) {
	t.Parallel()
	mem := vfs.NewCrashableMem()
	l := mailStore(t, "ledger", Options{FS: mem})
	entries := []catalog.AuditEntry{auditEntry(1), auditEntry(2), auditEntry(3), auditEntry(4)}
	for i := range entries {
		entries[i].RequestID = "deploy" // of a client that gives all its writes one id
		entries[i].Time = time.Now().UTC().Truncate(time.Microsecond)
	}
	entries[3].RequestID, entries[2].Commit = "cut off", "pulled"
	appendAll(t, l, entries...)
	shows := func(l *Ledger, want ...string) {
		t.Helper()
		page, err := l.Audit(catalog.AuditQuery{Ascending: true, Limit: 10})
		if err != nil || len(page.Entries) != len(want) {
			t.Fatalf("%+v, %v", page, err)
		}
		for i, e := range page.Entries {
			if e.Commit != want[i] {
				t.Errorf("entry %d has the commit %q, want %q", e.ID, e.Commit, want[i])
			}
		}
		if check := verified(t, l, [32]byte{}); check.Broken != nil {
			t.Error(check.Broken)
		}
	}
	shows(l, "", "", "pulled", "")
	if err := l.ChangePending(map[int64][]byte{7: []byte("a"), 8: []byte("b")}); err != nil {
		t.Fatal(err)
	}
	writes := []catalog.WriteCommit{{RequestID: "deploy", Generation: 1, Commit: "c1"}, {RequestID: "deploy", Generation: 3, Commit: "c3"},
		{RequestID: "cut off", Commit: "c4"}, {Commit: "of no request"}}
	if err := l.Committed(writes, 7); err != nil {
		t.Fatal(err)
	}
	if left, err := l.Pending(); err != nil || len(left) != 1 || left[8] == nil {
		t.Errorf("%v, %v", left, err)
	}
	shows(l, "c1", "", "pulled", "c4")
	if err := l.MoveCommits(map[string]string{"c4": "d4", "c5": "d5"}); err != nil {
		t.Fatal(err)
	}
	after := mailStore(t, "ledger", Options{FS: mem.CrashClone(vfs.CrashCloneCfg{})})
	shows(after, "c1", "", "pulled", "d4")

	records := func() (n int) {
		if err := after.scan(under(prefixCommit), func(_, _ []byte) error { n++; return nil }); err != nil {
			t.Fatal(err)
		}
		return n
	}
	for _, f := range []struct{ after, want int }{{1, 3}, {100, 0}} {
		if err := after.PruneAudit(t.Context(), time.Now().AddDate(0, 0, f.after), func(int64) int { return 90 }); err != nil {
			t.Fatal(err)
		}
		if n := records(); n != f.want {
			t.Errorf("after %d days: %d records, want %d", f.after, n, f.want)
		}
	}
}

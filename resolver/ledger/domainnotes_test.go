package ledger

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"fingerpost/resolver/catalog"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// noted lists all notes of domains.
func noted(t *testing.T, l *Ledger) (all []string) {
	t.Helper()
	err := l.EachDomainNote(func(n DomainNote) error {
		all = append(all, fmt.Sprintf("%d %s %s", n.Project[0], n.Domain, n.Note))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestDomainNotes: what was stored survives a power cut, by project and domain; what was deleted stays away. A project has
// nothing of another one's note of the same name.
func TestDomainNotes(t *testing.T) {
	t.Parallel()
	mem := vfs.NewCrashableMem()
	l := mailStore(t, "ledger", Options{FS: mem})
	a, b := catalog.UUID{0xff, 1}, catalog.UUID{0xff, 2}
	if err := errors.Join(
		l.ChangeDomainNotes([]DomainNote{{a, "x.example", []byte("1")}, {b, "x.example", []byte("2")}, {a, "*.x.example", []byte{}}}),
		l.ChangeDomainNotes([]DomainNote{{a, "x.example", []byte("3")}, {b, "x.example", nil}, {b, "y.example", nil}}),
		l.ChangeDomainNotes(nil),
		l.SetNamed(map[string][]byte{"links": []byte("key"), "gone": []byte("key")}), l.SetNamed(map[string][]byte{"gone": nil}),
	); err != nil {
		t.Fatal(err)
	}
	for i := range 3 { // an entry with a value that says how many there are
		if _, err := l.AppendAuditWith([]catalog.AuditEntry{{Action: "condition.begins", Time: mailEpoch}}, 0, nil,
			AuditWith{Named: map[string][]byte{"count": {byte(i + 1)}, "links": []byte("key")}}); err != nil {
			t.Fatal(err)
		}
	}
	after := mailStore(t, "ledger", Options{FS: mem.CrashClone(vfs.CrashCloneCfg{})})
	if got, want := fmt.Sprint(noted(t, after)), "[255 *.x.example  255 x.example 3]"; got != want {
		t.Errorf("notes %s, want %s", got, want)
	}
	for domain, want := range map[string]bool{"x.example": true, "*.x.example": true, "x": false} {
		if _, found, err := after.DomainNote(a, domain); found != want || err != nil {
			t.Errorf("%s: %v, %v", domain, found, err)
		}
	}
	if _, found, err := after.DomainNote(b, "x.example"); found || err != nil {
		t.Errorf("a deleted note: %v, %v", found, err)
	}
	if value, found, err := after.Named("links"); string(value) != "key" || !found || err != nil {
		t.Errorf("a named value: %q, %v, %v", value, found, err)
	}
	if _, found, err := after.Named("gone"); found || err != nil {
		t.Errorf("a deleted value: %v, %v", found, err)
	}
	if value, _, err := after.Named("count"); len(value) != 1 || int64(value[0]) != after.LastAudit() || err != nil {
		t.Errorf("a value that was stored with entry 3: %v, %v; the last entry is %d", value, err, after.LastAudit())
	}
}

// TestSalvageDomainNotes: notes and named values of a damaged ledger come into the new one, which keeps those that it has
// already, also when the copy is made twice.
func TestSalvageDomainNotes(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	before, err := Open(dir, Options{Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	project := catalog.UUID{7}
	var notes []DomainNote
	for i := range 300 {
		notes = append(notes, DomainNote{project, fmt.Sprintf("%03d.example", i), fmt.Append(nil, "old ", i)})
	}
	if err := errors.Join(before.ChangeDomainNotes(notes), before.SetNamed(map[string][]byte{"links": []byte("old")}), before.Close(),
		os.Rename(dir, dir+".damaged-1")); err != nil {
		t.Fatal(err)
	}
	l := mailStore(t, dir, Options{Logger: quiet})
	if err := l.ChangeDomainNotes([]DomainNote{{project, "000.example", []byte("new")}}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		v, err := l.OpenSalvage(t.Context(), dir+".damaged-1", nil, quiet)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(v.Copy(t.Context()), v.Abandon()); err != nil || !v.gap.Complete {
			t.Fatal(v.gap, err)
		}
		got := noted(t, l)
		if len(got) != len(notes) || got[0] != "7 000.example new" || got[299] != "7 299.example old 299" {
			t.Errorf("%d notes: %.60q", len(got), got)
		}
		if value, _, err := l.Named("links"); string(value) != "old" || err != nil {
			t.Errorf("the named value: %q, %v", value, err)
		}
	}
}

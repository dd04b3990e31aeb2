package ledger

import (
	"bytes"
	"maps"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// What ChangeProposals has stored survives a power cut, and what it has deleted stays away.
func TestProposals(t *testing.T) {
	t.Parallel()
	mem := vfs.NewCrashableMem()
	l := mailStore(t, "ledger", Options{FS: mem})
	for _, err := range []error{
		l.ChangeProposals(map[string][]byte{"a": []byte("1"), "b": nil, "b.c": []byte("3")}),
		l.ChangeProposals(map[string][]byte{"b": []byte("2")}, "a"),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	after := mailStore(t, "ledger", Options{FS: mem.CrashClone(vfs.CrashCloneCfg{})})
	got, err := after.Proposals()
	if err != nil || !maps.EqualFunc(got, map[string][]byte{"b": []byte("2"), "b.c": []byte("3")}, bytes.Equal) {
		t.Errorf("%v, %v", got, err)
	}
}

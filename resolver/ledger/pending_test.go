package ledger

import (
	"bytes"
	"maps"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// What ChangePending has stored survives a power cut, and what it has deleted stays away.
func TestPendingWrites(t *testing.T) {
	t.Parallel()
	mem := vfs.NewCrashableMem()
	l := mailStore(t, "ledger", Options{FS: mem})
	if err := l.ChangePending(map[int64][]byte{1: []byte("a"), 2: nil, 300: []byte("c")}); err != nil {
		t.Fatal(err)
	}
	if err := l.ChangePending(map[int64][]byte{2: []byte("b")}, 1); err != nil {
		t.Fatal(err)
	}
	after := mailStore(t, "ledger", Options{FS: mem.CrashClone(vfs.CrashCloneCfg{})})
	got, err := after.Pending()
	if err != nil || !maps.EqualFunc(got, map[int64][]byte{2: []byte("b"), 300: []byte("c")}, bytes.Equal) {
		t.Errorf("%v, %v", got, err)
	}
}

package datadir_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fingerpost/cmd/testrig"
	"fingerpost/resolver/datadir"
	"fingerpost/resolver/ledger"
	"fingerpost/resolver/store"

	"github.com/cockroachdb/pebble/v2"
)

// setFormat gives a store or a ledger that is closed the version of another release's layout.
func setFormat(t *testing.T, dir string, format byte) {
	t.Helper()
	db, err := pebble.Open(dir, &pebble.Options{FormatMajorVersion: pebble.FormatValueSeparation, Logger: silent{}})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(db.Set([]byte("mformat"), []byte{format}, pebble.Sync), db.Close()); err != nil {
		t.Fatal(err)
	}
}

// aboveAll is a layout that this release does not know.
const aboveAll = 99

// advice is what a person must know before a folder of a newer release is moved away.
var (
	advice       = []string{"99", "start the newer release again", "fingerpost backup", "fingerpost restore"}
	storeAdvice  = append([]string{fmt.Sprintf("this release reads %d", store.Format), "createdAt"}, advice...)
	ledgerAdvice = append([]string{"this release reads 2", "mail log", "mail queue", "idempotency keys", "audit trail", "uses of API keys",
		"proposals"}, advice...)
)

func wantAdvice(t *testing.T, what string, err error, is error, words []string) {
	t.Helper()
	if !errors.Is(err, is) {
		t.Errorf("%s: %v, want %v", what, err, is)
	}
	missing := slices.DeleteFunc(slices.Clone(words), func(w string) bool { return strings.Contains(fmt.Sprint(err), w) })
	if len(missing) > 0 {
		t.Errorf("%s: %v, which does not name %q", what, err, missing)
	}
}

// TestGoingBack: the release before refuses the folder of a later one, says what is in it, and has two ways back.
func TestGoingBack(t *testing.T) {
	testrig.Slow(t)
	t.Parallel()
	dir := newDir(t)
	s := open(t, dir, store.Options{})
	apply(t, s, noon, file("a.hcl", declare(block("a", "a.example"))))
	fillMail(t, s.ledger)
	packed := backup(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	ledgerDir := filepath.Join(dir, ledger.Folder)

	setFormat(t, ledgerDir, aboveAll)
	_, err := ledger.Open(ledgerDir, ledger.Options{})
	wantAdvice(t, "a newer ledger", err, ledger.ErrNewer, ledgerAdvice)
	wantAdvice(t, "a backup of a newer ledger", datadir.BackupDir(io.Discard, dir, noon), ledger.ErrNewer, ledgerAdvice)
	setFormat(t, ledgerDir, ledger.Format)

	setFormat(t, dir, aboveAll)
	_, err = store.Open(dir, store.Options{})
	wantAdvice(t, "a newer store", err, store.ErrNewer, storeAdvice)
	wantAdvice(t, "a backup of a newer store", datadir.BackupDir(io.Discard, dir, noon), store.ErrNewer, storeAdvice)

	// The ledger alone is of a layout that this release knows: it stays, and the files fill a new store around it.
	kept := newDir(t)
	if err := os.CopyFS(filepath.Join(kept, ledger.Folder), os.DirFS(ledgerDir)); err != nil {
		t.Fatal(err)
	}
	r := open(t, kept, store.Options{})
	if any, err := r.ledger.AnyQueued(); err != nil || !any {
		t.Errorf("the ledger that was kept: mail in the queue %v, %v", any, err)
	}

	// A backup that this release made takes the folder's place, and keeps the folder.
	done, err := restore(dir, packed, datadir.RestoreOptions{Replace: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Open(done.Aside, store.Options{ReadOnly: true}); !errors.Is(err, store.ErrNewer) {
		t.Errorf("%s: %v, want the newer store", done.Aside, err)
	}
	checkMail(t, open(t, dir, store.Options{}).ledger)
}

// TestOlderFormats: a store or a ledger of a build before the first release is refused, with what to do, and kept.
func TestOlderFormats(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	if err := open(t, dir, store.Options{}).Close(); err != nil {
		t.Fatal(err)
	}
	setFormat(t, dir, 3)
	want := []string{fmt.Sprintf("store format 3, this release reads %d", store.Format), "nothing was changed", "files fill a new store"}
	for range 2 {
		_, err := store.Open(dir, store.Options{})
		wantAdvice(t, "an older store", err, store.ErrOlder, want)
	}
	var b bytes.Buffer
	wantAdvice(t, "a backup of an older store", datadir.BackupDir(&b, dir, noon), store.ErrOlder, want)
	setFormat(t, dir, store.Format)
	setFormat(t, filepath.Join(dir, ledger.Folder), 1)
	wantAdvice(t, "a backup of an older ledger", datadir.BackupDir(&b, dir, noon), ledger.ErrOlder,
		[]string{"ledger format 1, this release reads 2", "nothing was changed", "mail log"})
	if b.Len() > 0 {
		t.Errorf("%d bytes were written", b.Len())
	}
}

// TestFormatsInTheHead: the manifest of a backup names both formats.
func TestFormatsInTheHead(t *testing.T) {
	t.Parallel()
	m, err := datadir.CheckArchive(bytes.NewReader(smallBackup(t)))
	if err != nil || m.StoreFormat != store.Format || m.LedgerFormat != ledger.Format {
		t.Errorf("%+v, %v", m, err)
	}
}

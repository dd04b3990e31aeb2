package datadir_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fingerpost/cmd/testrig"
	"fingerpost/resolver/datadir"
	"fingerpost/resolver/store"
)

// TestRestoreDamaged truncates an archive at every length and flips a bit of every byte: the restore is refused and
// leaves nothing, unless the bit has no meaning (the time in gzip's header), and then the restore is complete. Outside
// of CI it takes every fifth byte.
func TestRestoreDamaged(t *testing.T) {
	t.Parallel()
	packed := smallBackup(t)
	whole, err := datadir.CheckArchive(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	content, harmless := unzipped(packed), 0
	step := testrig.Size(t, 1, 31)
	for n := 0; n < len(packed); n += step {
		if _, err := datadir.CheckArchive(bytes.NewReader(packed[:n])); !errors.Is(err, datadir.ErrArchive) {
			t.Fatalf("cut after %d of %d bytes: %v", n, len(packed), err)
		}
		bad := bytes.Clone(packed)
		bad[n] ^= 1 << (n % 8)
		m, err := datadir.CheckArchive(bytes.NewReader(bad))
		same := err == nil && fmt.Sprint(m) == fmt.Sprint(whole) && bytes.Equal(unzipped(bad), content)
		if !same && !errors.Is(err, datadir.ErrArchive) {
			t.Fatalf("byte %d of %d flipped: %v", n, len(packed), err)
		}
		if same {
			harmless++
		}
	}
	if harmless > len(packed)/step/10 {
		t.Errorf("%d flips of %d bytes went by", harmless, len(packed)/step)
	}
	dir := newDir(t)
	for n := 0; n < len(packed); n += 211 {
		bad := bytes.Clone(packed)
		bad[len(bad)-1-n/20] ^= 0x40
		for _, b := range [][]byte{packed[:n], bad} {
			if _, err := datadir.CheckArchive(bytes.NewReader(b)); err == nil {
				continue // a bit without meaning, like those between two blocks of deflate: the flips above look at these
			}
			if _, err := restore(dir, b, datadir.RestoreOptions{}); !errors.Is(err, datadir.ErrArchive) {
				t.Errorf("byte %d: %v", n, err)
			}
		}
	}
	if left := tree(t, filepath.Dir(dir)); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// unzipped returns the uncompressed bytes of b, as far as possible.
func unzipped(b []byte) []byte {
	zip, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil
	}
	out, _ := io.ReadAll(zip)
	return out
}

// An entry of an archive made by hand.
type entry struct {
	tar.Header
	content string
}

// unpack splits an archive into its parts.
func unpack(t *testing.T, packed []byte) (m map[string]any, entries []entry) {
	t.Helper()
	zip, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	for in := tar.NewReader(zip); ; {
		h, err := in.Next()
		if err == io.EOF {
			break
		}
		b, err2 := io.ReadAll(in)
		if err := errors.Join(err, err2); err != nil {
			t.Fatal(err)
		}
		entries = append(entries, entry{*h, string(b)})
	}
	if err := json.Unmarshal([]byte(entries[0].content), &m); err != nil {
		t.Fatal(err)
	}
	return m, entries
}

// pack makes an archive of a manifest and of the entries after the first.
func pack(t *testing.T, m any, entries []entry) []byte {
	t.Helper()
	b, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	tape := tar.NewWriter(zip)
	entries[0].content = string(b)
	for _, e := range entries {
		if e.Typeflag == tar.TypeReg && e.Size >= 0 {
			e.Size = int64(len(e.content))
		}
		if err := tape.WriteHeader(&e.Header); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(tape, e.content); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(tape.Close(), zip.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestRestoreHostile(t *testing.T) {
	testrig.Slow(t)
	t.Parallel()
	good := smallBackup(t)
	top := t.TempDir()
	dir := filepath.Join(top, "data")
	type row = map[string]any
	first := func(m row) row { return m["files"].([]any)[0].(row) }
	for want, change := range map[string]func(m row, e []entry) []entry{
		"of the kind":         func(m row, e []entry) []entry { m["kind"] = "holiday"; return e },
		"archive format 2":    func(m row, e []entry) []entry { m["version"] = 2; return e },
		"store format 99":     func(m row, e []entry) []entry { m["storeFormat"] = 99; return e },
		"ledger format 99":    func(m row, e []entry) []entry { m["ledgerFormat"] = 99; return e },
		"Pebble format 999":   func(m row, e []entry) []entry { m["pebbleFormat"] = 999; return e },
		"and 0 files":         func(m row, e []entry) []entry { m["files"] = nil; return e },
		`"../evil.sst" is no`: func(m row, e []entry) []entry { first(m)["name"] = "../evil.sst"; return e },
		`"/etc/passwd" is no`: func(m row, e []entry) []entry { first(m)["name"] = "/etc/passwd"; return e },
		`"LOCK" is no`:        func(m row, e []entry) []entry { first(m)["name"] = "LOCK"; return e },
		"twice":               func(m row, e []entry) []entry { m["files"] = append(m["files"].([]any), first(m)); return e },
		": -1)":               func(m row, e []entry) []entry { first(m)["size"] = -1; return e },
		"impossible sizes":    func(m row, e []entry) []entry { first(m)["size"] = int64(math.MaxInt64); return e },
		"bytes are free|are free": func(m row, e []entry) []entry {
			first(m)["size"] = int64(1) << 60
			return e
		},
		"the hash of":        func(m row, e []entry) []entry { first(m)["sha256"] = "abc"; return e },
		`"store/../../evil"`: func(m row, e []entry) []entry { e[1].Name = "store/../../evil"; return e },
		`"/evil"`:            func(m row, e []entry) []entry { e[1].Name = "/evil"; return e },
		"stands":             func(m row, e []entry) []entry { e[1].content += "more"; return e },
		"does not name": func(m row, e []entry) []entry {
			return append(e, entry{tar.Header{Typeflag: tar.TypeReg, Name: "evil"}, "x"})
		},
		"of 0 bytes": func(m row, e []entry) []entry {
			e[1].Typeflag, e[1].Linkname, e[1].content, e[1].Size = tar.TypeSymlink, "/etc/passwd", "", 0
			return e
		},
		"it begins with": func(m row, e []entry) []entry {
			return []entry{{tar.Header{Typeflag: tar.TypeReg, Name: "readme"}, ""}}
		},
		"is not what its manifest says": func(m row, e []entry) []entry {
			at := len(e) - 1
			for e[at].content == "" { // a marker
				at--
			}
			e[at].content = "\x00" + e[at].content[1:]
			return e
		},
		"tells of generation 77": func(m row, e []entry) []entry { m["generation"] = 77; return e },
	} {
		m, e := unpack(t, good)
		_, err := restore(dir, pack(t, m, change(m, e)), datadir.RestoreOptions{})
		space := strings.Contains(want, "free")
		ok := false
		for _, part := range strings.Split(want, "|") {
			ok = ok || err != nil && strings.Contains(err.Error(), part)
		}
		if !ok || errors.Is(err, datadir.ErrArchive) == space {
			t.Errorf("%s: %v", want, err)
		}
	}
	m, e := unpack(t, good)
	repacked := pack(t, m, e)
	for what, bad := range map[string][]byte{
		"text":             []byte("a text that is no archive\n"),
		"nothing":          {},
		"something behind": append(bytes.Clone(good), "x"...),
		"a second member":  append(bytes.Clone(good), repacked...),
		"a gzip of a text": zipped(t, bytes.Repeat([]byte("text\n"), 1000)),
		"zeros":            zipped(t, make([]byte, 64<<20)),
	} {
		if _, err := restore(dir, bad, datadir.RestoreOptions{}); !errors.Is(err, datadir.ErrArchive) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if left := tree(t, top); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if _, err := restore(dir, repacked, datadir.RestoreOptions{}); err != nil {
		t.Errorf("what was only packed anew: %v", err)
	}
}

func zipped(t *testing.T, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	_, err := zip.Write(b)
	if err := errors.Join(err, zip.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestRestoreInTheWay(t *testing.T) {
	t.Parallel()
	testrig.Slow(t)
	packed := smallBackup(t)
	top := t.TempDir()
	dir := filepath.Join(top, "data")
	refuse := func(what string, want error, o datadir.RestoreOptions) {
		t.Helper()
		before := tree(t, top)
		if _, err := restore(dir, packed, o); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
		if after := tree(t, top); !maps.Equal(before, after) {
			t.Errorf("%s: something has changed", what)
		}
	}
	both := func(what string, want error) {
		t.Helper()
		refuse(what, want, datadir.RestoreOptions{})
		refuse(what+", forced", want, datadir.RestoreOptions{Replace: true})
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.WriteFile(dir, nil, 0o644))
	both("a file", datadir.ErrInTheWay)
	must(os.Remove(dir))
	must(os.Mkdir(dir, 0o755))
	must(os.WriteFile(filepath.Join(dir, "letters.txt"), []byte("dear"), 0o644))
	both("somebody's folder", datadir.ErrInTheWay)
	must(os.Remove(filepath.Join(dir, "letters.txt")))

	s := open(t, dir, store.Options{})
	apply(t, s, noon, file("old.hcl", declare(block("old"))))
	for _, replace := range []bool{false, true} {
		if _, err := restore(dir, packed, datadir.RestoreOptions{Replace: replace}); !errors.Is(err, store.ErrLocked) {
			t.Errorf("a store in use: %v", err)
		}
	}
	// Its files change by themselves: the store may be tidying up.
	if names, err := filepath.Glob(filepath.Join(top, "*")); err != nil || !slices.Equal(names, []string{dir}) {
		t.Errorf("next to a store in use: %v, %v", names, err)
	}
	if getProject(t, s, "old") == nil {
		t.Error("a store in use has lost its project")
	}
	must(s.Close())
	refuse("a store", datadir.ErrInTheWay, datadir.RestoreOptions{})
	must(os.Chmod(dir, 0o750))
	former := tree(t, dir)

	// The leftovers of a crash are removed; the folder of a running process stays.
	stale := filepath.Join(top, "data.restore-1.tmp")
	must(os.MkdirAll(filepath.Join(stale, "store"), 0o755))
	if done, err := restore(dir, packed, datadir.RestoreOptions{Check: true}); err != nil || done.Aside != "" || !maps.Equal(former, tree(t, dir)) {
		t.Errorf("a check: %v, %v", done, err)
	}
	done, err := restore(dir, packed, datadir.RestoreOptions{Replace: true})
	must(err)
	if want := filepath.Join(top, "data.before-restore-20260131T120000Z"); done.Aside != want || !maps.Equal(tree(t, want), former) {
		t.Errorf("moved aside to %s", done.Aside)
	}
	names, err := filepath.Glob(filepath.Join(top, "*"))
	must(err)
	if len(names) != 2 {
		t.Errorf("left behind: %v", names)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("mode %v, %v", info, err)
	}
	got := open(t, dir, store.Options{})
	if n := got.Counts().Projects; n != 2 {
		t.Errorf("%d projects", n)
	}
	must(got.Close())

	link := filepath.Join(top, "link")
	must(os.Symlink("data", link))
	if _, err := restore(link, packed, datadir.RestoreOptions{Replace: true}); err != nil {
		t.Error(err)
	}
	if to, err := os.Readlink(link); err != nil || to != "data" {
		t.Errorf("the link is %q, %v", to, err)
	}
	below := filepath.Join(top, "new", "below")
	if _, err := restore(below, packed, datadir.RestoreOptions{}); err != nil {
		t.Error(err)
	}
}

// An empty folder, such as the package makes for its user, is no obstacle: the store takes its place.
func TestRestoreIntoAnEmptyFolder(t *testing.T) {
	t.Parallel()
	packed := smallBackup(t)
	for _, replace := range []bool{false, true} {
		dir := t.TempDir()
		if _, err := restore(dir, packed, datadir.RestoreOptions{Replace: replace}); err != nil {
			t.Error(err)
		}
		if names, err := os.ReadDir(dir); err != nil || len(names) == 0 {
			t.Errorf("nothing was restored: %v", err)
		}
	}
}

package configsrc

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestListFindsEachName lists folders of more names than one read brings, among them what is not config, links and names
// of the greatest length.
func TestListFindsEachName(t *testing.T) {
	dir := t.TempDir()
	want := map[string]bool{} // path → it can be read
	for i := range 3000 {
		name := fmt.Sprintf("%s%04d.hcl", strings.Repeat("x", i%200), i)
		want[name] = true
	}
	want[strings.Repeat("y", 251)+".hcl"], want["sub/deep/a.hcl"], want["ü b.hcl"] = true, true, true
	err := os.MkdirAll(filepath.Join(dir, "sub", "deep"), 0o755)
	for name := range want {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), []byte(name), 0o644))
	}
	want["link.hcl"], want["lost.hcl"], want["folder.hcl"] = true, false, false
	err = errors.Join(err,
		os.Symlink("sub/deep/a.hcl", filepath.Join(dir, "link.hcl")),
		os.Symlink("nothing", filepath.Join(dir, "lost.hcl")),
		os.Symlink("sub", filepath.Join(dir, "linked")), // not followed
		os.Mkdir(filepath.Join(dir, "folder.hcl"), 0o755),
		os.Mkdir(filepath.Join(dir, ".git"), 0o755),
		os.WriteFile(filepath.Join(dir, ".git", "a.hcl"), nil, 0o644),
		os.WriteFile(filepath.Join(dir, "readme.md"), nil, 0o644))
	if err != nil {
		t.Fatal(err)
	}
	tr, err := openTree(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	got := map[string]bool{}
	err = tr.list(nil, func(e entry) {
		if _, twice := got[e.path]; twice {
			t.Errorf("%s comes twice", e.path)
		}
		got[e.path] = e.err == nil
		same, _, _ := tr.stat(e.path)
		if e.err == nil && !e.stat.SameStat(same.stat) {
			t.Errorf("%s is listed as %+v, and is %+v", e.path, e, same)
		}
	})
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("%d names, want %d, %v", len(got), len(want), err)
		for _, name := range slices.Sorted(maps.Keys(want)) {
			if ok, there := got[name]; !there || ok != want[name] {
				t.Errorf("%s: there %v, to be read %v", name, there, ok)
			}
		}
	}
}

// TestListIsLean holds a list to what one of a hundred thousand files can afford.
func TestListIsLean(t *testing.T) {
	const files = 1000
	dir := t.TempDir()
	known := map[string]string{}
	for i := range files {
		name := fmt.Sprintf("p%04d.hcl", i)
		known[name] = name
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	tr, err := openTree(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	tr.known = func(at []byte) string { return known[string(at)] }
	allocs := testing.AllocsPerRun(3, func() {
		n := 0
		if err := tr.list(nil, func(entry) { n++ }); err != nil || n != files {
			t.Errorf("%d files, %v", n, err)
		}
	})
	if allocs > 1.1*files {
		t.Errorf("%v allocations for %d files, want one each", allocs, files)
	}
}

// TestNamesOfAnyLength: there are file systems whose names are longer than 255 bytes.
func TestNamesOfAnyLength(t *testing.T) {
	want := []string{"a.hcl", strings.Repeat("設", 100) + ".hcl", strings.Repeat("x", 255), "b.hcl"}
	var entries []byte
	for _, name := range want {
		length := (direntName + len(name) + 1 + 7) / 8 * 8
		entry := make([]byte, length)
		binary.NativeEndian.PutUint16(entry[direntLength:], uint16(length))
		entry[direntType] = 8 // a regular file
		copy(entry[direntName:], name)
		entries = append(entries, entry...)
	}
	d := &folder{names: [][]byte{namesIn(entries)}}
	var got []string
	for name, _, ok := d.next(); ok; name, _, ok = d.next() {
		got = append(got, name)
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

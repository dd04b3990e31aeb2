package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/rogpeppe/go-internal/testscript"

	"fingerpost/cmd/fingerpost/node"
	"fingerpost/cmd/testrig"
	"fingerpost/resolver/catalog"
)

// faultCmds provoke what disks do:
//
//	tmpfs DIR SIZE     mount an empty tmpfs
//	remount DIR ro|rw  change it
//	fill DIR           leave no room in it
//	spare DIR          give the room back
//	grow DIR N         add N projects, p0.example and so on, with 300 kB of template each
//	flip FILE          flip a bit in the middle of the file that the pattern matches
//	format DIR N       give the store or the ledger in it the version N of its layout
func faultCmds() map[string]func(ts *testscript.TestScript, neg bool, args []string) {
	return map[string]func(ts *testscript.TestScript, neg bool, args []string){
		"tmpfs": func(ts *testscript.TestScript, neg bool, args []string) {
			dir := ts.MkAbs(args[0])
			ts.Check(os.MkdirAll(dir, 0o755))
			if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+args[1]); err != nil {
				ts.Fatalf("mount a tmpfs, which needs root: %v", err)
			}
			ts.Defer(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
		},
		"remount": func(ts *testscript.TestScript, neg bool, args []string) {
			flags := uintptr(syscall.MS_REMOUNT)
			if args[1] == "ro" {
				flags |= syscall.MS_RDONLY
			}
			ts.Check(syscall.Mount("tmpfs", ts.MkAbs(args[0]), "tmpfs", flags, ""))
		},
		"fill": func(ts *testscript.TestScript, neg bool, args []string) {
			ts.Check(fillUp(filepath.Join(ts.MkAbs(args[0]), "ballast")))
		},
		"spare": func(ts *testscript.TestScript, neg bool, args []string) {
			ts.Check(os.Remove(filepath.Join(ts.MkAbs(args[0]), "ballast")))
		},
		"grow": func(ts *testscript.TestScript, neg bool, args []string) {
			n, err := strconv.Atoi(args[1])
			ts.Check(err)
			// A text in a file of its own costs the parser nothing; in the HCL the race detector would take a minute.
			dir := ts.MkAbs(args[0])
			text := strings.Repeat("A line of text that is long enough.\n", 13_000)
			ts.Check(os.WriteFile(filepath.Join(dir, "grow.txt"), []byte(text), 0o644))
			for i := range n {
				text := fmt.Sprintf("project \"p%d\" {\n  name = \"P\"\n  domain \"p%d.example\" {}\n  template \"T\" {\n    name = \"T\"\n    subject_template = \"S\"\n"+
					"    body_html = file(\"grow.txt\")\n    body_text = file(\"grow.txt\")\n  }\n}\n", i, i)
				ts.Check(os.WriteFile(filepath.Join(dir, fmt.Sprintf("p%d.hcl", i)), []byte(text), 0o644))
			}
		},
		"format": func(ts *testscript.TestScript, neg bool, args []string) {
			n, err := strconv.ParseUint(args[1], 10, 64)
			ts.Check(err)
			db, err := pebble.Open(ts.MkAbs(args[0]), &pebble.Options{FormatMajorVersion: pebble.FormatValueSeparation})
			ts.Check(err)
			ts.Check(errors.Join(db.Set([]byte("mformat"), binary.AppendUvarint(nil, n), pebble.Sync), db.Close()))
		},
		"flip": func(ts *testscript.TestScript, neg bool, args []string) {
			names, err := filepath.Glob(ts.MkAbs(args[0]))
			ts.Check(err)
			if len(names) == 0 {
				ts.Fatalf("no file is called %s", args[0])
			}
			for _, name := range names {
				b, err := os.ReadFile(name)
				ts.Check(err)
				if len(b) > 0 {
					b[len(b)/2] ^= 0x10
				}
				ts.Check(os.WriteFile(name, b, 0o600))
			}
		},
	}
}

// fillUp writes until nothing fits any more.
func fillUp(name string) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer f.Close()
	for size := 1 << 16; size > 0; {
		_, err := f.Write(make([]byte, size))
		if errors.Is(err, syscall.ENOSPC) {
			size /= 2
		} else if err != nil {
			return err
		}
	}
	return nil
}

// canMount decides the condition [mount]: where FINGERPOST_NEED names root a machine that cannot mount is a failure,
// elsewhere the story is skipped.
func canMount() bool { return testrig.IsRoot() || testrig.Compulsory("root") }

// TestDemoKey: the printed key is the one in the shipped files, and nothing else in the tree is a full key.
func TestDemoKey(t *testing.T) {
	b, err := os.ReadFile("../../projects.d/keys.hcl")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{node.DemoKeyID(), catalog.HashKeyText(node.DemoKey)} {
		if !strings.Contains(string(b), want) {
			t.Errorf("projects.d/keys.hcl does not have %s", want)
		}
	}
	err = filepath.WalkDir("../../projects.d", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(name)
		if strings.Contains(string(b), node.DemoKey) {
			t.Errorf("%s holds the key itself", name)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

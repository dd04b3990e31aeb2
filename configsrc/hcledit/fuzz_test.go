package hcledit_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"fingerpost/configsrc/hcledit"
	"fingerpost/configsrc/hclfile"
)

func seeds(f *testing.F) [][]byte {
	files, err := filepath.Glob("../hclfile/testdata/*/*.hcl")
	if err != nil || len(files) == 0 {
		f.Fatalf("no seeds: %v", err)
	}
	var all [][]byte
	for _, file := range files {
		src, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		all = append(all, src)
	}
	return append(all, []byte("a = <<E\n"), []byte("x \"${"), []byte("p { a = \"\n} \""), []byte("\xef\xbb\xbf{"), []byte("a = 1e999999999"), []byte("\"\r\n\x1b[31m"))
}

// FuzzEdit asserts that an edit either refuses or changes what it is about, and that formatting is a fixed point.
func FuzzEdit(f *testing.F) {
	for _, src := range seeds(f) {
		f.Add(src, "name", "x\ny")
	}
	f.Fuzz(func(t *testing.T, src []byte, name, value string) {
		if len(src) > 64<<10 || len(value) > 64<<10 {
			t.Skip()
		}
		r, ds := hclfile.Decode("fuzz.hcl", src, hclfile.Options{})
		if out, ds := hclfile.Format(src); !ds.HasErrors() {
			if again, ds := hclfile.Format(out); ds.HasErrors() || !bytes.Equal(out, again) {
				t.Errorf("formatting %q gives %q and then %q", src, out, again)
			}
		}
		if ds.HasErrors() {
			return
		}
		for _, at := range blocksOf(r.Declared) {
			for _, expr := range []string{value, hcledit.Quote(value), hcledit.Literal(value)} {
				after, err := hcledit.SetAttribute(src, at, name, expr)
				if err != nil {
					continue
				}
				if again, err := hcledit.SetAttribute(after, at, name, expr); err != nil || hcledit.InLanguage(after, at, name) && !bytes.Equal(after, again) {
					t.Errorf("setting %s twice: %v\n%q\n%q", name, err, after, again)
				}
			}
			if after, err := hcledit.RemoveBlock(src, at[0], at[1:]...); err == nil && len(after) >= len(src) {
				t.Errorf("removing %v made the file longer", at)
			} else if err != nil {
				t.Errorf("removing %v: %v", at, err)
			}
			if _, err := hcledit.RenameLabel(src, at, value); err == nil && len(value) > 1<<20 {
				t.Error("a label of any length")
			}
		}
		after, err := hcledit.AppendBlock(src, "key "+hcledit.Quote(value)+" {\n  id = \"abc\"\n}")
		if err == nil && !bytes.HasPrefix(after, src) {
			t.Errorf("appending changed what was there: %q", after)
		}
	})
}

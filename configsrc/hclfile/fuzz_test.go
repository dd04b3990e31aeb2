package hclfile_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fingerpost/cmd/testrig"
	"fingerpost/configsrc/hclfile"
)

// sentinel is a secret that no diagnostic may show.
const sentinel = "S3NT1NELs3cr3t"

func seeds(f *testing.F) [][]byte {
	files, err := filepath.Glob("testdata/*/*.hcl")
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

// FuzzDecode asserts that nothing panics or stalls, that diagnostics lie within the file, and that a secret on a line of
// its own is in none of them, whatever stands around it.
func FuzzDecode(f *testing.F) {
	for _, src := range seeds(f) {
		f.Add(src, uint(len(src)/2), uint8(0))
		f.Add(src, uint(len(src)/3), uint8(3))
	}
	secrets := []string{"password = \"" + sentinel + "\"", "password = \"" + sentinel, "jwt_secret = <<EOT\n" + sentinel + "\nEOT", "  hash=" + sentinel,
		"password \"" + sentinel + "\" {}", "password = [\n\"" + sentinel + "\"]", "jwt_secret = \"" + sentinel + "\" junk ${", "password = \"a\n" + sentinel + "\"",
		"secret = [\"" + sentinel + "\", env(\"A\")]", "secret = [\n\"" + sentinel + "\",\n  sealed(\"eA==\")]", "secret=\"" + sentinel + "\"}",
		"client_secret = \"" + sentinel + "\"", "client_secret \"" + sentinel + "\" {}", "client_secret = <<E\n" + sentinel + "\nE"}
	f.Fuzz(func(t *testing.T, src []byte, at uint, which uint8) {
		if len(src) > 64<<10 {
			t.Skip()
		}
		decode := func(src []byte) {
			start := time.Now()
			r, ds := hclfile.Decode("fuzz.hcl", src, hclfile.Options{ReadFile: mail, Rules: rules})
			testrig.AtMost(t, time.Since(start), slow)
			checkRanges(t, src, ds)
			for _, ref := range r.Declared.Refs() {
				ds = append(ds, r.Diagnose(ref, hclfile.Error, "s", "d"))
			}
			if out := text(ds); strings.Contains(out, sentinel) && !bytes.Contains(src, []byte(sentinel+sentinel)) {
				t.Errorf("the secret is shown:\n%s", out)
			}
		}
		if !bytes.Contains(src, []byte(sentinel)) {
			decode(src)
		}
		n := int(at % uint(len(src)+1))
		head := src[:n]
		if i := bytes.LastIndexByte(head, '\n'); i >= 0 {
			head = head[:i+1]
		} else {
			head = nil
		}
		if bytes.Contains(src, []byte(sentinel)) {
			t.Skip()
		}
		decode(bytes.Join([][]byte{head, []byte(secrets[int(which)%len(secrets)] + "\n"), src[n:]}, nil))
	})
}

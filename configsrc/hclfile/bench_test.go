package hclfile_test

import (
	"os"
	"testing"

	"fingerpost/configsrc/hclfile"
)

// BenchmarkDecode reads a file such as a project of some size has; the aim is 0.35 ms.
func BenchmarkDecode(b *testing.B) {
	src, err := os.ReadFile("testdata/good/acme.hcl")
	if err != nil {
		b.Fatal(err)
	}
	body := []byte("<p>Hello {{userName}}</p>\n")
	o := hclfile.Options{ReadFile: func(string) ([]byte, error) { return body, nil }}
	b.SetBytes(int64(len(src)))
	b.ReportAllocs()
	for b.Loop() {
		if _, ds := hclfile.Decode("acme.hcl", src, o); len(ds) > 0 {
			b.Fatal(ds)
		}
	}
}

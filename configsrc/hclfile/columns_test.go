package hclfile_test

import (
	"bufio"
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"

	ours "github.com/apparentlymart/go-textseg/v15/textseg"
	library "github.com/apparentlymart/go-textseg/v17/textseg"
)

// clusterPieces are characters that combine, or do not, with their neighbours.
var clusterPieces = []string{"a", "Z", "9", " ", "\t", "\r", "\n", "\r\n", "\x00", "\x7f", "\x80", "\xff", "é",
	"e\u0301", "\u0301", "\u200d", "🇩", "🇪", "👩\u200d🚀", "한", "ᄒ", "ᅡ", "ᆫ", "\u0600", "\u0903", "\ufeff", "\u00ad", "\u2028", "क्ष"}

// TestColumnsOfTexts: package textseg, which HCL counts columns with, gives the clusters of the library.
func TestColumnsOfTexts(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 5))
	for range 20_000 {
		var text []byte
		for range random.IntN(8) {
			text = append(text, clusterPieces[random.IntN(len(clusterPieces))]...)
		}
		for _, atEOF := range []bool{true, false} {
			for rest := text; ; {
				advance, token, err := ours.ScanGraphemeClusters(rest, atEOF)
				wantAdvance, want, wantErr := library.ScanGraphemeClusters(rest, atEOF)
				if advance != wantAdvance || !bytes.Equal(token, want) || !errors.Is(err, wantErr) {
					t.Fatalf("%q, all of it %t: %d %q %v, want %d %q %v", rest, atEOF, advance, token, err, wantAdvance, want,
						wantErr)
				}
				if advance == 0 {
					break
				}
				rest = rest[advance:]
			}
		}
	}
}

func BenchmarkColumns(b *testing.B) {
	text := bytes.Repeat([]byte("  domain \"shop.acme.example\" { primary = true }\n"), 1000)
	for name, scan := range map[string]bufio.SplitFunc{
		"ours": ours.ScanGraphemeClusters, "library": library.ScanGraphemeClusters,
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				for rest := text; len(rest) > 0; {
					n, _, _ := scan(rest, true)
					rest = rest[n:]
				}
			}
		})
	}
}

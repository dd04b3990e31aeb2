package hostname_test

import (
	"testing"

	"fingerpost/resolver/hostname"
)

// BenchmarkAppend measures the first step of each resolve: making a client's host canonical.
func BenchmarkAppend(b *testing.B) {
	for _, kind := range []struct{ name, host string }{
		{"clean", "shop.brisk-otter-012345.example"},
		{"case, dot and port", "Shop.Brisk-Otter-012345.Example.:8443"},
		{"refused", "shop..brisk-otter-012345.example"},
	} {
		b.Run(kind.name, func(b *testing.B) {
			raw, buffer := []byte(kind.host), make([]byte, 0, 256)
			b.ReportAllocs()
			for b.Loop() {
				host, _, err := hostname.Append(buffer, raw)
				if (err != nil) != (kind.name == "refused") {
					b.Fatalf("%q, %v", host, err)
				}
			}
		})
	}
	b.Run("international", func(b *testing.B) {
		raw, buffer := []byte("bücher.example"), make([]byte, 0, 256)
		b.ReportAllocs()
		for b.Loop() {
			host, idn, err := hostname.Append(buffer, raw)
			if err != nil || !idn {
				b.Fatal(idn, err)
			}
			if _, err := hostname.FinishIDN(host); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkNextWildcard measures the walk of a miss over the suffixes of a deep name.
func BenchmarkNextWildcard(b *testing.B) {
	host := []byte("a.b.c.d.brisk-otter-012345.example")
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		for suffix, ok := hostname.NextWildcard(host); ok; suffix, ok = hostname.NextWildcard(suffix) {
			n++
		}
		if n != 5 {
			b.Fatalf("%d suffixes", n)
		}
	}
}

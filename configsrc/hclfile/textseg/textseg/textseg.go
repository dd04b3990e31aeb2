// Package textseg stands in for the package that HCL counts columns with, by a replace line of go.mod: it splits ASCII
// by itself and leaves the rest to the library's present version.
//
// What it promises. The clusters are those of the library (TestColumnsOfTexts of package hclfile compares them).
//
// What it needs. github.com/apparentlymart/go-textseg/v17.
//
// What it does not do. The other functions of the library are missing: HCL and cty call this one.
//
// HCL counts the columns of every token, one character at a time. The library runs a state machine for each, which took
// a fifth of the time of a cold start and of a write. In config files nearly all characters are ASCII, where a character
// is a cluster. From Go 1.27 on HCL imports version 17 itself, and TestTextsegIsReplaced fails.
package textseg

import "github.com/apparentlymart/go-textseg/v17/textseg"

// ScanGraphemeClusters returns the first grapheme cluster of data (Unicode, UAX #29) as a bufio.SplitFunc does.
func ScanGraphemeClusters(data []byte, atEOF bool) (advance int, token []byte, err error) {
	switch {
	case len(data) == 1 && atEOF && data[0] < 0x80:
		return 1, data[:1], nil
	case len(data) > 1 && data[0]|data[1] < 0x80 && (data[0] != '\r' || data[1] != '\n'):
		return 1, data[:1], nil // ASCII before ASCII is a cluster, but for CR LF
	}
	return textseg.ScanGraphemeClusters(data, atEOF)
}

package catalog_test

import (
	"strings"
	"testing"

	"fingerpost/resolver/catalog"
)

func TestParsePosition(t *testing.T) {
	epoch := catalog.NewEpoch()
	if !catalog.IsEpoch(epoch) || epoch == catalog.NewEpoch() {
		t.Fatalf("epoch %q is malformed, or not random", epoch)
	}
	for _, generation := range []uint64{0, 1, 42, 1<<64 - 1} {
		want := catalog.Position{Epoch: epoch, Generation: generation}
		if got, err := catalog.ParsePosition(want.String()); got != want || err != nil {
			t.Errorf("ParsePosition(%q) = %v, %v", want.String(), got, err)
		}
	}
	for _, bad := range []string{
		"", ".", "1", "0123456789abcdef", "0123456789abcdef.", ".1", "0123456789ABCDEF.1", "0123456789abcdeg.1",
		"0123456789abcde.1", "0123456789abcdef0.1", "0123456789abcdef.01", "0123456789abcdef.+1", "0123456789abcdef.-1",
		"0123456789abcdef.1 ", " 0123456789abcdef.1", "0123456789abcdef.1.2", "0123456789abcdef.18446744073709551616",
	} {
		got, err := catalog.ParsePosition(bad)
		if err == nil || got != (catalog.Position{}) || !strings.Contains(err.Error(), "16 hexadecimal digits") {
			t.Errorf("ParsePosition(%q) = %v, %v; want an error that shows the form", bad, got, err)
		}
	}
}

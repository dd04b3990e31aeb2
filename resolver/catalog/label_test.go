package catalog_test

import (
	"fmt"
	"strings"
	"testing"

	"fingerpost/resolver/catalog"
)

func TestValidateLabels(t *testing.T) {
	f := func(want string, labels ...catalog.Label) {
		t.Helper()
		var got []string
		for _, p := range catalog.ValidateLabels(labels) {
			got = append(got, p.Path+" "+p.Message)
		}
		if text := strings.Join(got, "; "); text != want {
			t.Errorf("%v: %q, want %q", labels, text, want)
		}
	}
	l := func(name, value string) catalog.Label { return catalog.Label{Name: name, Value: value} }
	f("")
	f("", l("plan", "gold"), l("shard", "eu-1"), l("x", ""))
	f("", l("a"+strings.Repeat("b", 30), strings.Repeat("ü", 256)))
	const name = "a label's name has 1 to 31 of a-z, 0-9 and underscores, and begins with a letter"
	for _, bad := range []string{"", "Plan", "1a", "a-b", "a" + strings.Repeat("b", 31)} {
		f("labels."+bad+" "+name, l(bad, "x"))
	}
	f("labels.plan is there twice", l("plan", "a"), l("plan", "b"))
	f("labels.plan has 257 characters, 256 are allowed", l("plan", strings.Repeat("ü", 257)))
	f("labels.plan must hold printable characters only", l("plan", "a\r\nX-Project-Id: 1"))
	var many []catalog.Label
	for i := range 33 {
		many = append(many, l(fmt.Sprintf("l%02d", i), ""))
	}
	f("labels has 33 labels, 32 are allowed", many...)
	f("", many[:32]...)
}

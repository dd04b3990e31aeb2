package hcledit_test

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"fingerpost/cmd/testrig"
	"fingerpost/configsrc/hcledit"
	"fingerpost/configsrc/hclfile"
)

// keyFile puts lists into key blocks.
func keyFile(lists ...string) string {
	var b strings.Builder
	for i, list := range lists {
		name := string(rune('a' + i))
		b.WriteString("key \"" + name + "\" {\n  id       = \"aaaaa" + name + "\"\n  hash     = \"sha256:" + strings.Repeat("0", 64) +
			"\"\n  allow    = [\"read\"]\n  projects = " + list + "\n}\n")
	}
	return b.String()
}

// replaceInKeys makes the edit and proves it.
func replaceInKeys(t *testing.T, src []byte, old, now string) []byte {
	t.Helper()
	r, ds := hclfile.Decode("keys.hcl", src, hclfile.Options{})
	if ds.HasErrors() {
		t.Fatalf("%v in %s", ds, src)
	}
	d := hcledit.NewDraft(r)
	found, err := d.ReplaceInLists(old, now)
	if err != nil {
		t.Fatal(err)
	}
	if !found {
		return src
	}
	out, err := d.Bytes()
	if err != nil {
		t.Fatalf("%v in %s", err, src)
	}
	if _, ds := hclfile.Decode("keys.hcl", out, hclfile.Options{}); ds.HasErrors() {
		t.Fatalf("%v in\n%s\nfrom\n%s", ds, out, src)
	}
	if err := d.Prove(out); err != nil {
		t.Fatalf("%v in\n%s\nfrom\n%s", err, out, src)
	}
	return out
}

func TestReplaceInLists(t *testing.T) {
	f := func(list, renamed, removed string) {
		t.Helper()
		for now, want := range map[string]string{"shop": renamed, "": removed} {
			file := keyFile(`["x"]`, want, want)
			if before, _ := hclfile.Format([]byte(keyFile(`["x"]`, list, list))); string(before) == keyFile(`["x"]`, list, list) {
				formatted, ds := hclfile.Format([]byte(file))
				if ds.HasErrors() {
					t.Fatal(ds)
				}
				file = string(formatted)
			}
			edited(t, list+" to "+now, keyFile(`["x"]`, list, list), file, func(src []byte) ([]byte, error) {
				return replaceInKeys(t, src, "acme", now), nil
			})
		}
	}
	f(`["acme"]`, `["shop"]`, `[]`)
	f(`["acme"] # why`, `["shop"] # why`, `[] # why`)
	f(`["acme", "x"]`, `["shop", "x"]`, `["x"]`)
	f(`["x", "acme"]`, `["x", "shop"]`, `["x"]`)
	f(`["x", "acme", "acme"]`, `["x", "shop", "shop"]`, `["x"]`)
	f(`["x", /* the shop */ "acme"]`, `["x", /* the shop */ "shop"]`, `["x", /* the shop */ ]`)
	f(`(["acme", "acme-two"])`, `(["shop", "acme-two"])`, `(["acme-two"])`)
	f(`["\u0061cme", "x"]`, `["shop", "x"]`, `["x"]`)
	f("[\n    \"acme\",\n  ]", "[\n    \"shop\",\n  ]", "[]")
	f("[\n    \"acme\", # the shop\n    \"x\"\n  ]", "[\n    \"shop\", # the shop\n    \"x\"\n  ]", "[\n    \"x\"\n  ]")
	f("[\n    # one\n    \"x\",\n    \"acme\"\n  ]", "[\n    # one\n    \"x\",\n    \"shop\"\n  ]", "[\n    # one\n    \"x\",\n  ]")
	f("[\n    \"x\",\n    # the shop\n    \"acme\",\n  ]", "[\n    \"x\",\n    # the shop\n    \"shop\",\n  ]", "[\n    \"x\",\n  ]")
	f("[\n    # none but it\n    \"acme\"\n  ]", "[\n    # none but it\n    \"shop\"\n  ]", "[\n    # none but it\n  ]")
	f("[\"x\",\n    \"acme\", \"y\"]", "[\"x\",\n    \"shop\", \"y\"]", "[\"x\",\n    \"y\"]")
	f(`["x"]`, `["x"]`, `["x"]`)
	f(`[]`, `[]`, `[]`)
}

// TestReplaceInListsAtRandom: whatever a list looks like, only the slug's elements change, and no comment is lost but on
// lines that go.
func TestReplaceInListsAtRandom(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	pick := func(of ...string) string { return of[random.IntN(len(of))] }
	for range testrig.Size(t, 2000, 50) {
		var b, want strings.Builder
		b.WriteString("[" + pick("", " ", "\n", " # c\n", "/* d */"))
		n := random.IntN(4)
		for i := range n {
			e := pick("acme", "acme", "x", "acme-x")
			if e != "acme" {
				want.WriteString(e + " ")
			}
			b.WriteString(`"` + e + `"` + pick("", " ", "/* e */"))
			if i < n-1 || random.IntN(2) == 0 {
				b.WriteString("," + pick("", " ", "\n", " # f\n", "/* g */", "/* h */\n", "\n\n"))
			} else {
				b.WriteString(pick("", "\n", " # i\n"))
			}
		}
		b.WriteString("]" + pick("", " # j"))
		for _, src := range [][]byte{[]byte(keyFile(b.String())), bytes.ReplaceAll([]byte(keyFile(b.String())), []byte("\n"), []byte("\r\n"))} {
			r, _ := hclfile.Decode("keys.hcl", replaceInKeys(t, src, "acme", ""), hclfile.Options{})
			if got := strings.Join(append(r.Declared.Keys[0].Projects, ""), " "); got != want.String() || r.Declared.Keys[0].Projects == nil {
				t.Fatalf("%q, want %q, of %s", got, want.String(), src)
			}
			r, _ = hclfile.Decode("keys.hcl", replaceInKeys(t, src, "acme", "shop"), hclfile.Options{})
			if got := strings.Count(strings.Join(r.Declared.Keys[0].Projects, " "), "shop"); got+strings.Count(want.String(), " ") != n {
				t.Fatalf("%v of %s", r.Declared.Keys[0].Projects, src)
			}
		}
	}
}

package hclfile_test

import (
	"strings"
	"testing"

	"fingerpost/configsrc/hclfile"
)

func TestEdges(t *testing.T) {
	const key, other = "UAYR3PTZADPQTTJLCODAOEHVHW7FVQWCRF7L6VCCSALXQUROFKHFTQKA", "UBQ3J4ZN7UWSFG5PNH64AO3HUDLO74AAUCTB7J5U37N354NZPW3UNZOQ"
	r, diags := hclfile.Decode("e.hcl", []byte("edge \"fra1\" {\n  public_key = \""+key+"\"\n}\n"), hclfile.Options{})
	if diags.HasErrors() || len(r.Declared.Edges) != 1 || r.Declared.Edges[0].Name != "fra1" || r.Declared.Edges[0].PublicKey != key {
		t.Fatalf("%v, %+v", diags, r.Declared.Edges)
	}
	for src, want := range map[string]string{
		"edge \"fra1\" {}\n":                            `attribute "public_key" is missing`,
		"edge \"fra1\" {\n  public_key = \"U123\"\n}\n": "public nkey of a user",
		"edge \"fra1\" {\n  public_key = \"" + key[:30] + "AAAAAAAA" + key[38:] + "\"\n}\n":                    "public nkey of a user",
		"edge \"fra 1\" {\n  public_key = \"" + key + "\"\n}\n":                                                "an edge's name has 1 to 64",
		"edge \"a.b\" {\n  public_key = \"" + key + "\"\n}\n":                                                  "an edge's name has 1 to 64",
		"edge {\n  public_key = \"" + key + "\"\n}\n":                                                          "its name",
		"edge \"a\" {\n  public_key = \"" + key + "\"\n}\nedge \"a\" {\n  public_key = \"" + other + "\"\n}\n": `edge "a" is declared twice`,
		"edge \"a\" {\n  public_key = \"" + key + "\"\n}\nedge \"b\" {\n  public_key = \"" + key + "\"\n}\n":   "two edges have the same key",
		"edge \"a\" {\n  publik_key = \"" + key + "\"\n}\n":                                                    "public_key",
		"edge \"a\" {\n  public_key = env(\"X\")\n}\n":                                                         "env",
	} {
		_, diags := hclfile.Decode("e.hcl", []byte(src), hclfile.Options{})
		var text strings.Builder
		_ = diags.WriteText(&text, false) // to a Builder
		if !diags.HasErrors() || !strings.Contains(text.String(), want) {
			t.Errorf("%q:\n%s\nwant %q", src, text.String(), want)
		}
	}
}

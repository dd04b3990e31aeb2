package api_test

import (
	"os"
	"testing"

	"go.yaml.in/yaml/v3"
)

// TestOpenAPIStrict finds accidents that YAML accepts: a key twice in one map, and a key without a value, which a comma
// in unquoted text creates.
func TestOpenAPIStrict(t *testing.T) {
	text, err := os.ReadFile("openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	maps := 0
	var walk func(n *yaml.Node)
	walk = func(n *yaml.Node) {
		if n.Kind == yaml.MappingNode {
			maps++
			seen := map[string]bool{}
			for i := 0; i < len(n.Content); i += 2 {
				key, value := n.Content[i], n.Content[i+1]
				if seen[key.Value] {
					t.Errorf("openapi.yaml:%d: %q stands twice in one map", key.Line, key.Value)
				}
				seen[key.Value] = true
				if value.Kind == yaml.ScalarNode && value.Tag == "!!null" && value.Value == "" {
					t.Errorf("openapi.yaml:%d: %q has no value; text with a comma must be quoted", key.Line, key.Value)
				}
			}
		}
		for _, child := range n.Content {
			walk(child)
		}
	}
	walk(&doc)
	if maps < 1000 {
		t.Errorf("only %d maps were found", maps)
	}
}

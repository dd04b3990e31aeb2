package api_test

import (
	"fmt"
	"os"
	"strings"
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

// The names of components are unique across their kinds, whatever their case: generators make types of them.
func TestOpenAPIComponentsAreUnique(t *testing.T) {
	t.Parallel()
	components, _ := describedAPI(t).doc["components"].(map[string]any)
	kinds := map[string]string{}
	for kind, named := range components {
		all, _ := named.(map[string]any)
		for name := range all {
			if other := kinds[strings.ToLower(name)]; other != "" {
				t.Errorf("%s is in %s and in %s", name, other, kind)
			}
			kinds[strings.ToLower(name)] = kind
		}
	}
	if len(kinds) < 100 {
		t.Errorf("only %d components", len(kinds))
	}
}

// Every operation that takes X-Propose may answer 202 with a proposal, and that nothing has changed.
func TestOpenAPIOfProposedWrites(t *testing.T) {
	t.Parallel()
	paths, _ := describedAPI(t).doc["paths"].(map[string]any)
	writes := 0
	for path, item := range paths {
		methods, _ := item.(map[string]any)
		for method, op := range methods {
			o, _ := op.(map[string]any)
			if !strings.Contains(fmt.Sprint(o["parameters"]), "/parameters/Propose") {
				continue
			}
			writes++
			answers, _ := o["responses"].(map[string]any)
			if !strings.Contains(fmt.Sprint(answers["202"]), "Proposed") || answers["422"] == nil {
				t.Errorf("%s %s: 202 is %v, 422 is %v", method, path, answers["202"], answers["422"])
			}
		}
	}
	if writes < 14 {
		t.Errorf("only %d operations take X-Propose", writes)
	}
}

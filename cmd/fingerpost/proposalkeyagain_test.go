package main

import (
	"fmt"
	"net/http"
	"testing"

	"fingerpost/cmd/testrig"
	"fingerpost/resolver/catalog"
)

// TestProposalOfAFormerKey: a key that is made again under a name inherits nothing of what the former key has proposed:
// it cannot drop it, and the rights that it has do not let it be applied.
func TestProposalOfAFormerKey(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	g := newProposalRig(t, nil)
	acme := g.pathOf("acme")
	g.add("hint", "former", http.MethodPut, acme, `{"name":"Of the former key"}`)
	g.add("hint", "own", http.MethodPut, acme, `{"name":"Dropped by its maker"}`)
	g.must(g.as("hint", "", http.MethodDelete, proposalsPath+"/own", ""), http.StatusOK)

	text, id := catalog.NewKeyText()
	g.save(func() bool { return g.ask(http.MethodGet, acme, text, "").status == http.StatusOK }, map[string]string{
		"key-hint.hcl": fmt.Sprintf("key \"hint\" {\n  id = %q\n  hash = %q\n  %s\n}\n", id, catalog.HashKeyText(text), proposalKeys["hint"])})
	g.keys["hint"] = text
	g.must(g.as("hint", "", http.MethodDelete, proposalsPath+"/former", ""), http.StatusForbidden)
	g.must(g.as("first", "", http.MethodPost, proposalsPath+"/former/apply", ""), http.StatusConflict)
	g.must(g.as("first", "", http.MethodDelete, proposalsPath+"/former", ""), http.StatusOK)
}

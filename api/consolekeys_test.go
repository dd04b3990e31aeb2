package api_test

import (
	"bytes"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// TestConsoleKeyChange rotates and revokes a key with a commit message. A change of a key cannot be proposed.
func TestConsoleKeyChange(t *testing.T) {
	_, file := keyFile("leaver", `allow = ["read"]`)
	_, other := keyFile("other", `allow = ["read"]`)
	r := newConsoleRig(t, newDesk(t, map[string]string{"leaver.hcl": file, "other.hcl": other}))
	g := r.signIn(t, r.key)
	g.send("/console/keys", nil)
	sent, _ := g.controls("/console/keys/leaver")
	for _, do := range []string{"rotate", "revoke"} {
		sent.Set("do", do)
		g.send("/console/keys/leaver", sent)
		if g.status != http.StatusOK || !strings.Contains(g.page, "Commit message") || strings.Contains(g.page, "Propose") {
			t.Fatalf("%s: %d %s", do, g.status, visibleText(g.page))
		}
		draft := url.Values{"token": sent["token"], "message": {"Say why"}, "proposal": {"a-key"}}
		at := g.path
		draft.Set("do", "propose")
		g.send(at, draft)
		if g.status != http.StatusBadRequest || !strings.Contains(g.page, "Keys are always live") {
			t.Errorf("%s, proposed: %d %s", do, g.status, visibleText(g.page))
		}
		draft.Set("do", "save")
		g.send(at, draft)
		last := r.calls[len(r.calls)-1]
		if g.status != http.StatusOK || last.status != http.StatusOK || last.header.Get("X-Change-Message") != "Say why" {
			t.Errorf("%s: %d %v, then %d %s", do, last.status, last.header, g.status, visibleText(g.page))
		}
	}
	if r.resolver.Keys().Named("leaver") != nil {
		t.Error("the key is still there")
	}
}

// TestConsoleHidesSecret: the answers of a look-up are shown without the secret of the tokens, whatever is in it.
func TestConsoleHidesSecret(t *testing.T) {
	r := newConsoleRig(t, newDesk(t, map[string]string{"acme.hcl": "project \"acme\" {\n  name = \"Acme\"\n  domain \"acme.example\" {}\n}\n"}))
	r.alter = func(_ string, answer []byte) []byte {
		return bytes.Replace(answer, []byte(`"jwtSecret":null`), []byte(`"jwtSecret":"a \"quote\", a \\ and the rest"`), 1)
	}
	g := r.signIn(t, r.key)
	g.send("/console/lookup?domain=acme.example", nil)
	if strings.Contains(g.page, "the rest") || !strings.Contains(g.page, `jwtSecret&#34;: &#34;(secret)&#34;`) {
		t.Errorf("%d %s", g.status, visibleText(g.page))
	}
}

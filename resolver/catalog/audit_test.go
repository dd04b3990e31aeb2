package catalog_test

import (
	"testing"

	"fingerpost/resolver/catalog"
)

func TestBy(t *testing.T) {
	by := func(actor, key, who string, want bool) {
		t.Helper()
		if e := (&catalog.AuditEntry{Actor: actor, Key: key}); e.By(who) != want {
			t.Errorf("%q with the key %q is by %q: %v", actor, key, who, !want)
		}
	}
	const ada = "Ada Lovelace <ada@example.com>"
	by(ada, "desk", ada, true)
	by(ada, "desk", "ada lovelace", true)
	by(ada, "desk", "Ada@Example.com", true)
	by(ada, "desk", "desk", true)
	by(ada, "desk", "Ada", false)
	by(`"Lovelace, Ada" <ada@example.com>`, "", "Lovelace, Ada", true)
	by("desk", "desk", "desk", true)
	by("", "", "ada", false)
}

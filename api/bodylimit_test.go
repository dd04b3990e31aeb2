package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"fingerpost/cmd/testrig"
)

// TestBodiesBeyondTheFile: what no config file can hold is a 4xx that says what to do about it, and not an internal
// error.
func TestBodiesBeyondTheFile(t *testing.T) {
	t.Parallel()
	testrig.Thorough(t)
	if testrig.Race {
		t.Skip("large texts are run without the race detector, in CI too")
	}
	d := newDesk(t, map[string]string{"acme.hcl": "project \"acme\" {\n  name = \"Acme\"\n}\n"})
	p, err := d.resolver.ProjectBySlug("acme")
	if err != nil {
		t.Fatal(err)
	}
	// Short enough for the config file, in which each character takes six.
	save := func(code string) *answer {
		body, err := json.Marshal(map[string]string{"code": code, "name": "n", "subjectTemplate": "s", "bodyText": strings.Repeat("$", 60_000)})
		if err != nil {
			t.Fatal(err)
		}
		var a *answer
		testrig.Eventually(t, "a write that finds its turn", func() bool {
			a = d.mail(t, http.MethodPut, fmt.Sprintf("/projects/%d/templates", p.ID), string(body))
			return a.StatusCode != http.StatusServiceUnavailable
		})
		return a
	}
	for _, code := range []string{"A", "B"} {
		save(code).check(t, 201, "")
	}
	before := d.files(t)["acme.hcl"]
	a := save("C")
	a.check(t, 409, "CONFIG_FILE_INVALID")
	if message, _ := a.json["message"].(string); !strings.Contains(message, " acme.hcl: ") || !strings.Contains(message, "file(") {
		t.Errorf("message %q", message)
	}
	if d.files(t)["acme.hcl"] != before {
		t.Error("the file has changed")
	}
}

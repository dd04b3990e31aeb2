package api_test

import (
	"net/http"
	"strings"
	"testing"

	"fingerpost/cmd/testrig"
	"fingerpost/resolver/catalog"
)

// TestPositions: every answer says its position, and a request may ask for one.
func TestPositions(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	h := start(t)
	position := func(a *answer) catalog.Position {
		t.Helper()
		p, err := catalog.ParsePosition(a.Header.Get("X-Config-Position"))
		if err != nil || len(a.Header.Values("X-Config-Position")) != 1 {
			t.Fatalf("X-Config-Position %q: %v", a.Header.Values("X-Config-Position"), err)
		}
		return p
	}
	const hit = resolveURL + "?domain=shop.acme.example"
	first := position(h.ask("GET", hit, h.all))
	for _, target := range []string{hit, hit + "&form=flat", resolveURL + "?domain=nobody.example", resolveURL, "/api/platform/projects", "/api/platform/projects/1"} {
		if got := position(h.ask("GET", target, h.all)); got != first {
			t.Errorf("%s is at %v, want %v", target, got, first)
		}
	}
	if got := position(h.ask("GET", hit, "")); got != first {
		t.Errorf("without a key: %v", got)
	}
	h.apply("new.hcl", &catalog.Declared{Projects: []catalog.ProjectConfig{project(9, "new", "New", catalog.StatusActive, "new.example")}})
	next := position(h.ask("GET", resolveURL+"?domain=new.example", h.all))
	if next.Epoch != first.Epoch || next.Generation <= first.Generation {
		t.Errorf("a change after %v is at %v", first, next)
	}
	min := func(value string) string { return "X-Min-Position: " + value }
	for _, target := range []string{hit, "/api/platform/projects"} {
		h.ask("GET", target, h.all, min(next.String())).check(t, http.StatusOK, "")
		future := catalog.Position{Epoch: next.Epoch, Generation: next.Generation + 1000}
		late := h.ask("GET", target, h.all, min(future.String()))
		late.check(t, http.StatusServiceUnavailable, "UNAVAILABLE")
		if late.Header.Get("Retry-After") == "" {
			t.Errorf("%s: no Retry-After", target)
		}
		other := catalog.Position{Epoch: catalog.NewEpoch(), Generation: 1}
		h.ask("GET", target, h.all, min(other.String())).check(t, http.StatusConflict, "POSITION_UNKNOWN")
		for _, bad := range []string{"7", "x.7", next.Epoch, next.Epoch + ".", next.Epoch + ".07", strings.ToUpper(next.Epoch) + ".7x", next.Epoch + ".-1", next.Epoch + ".99999999999999999999"} {
			h.ask("GET", target, h.all, min(bad)).check(t, http.StatusBadRequest, "VALIDATION_ERROR")
		}
		h.ask("GET", target, "", min("7")).check(t, http.StatusUnauthorized, "UNAUTHORIZED")
	}
}

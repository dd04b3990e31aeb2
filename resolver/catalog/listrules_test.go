package catalog_test

import (
	"slices"
	"testing"

	"fingerpost/resolver/catalog"
)

// TestProjectLists: keys, rules of logins, webhooks and inbound blocks say the same of a list of projects.
func TestProjectLists(t *testing.T) {
	t.Parallel()
	for kind, validate := range map[string]func(list []string) catalog.Problems{
		"key":     func(list []string) catalog.Problems { return (&catalog.Key{Projects: list}).Validate() },
		"rule":    func(list []string) catalog.Problems { return (&catalog.LoginRule{Projects: list}).Validate() },
		"webhook": func(list []string) catalog.Problems { return (&catalog.Webhook{Projects: list}).Validate(nil) },
		"inbound": func(list []string) catalog.Problems { return (&catalog.Inbound{Projects: list}).Validate() },
	} {
		f := func(list []string, want ...bool) { // whether each problem of the list is a warning
			t.Helper()
			var got []bool
			for _, p := range validate(list) {
				if p.Path == "projects" {
					got = append(got, p.Warning)
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s with %q: %v, want %v", kind, list, got, want)
			}
		}
		f(nil)
		f([]string{"acme", "globex"})
		f([]string{}, true)
		f([]string{"acme", "A b", "acme"}, false, true)
	}
}

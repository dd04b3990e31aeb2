package catalog_test

import (
	"math"
	"testing"
	"time"

	"fingerpost/resolver/catalog"
)

// How long a send is retried, as a text and as a duration.
func TestTemplateLifetime(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"": 24 * time.Hour, "10m": 10 * time.Minute, "1s": time.Second, "2d": 48 * time.Hour, "1w": 168 * time.Hour, "999999w": math.MaxInt64, "x": 0, "10": 0,
	} {
		if got := (&catalog.Template{MaxAge: text}).Lifetime(); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

package catalog_test

import (
	"strings"
	"testing"
	"time"

	"fingerpost/resolver/catalog"
)

func TestRotateKey(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 1, 12, 0, 0, 700, time.UTC)
	f := func(name string, expires time.Time, overlap time.Duration, wantOld string, wantEnd time.Time) {
		t.Helper()
		k := catalog.Key{Name: name, Allow: catalog.MayRead, Projects: []string{"acme"}, ExpiresAt: expires}
		k.Renew()
		r, err := k.Rotate(now, overlap)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			return
		}
		if want := strings.ReplaceAll(wantOld, "ID", k.ID); r.Old.Name != want || r.Old.ID != k.ID || r.Old.Hash != k.Hash || !r.Old.ExpiresAt.Equal(wantEnd) {
			t.Errorf("the old key is %+v, want it as %s until %v", r.Old, want, wantEnd)
		}
		if ps := r.Old.Validate(); len(ps) > 0 {
			t.Errorf("the old key is invalid: %v", ps)
		}
		id, ok := catalog.KeyTextID([]byte(r.Text))
		if !ok || string(id) != r.New.ID || r.New.ID == k.ID || r.New.HashText() != catalog.HashKeyText(r.Text) ||
			r.New.Name != name || r.New.Allow != k.Allow || r.New.Projects[0] != "acme" || !r.New.ExpiresAt.Equal(expires) {
			t.Errorf("the new key is %+v", r.New)
		}
	}
	day, second := 24*time.Hour, now.Truncate(time.Second)
	f("web", time.Time{}, day, "web-ID", second.Add(day))
	f("web", time.Time{}, 0, "web-ID", second)
	f("web", now.Add(time.Hour), day, "web-ID", now.Add(time.Hour)) // the old key gains nothing
	f("web", now.Add(2*day), day, "web-ID", second.Add(day))
	f("checkout-service", time.Time{}, day, "checkout-service-ID", second.Add(day))
	f(strings.Repeat("n", 64), time.Time{}, day, strings.Repeat("n", 55)+"-ID", second.Add(day))

	refused := func(why string, k catalog.Key) {
		t.Helper()
		if _, err := k.Rotate(now, day); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v, want %s", k.Name, err, why)
		}
	}
	refused("has expired", catalog.Key{Name: "web", ID: "abcdefgh", ExpiresAt: now})
	refused("old one of a rotation", catalog.Key{Name: "web-abcdefgh", ID: "abcdefgh"})
}

func TestParseSpan(t *testing.T) {
	t.Parallel()
	f := func(text string, want time.Duration) {
		t.Helper()
		got, err := catalog.ParseSpan(text)
		if got != want || (err != nil) != (want < 0) {
			t.Errorf("%q: %v, %v, want %v", text, got, err, want)
		}
	}
	bad := func(text string) {
		t.Helper()
		if got, err := catalog.ParseSpan(text); err == nil {
			t.Errorf("%q: %v, want an error", text, got)
		}
	}
	f("0s", 0)
	f("90d", 90*24*time.Hour)
	f("2w", 14*24*time.Hour)
	f("1h30m", 90*time.Minute)
	for _, text := range []string{"", "d", "0d", "-1d", "-1h", "1", "1.5d", "36501d", "1y", "24 h", "999999999h"} {
		bad(text)
	}
}

package catalog_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"fingerpost/resolver/catalog"
)

// TestGoldenIdentity compares with identities computed by an independent program (Python's uuid.uuid5 and hashlib).
// Users store them in databases: a change here renames every object ever declared.
func TestGoldenIdentity(t *testing.T) {
	acme := catalog.DeriveProjectUUID("acme")
	f := func(kind catalog.Kind, u catalog.UUID, uuid string, id int64) {
		t.Helper()
		if u.String() != uuid {
			t.Errorf("%s: uuid %s, want %s", kind, u, uuid)
		}
		if got := catalog.DeriveID(kind, u); got != id {
			t.Errorf("%s %s: id %d, want %d", kind, u, got, id)
		}
	}
	f(catalog.KindProject, acme, "bcbbfc9f-0ac1-5489-b6cf-7209b0d800e1", 57762359579023)
	f(catalog.KindProject, catalog.DeriveProjectUUID("a"), "1656b06e-311a-5ddc-a295-9613258a18c1", 46122697509261)
	f(catalog.KindProject, catalog.DeriveProjectUUID("acme-2"), "929a10b3-8c1b-5e8e-97f8-0825b9e19031", 47931662803410)
	f(catalog.KindDomain, catalog.DeriveDomainUUID(acme, "shop.acme.example"), "c49614e9-142e-5eea-bb4a-473851ecbe8d", 58287354094596)
	f(catalog.KindDomain, catalog.DeriveDomainUUID(acme, "*.acme.example"), "ae35b2a2-c62e-5f40-a9c2-22be2e500869", 52778290513285)
	f(catalog.KindDomain, catalog.DeriveDomainUUID(acme, "xn--bcher-kva.example"), "41353392-a26a-5a65-b3d8-ffff3ce08aba", 53225446330516)
	f(catalog.KindServiceSettings, catalog.DeriveUUID(catalog.KindServiceSettings, acme), "285b3e15-11fd-51f6-a0d8-f539c51cce73", 46474060422571)
	f(catalog.KindAuthSettings, catalog.DeriveUUID(catalog.KindAuthSettings, acme), "cc36cc7b-1402-5a10-b8f9-cb233d801396", 46519922676594)
	f(catalog.KindSMTPConfig, catalog.DeriveUUID(catalog.KindSMTPConfig, acme), "2a03b098-fd30-546a-8b49-1fdfc1e7345f", 49517180537330)
	f(catalog.KindTemplate, catalog.DeriveTemplateUUID(acme, "WELCOME"), "c5e2ee3f-23ab-5a22-baae-d6f85005dc96", 36332724651064)
	f(catalog.KindTemplate, catalog.DeriveTemplateUUID(catalog.UUID{}, "WELCOME"), "7ed787e1-2007-5e9f-8a59-60b36ee5dcb7", 63766843044062)
}

// TestKinds checks the words that take part in identity.
func TestKinds(t *testing.T) {
	want := "project domain service_settings auth_settings smtp_config template key edge webhook login inbound defaults sealing"
	var got []string
	for _, k := range []catalog.Kind{
		catalog.KindProject, catalog.KindDomain, catalog.KindServiceSettings, catalog.KindAuthSettings, catalog.KindSMTPConfig,
		catalog.KindTemplate, catalog.KindKey, catalog.KindEdge, catalog.KindWebhook, catalog.KindLogin, catalog.KindInbound, catalog.KindDefaults, catalog.KindSealing,
	} {
		got = append(got, string(k))
	}
	if strings.Join(got, " ") != want {
		t.Errorf("kinds %q, want %q", got, want)
	}
}

// Derived ids are distinct from declared ones, and are safe as JSON numbers.
func TestDeriveIDRange(t *testing.T) {
	seen := map[int64]bool{}
	var low, high int64 = 1 << 62, 0
	const n = 20000
	for range n {
		id := catalog.DeriveID(catalog.KindDomain, catalog.NewUUID())
		low, high = min(low, id), max(high, id)
		seen[id] = true
	}
	if low < 1<<45 || high >= 1<<46 || low <= catalog.MaxDeclaredID {
		t.Errorf("ids from %d to %d, want 2^45 to 2^46-1", low, high)
	}
	// C's %.14g, with which Lua prints numbers: OpenResty, Kong and Redis hand ids on like this.
	if got := fmt.Sprintf("%.14g", float64(high)); got != strconv.FormatInt(high, 10) {
		t.Errorf("Lua prints %d as %s", high, got)
	}
	if len(seen) != n {
		t.Errorf("%d different ids of %d", len(seen), n)
	}
	// The whole range is used: the odds against this are 2^-40 on each side.
	if low > 1<<45+1<<38 || high < 1<<46-1<<38 {
		t.Errorf("ids from %#x to %#x do not fill the range", low, high)
	}
	u := catalog.NewUUID()
	if catalog.DeriveID(catalog.KindProject, u) == catalog.DeriveID(catalog.KindDomain, u) {
		t.Error("two kinds with one uuid share an id")
	}
}

func TestUUIDVersion(t *testing.T) {
	f := func(u catalog.UUID, version byte) {
		t.Helper()
		if u[6]>>4 != version || u[8]>>6 != 2 {
			t.Errorf("%s: want version %d of the RFC 9562 variant", u, version)
		}
	}
	seen := map[catalog.UUID]bool{}
	for range 1000 {
		u := catalog.NewUUID()
		f(u, 4)
		seen[u] = true
	}
	if len(seen) != 1000 {
		t.Errorf("%d different uuids of 1000", len(seen))
	}
	f(catalog.DeriveProjectUUID("acme"), 5)
	f(catalog.DeriveUUID(catalog.KindSMTPConfig, catalog.NewUUID()), 5)
}

func TestParseUUID(t *testing.T) {
	const text = "bcbbfc9f-0ac1-5489-b6cf-7209b0d800e1"
	for _, in := range []string{text, strings.ToUpper(text)} {
		u, err := catalog.ParseUUID(in)
		if err != nil || u.String() != text {
			t.Errorf("ParseUUID(%q) = %s, %v", in, u, err)
		}
	}
	for _, bad := range []string{
		"", "new", text[1:], text + "0", " " + text, "{" + text + "}", "urn:uuid:" + text, strings.ReplaceAll(text, "-", ""),
		strings.Replace(text, "-", "_", 1), strings.Replace(text, "b", "g", 1), "bcbbfc9f0-ac1-5489-b6cf-7209b0d800e1",
		"00000000-0000-0000-0000-000000000000", strings.Replace(text, "b", "\x00", 1),
	} {
		if u, err := catalog.ParseUUID(bad); err == nil || u != (catalog.UUID{}) {
			t.Errorf("ParseUUID(%q) = %s, %v; want an error", bad, u, err)
		}
	}
}

func TestUUIDText(t *testing.T) {
	type holder struct{ U catalog.UUID }
	in := holder{catalog.DeriveProjectUUID("acme")}
	b, err := json.Marshal(in)
	if err != nil || string(b) != `{"U":"bcbbfc9f-0ac1-5489-b6cf-7209b0d800e1"}` {
		t.Errorf("Marshal = %s, %v", b, err)
	}
	var out holder
	if err := json.Unmarshal(b, &out); err != nil || out != in {
		t.Errorf("Unmarshal = %v, %v", out, err)
	}
	if err := json.Unmarshal([]byte(`{"U":"acme"}`), &out); err == nil {
		t.Error("Unmarshal took a bad uuid")
	}
	if got := in.U.String(); got != "bcbbfc9f-0ac1-5489-b6cf-7209b0d800e1" {
		t.Errorf("String = %q", got)
	}
}

package main

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fingerpost/cmd/fingerpost/cli"
	"fingerpost/resolver/catalog"
)

// TestImportWebhooks: webhooks come with a variable for each secret, which stderr names, and plan then finds no difference.
// Where the key may not see them, both say so.
func TestImportWebhooks(t *testing.T) {
	f := newForeign(t)
	f.stock()
	tells := true
	f.mangle = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/api/platform/webhooks" {
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		if !tells {
			w.WriteHeader(http.StatusForbidden)
			_, _ = w.Write([]byte(`{"success":false,"error":{"code":"FORBIDDEN","message":"no"}}`))
			return true
		}
		_ = json.NewEncoder(w).Encode(object{"success": true, "message": "webhooks found", "data": []object{
			{"uuid": catalog.DeriveWebhookUUID("crm-eu").String(), "name": "crm-eu", "url": "https://crm.example/x", "events": []string{"domain.*"},
				"projects": []string{"acme"}, "active": false, "secrets": 2},
			{"uuid": catalog.DeriveWebhookUUID("all").String(), "name": "all", "url": "http://10.0.0.1/", "events": nil, "projects": nil, "active": true, "secrets": 1},
		}})
		return true
	}
	dir := t.TempDir()
	c := f.with(t, dir, "import")
	if c.code != cli.ExitOK || !strings.Contains(c.err, `_webhooks.hcl: webhook "crm-eu" secret = env("CRM_EU_WEBHOOK_SECRET")`) {
		t.Fatalf("%+v", c)
	}
	const want = `webhook "crm-eu" {
  url      = "https://crm.example/x"
  secret   = env("CRM_EU_WEBHOOK_SECRET")
  events   = ["domain.*"]
  projects = ["acme"]
  active   = false
}

webhook "all" {
  url    = "http://10.0.0.1/"
  secret = env("ALL_WEBHOOK_SECRET")
}
`
	if got := read(t, dir, "_webhooks.hcl"); got != want {
		t.Errorf("got\n%s", got)
	}
	if c := f.with(t, dir, "plan"); c.code != cli.ExitOK {
		t.Errorf("plan: %+v", c)
	}
	if c := invoke(t, "validate", "--config", dir); c.code != cli.ExitOK || !strings.Contains(c.err+c.out, "--webhook-allow") {
		t.Errorf("validate: %+v", c)
	}
	if c := invoke(t, "validate", "--config", dir, "--webhook-allow", "192.168.0.0/16"); c.code != cli.ExitNot {
		t.Errorf("validate with other networks: %+v", c)
	}
	if c := invoke(t, "validate", "--config", dir, "--webhook-allow", "10.0.0.0/8"); c.code != cli.ExitOK || !strings.Contains(c.err, "0 warnings") {
		t.Errorf("validate with the network: %+v", c)
	}
	if c := invoke(t, "validate", "--config", dir, "--webhook-allow", "10.0.0.1"); c.code != cli.ExitUsage || !strings.Contains(c.err, "did you mean 10.0.0.1/32?") {
		t.Errorf("validate with an address: %+v", c)
	}
	changed := strings.Replace(want, "https://crm.example/x", "https://new.example/x", 1)
	if err := os.WriteFile(filepath.Join(dir, "_webhooks.hcl"), []byte(changed), 0o644); err != nil {
		t.Fatal(err)
	}
	if c := f.with(t, dir, "plan"); c.code != cli.ExitNot || !strings.Contains(c.out, `webhook "crm-eu"`) || !strings.Contains(c.out, "~ url") || strings.Contains(c.out, "crm.example") {
		t.Errorf("plan: %+v", c)
	}
	tells = false
	if c := f.with(t, dir, "plan"); c.code != cli.ExitOK || !strings.Contains(c.err, "webhooks: the server has no call for them, or the key lacks") {
		t.Errorf("plan without the permission: %+v", c)
	}
	if c := f.with(t, t.TempDir(), "import"); c.code != cli.ExitOK || !strings.Contains(c.err, "not kept: webhooks") {
		t.Errorf("import without the permission: %+v", c)
	}
}

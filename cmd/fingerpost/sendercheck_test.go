package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"fingerpost/cmd/testrig"
	"fingerpost/cmd/testrig/faultdns"
	"fingerpost/resolver/catalog"
)

// TestSenderCheck follows a project's sender whose records get worse: the API, the command, the audit trail, a condition,
// and all of it after a restart.
func TestSenderCheck(t *testing.T) {
	testrig.Thorough(t) // a result rests for ten seconds; what is told of it is tested in the rooms
	t.Parallel()
	dns := faultdns.New(t)
	zone := func(dmarc string) {
		dns.Zone("shop.example", "@ MX 10 mx\nmx A 9.9.9.9\n@ TXT \"v=spf1 include:_spf.provider.net -all\"\n"+dmarc, "127.0.0.3")
	}
	zone(`_dmarc TXT "v=DMARC1; p=reject"`)
	dns.Zone("provider.net", `_spf TXT "v=spf1 ip4:9.9.8.0/24 -all"`, "127.0.0.4")
	r := idleRig(t, t.TempDir(), map[string]string{"sender.hcl": `project "sender" {
  name = "Sender"
  service_settings { mail_enabled = true }
  smtp_config {
    host        = "smtp.provider.net"
    from_email  = "hello@shop.example"
    spf_include = "_spf.provider.net"
  }
}
`})
	text, keyID := catalog.NewKeyText()
	r.put("key-checks.hcl", fmt.Sprintf("key \"checks\" {\n  id = %q\n  hash = %q\n  allow = [\"read\", \"mail\"]\n}\n", keyID, catalog.HashKeyText(text)))
	r.flags = []string{"--dns-resolver", dns.Resolver(), "--conditions-after", "1s"}
	r.start()
	id := r.projectID("sender")
	check := func() (result catalog.SenderResult) {
		t.Helper()
		got := r.mail(http.MethodPost, "/projects/"+id+"/sender-check", "mail", "")
		var answer struct{ Data catalog.SenderResult }
		if err := json.Unmarshal([]byte(got.body), &answer); got.status != http.StatusOK || err != nil {
			t.Fatalf("%d %s", got.status, got.body)
		}
		return answer.Data
	}
	first := check()
	if first.State != "ok" {
		t.Errorf("%+v", first)
	}
	zone("")
	testrig.Eventually(t, "a check finds no DMARC", func() bool { return check().State == "warning" })
	if c, is := r.conditions()["sender-worse project sender"]; !is || c.Since == nil {
		t.Errorf("the conditions are %+v", r.conditions())
	}
	const metric = "fingerpost_mail_senders_worse"
	if metrics, _ := metricsAt(t, r); metrics[metric].values[metric] != "1" {
		t.Errorf("the metric is %v", metrics[metric].values)
	}
	page := r.get("/api/platform/audit?action=sender.worse")
	if n := strings.Count(page.body, `"action":"sender.worse"`); n != 1 || !strings.Contains(page.body, `"object":"hello@shop.example"`) {
		t.Errorf("the audit trail has %s", page.body)
	}
	command := r.command(t.Context(), "mail", "check", "sender", "--url", r.url)
	command.Env = append(command.Environ(), "FINGERPOST_KEY="+text)
	if said, err := command.Output(); err != nil || !strings.Contains(string(said), `set: _dmarc.shop.example. TXT "v=DMARC1; p=none"`) {
		t.Errorf("the command says %s, %v", said, err)
	}
	r.halt()
	r.start()
	testrig.Eventually(t, "it is known after a restart", func() bool {
		_, is := r.conditions()["sender-worse project sender"]
		return is
	})
	zone(`_dmarc TXT "v=DMARC1; p=reject"`)
	testrig.Eventually(t, "it is well again", func() bool {
		_, is := r.conditions()["sender-worse project sender"]
		return check().State == "ok" && !is
	})
}

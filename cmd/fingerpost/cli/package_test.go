package cli

import (
	"maps"
	"strings"
	"testing"
)

// TestPackageVariables: a command knows what the package's service does, from its variables and its unit.
func TestPackageVariables(t *testing.T) {
	got, err := packageVariables(strings.NewReader("# Console\n#FINGERPOST_CONSOLE=true\n\nFINGERPOST_OPS_LISTEN=127.0.0.1:9191\n"+
		" FINGERPOST_MAIL_EHLO=\"mail.acme.example\"\nFINGERPOST_GIT_DOMAIN='acme.example'\nPATH=/x\n"), "/etc/fingerpost")
	want := map[string]string{
		"FINGERPOST_CONFIG": "/etc/fingerpost/projects.d", "FINGERPOST_DATA": "/var/lib/fingerpost", "FINGERPOST_PUBLIC_URL": "",
		"FINGERPOST_OPS_LISTEN": "127.0.0.1:9191", "FINGERPOST_OPS_URL": "http://127.0.0.1:9191",
		"FINGERPOST_MAIL_EHLO": "mail.acme.example", "FINGERPOST_GIT_DOMAIN": "acme.example",
	}
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
}

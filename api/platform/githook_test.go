package platform

import "testing"

// The signatures were made by openssl: printf '{"ref":"main"}' | openssl dgst -sha256 -hmac geheim
func TestGitHookSignature(t *testing.T) {
	const body, secret, mac = `{"ref":"main"}`, "geheim", "57c31e1033237bd39867328f4faa1e414938be0ad19220bcd50271cd7a2eaa28"
	for what, c := range map[string]struct {
		name, value string
		want        bool
	}{
		"github":        {"X-Hub-Signature-256", "sha256=" + mac, true},
		"gitea":         {"X-Gitea-Signature", mac, true},
		"gitlab":        {"X-Gitlab-Token", secret, true},
		"none":          {"", "", false},
		"no algorithm":  {"X-Hub-Signature-256", mac, false},
		"cut":           {"X-Gitea-Signature", mac[:63], false},
		"another token": {"X-Gitlab-Token", "geheim ", false},
		"empty token":   {"X-Gitlab-Token", "", false},
	} {
		header := func(name string) string {
			if name == c.name {
				return c.value
			}
			return ""
		}
		if got := signed(header, []byte(body), secret); got != c.want {
			t.Errorf("%s: %v", what, got)
		}
	}
	if signed(func(string) string { return mac }, []byte(body+" "), secret) {
		t.Error("another body passes")
	}
}

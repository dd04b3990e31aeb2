package hclfile_test

import (
	"os"
	"strings"
	"testing"

	"fingerpost/configsrc/hclfile"
)

// A call that names a secret's place is shown with the comment behind it, in a valid file. What may be a secret is not,
// wherever it stands: hunter2 stands for one below.
func TestMasked(t *testing.T) {
	t.Parallel()
	in := func(line string) string {
		return "project \"acme\" {\n  auth_settings {\n    " + line + "\n  }\n}\n"
	}
	for _, line := range []string{
		`jwt_secret = env("ACME_JWT_SECRET") # not needed to start: only where the secret is asked for`,
		`jwt_secret = env("X")   // from the vault`,
		`jwt_secret = file("secrets/jwt")# rotated each year`,
		`jwt_secret = env("X")`,
		"jwt_secret = env(\"X\") # a file with CRLF\r",
		`jwt_expires_in = "15m" # hours`,
	} {
		if got := string(hclfile.Masked([]byte(in(line)))); got != in(line) {
			t.Errorf("%s\nis shown as\n%s", line, got)
		}
	}
	for _, line := range []string{
		`jwt_secret = "hunter2" # not env("X")`,
		`jwt_secret = "hunter2"`,
		`jwt_secret = env("X") # was "hunter2"`,
		`jwt_secret = env("X") # password: hunter2`,
		`jwt_secret = env("X") # jwt_secret = hunter2`,
		`jwt_secret = env("X") # = hunter2`,
		`jwt_secret = env("X") /* "hunter2" */`,
		`jwt_secret = env("X") /* hunter2 */`,
		`jwt_secret = "${env("X")}hunter2" # x`,
		`jwt_secret = env("X", "hunter2") # x`,
		`jwt_secret = env("${"hunter2"}") # x`,
		`jwt_secret = (env("X")) == "hunter2" # x`,
		`jwt_secret = env("X") == hunter2 # x`,
		`jwt_secret = trimsuffix(env("X"), "hunter2") # x`,
		`jwt_secret = sealed("hunter2") # x`,
		"# jwt_secret = env(\"X\") # hunter2",
		"jwt_secret = <<EOT\nenv(\"X\") # hunter2\nEOT",
		"description = <<EOT\njwt_secret = env(\"X\") # hunter2\nEOT",
		"jwt_secret = env(\"X\") # hunter2\n    broken = = 1",
	} {
		if got := string(hclfile.Masked([]byte(in(line)))); strings.Contains(got, "hunter2") {
			t.Errorf("%s\nis shown as\n%s", line, got)
		}
	}
	key := "fpk_7kq2m9ab_0000000000000000000000" // not a whole one: no checksum
	if got := string(hclfile.Masked([]byte(in(`jwt_secret = env("X") # ` + key)))); strings.Contains(got, key) {
		t.Errorf("what looks like a key is shown: %s", got)
	}
	for _, name := range []string{"acme", "globex", "initech", "defaults", "templates"} {
		src, err := os.ReadFile("../../projects.d/" + name + ".hcl")
		if err != nil {
			t.Fatal(err)
		}
		if got := string(hclfile.Masked(src)); got != string(src) {
			t.Errorf("%s.hcl has nothing secret, and is shown as\n%s", name, got)
		}
	}
}

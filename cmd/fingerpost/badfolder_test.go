package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"fingerpost/cmd/testrig"
)

// TestBadFolder drops all bad files at once: all are named, at once, and the good ones go on.
func TestBadFolder(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	r := newRig(t, nil)
	before, stop := r.footprint(), r.throughout()
	defer stop()
	r.breaks(append(textFiles(), oddFiles()...)...)
	_ = os.Remove(r.path(".fifo"))
	r.unchanged(before)
}

// leftovers are names that are not read as config, whatever the files contain.
var leftovers = []string{".hidden.hcl", "acme.hcl~", "acme.hcl.swp", ".acme.hcl.swp", "#acme.hcl#", "acme.hcl.tmp", "acme.tmp", "4913", "README.md", "acme.hcl.bak", "acme.json", ".git/config.hcl", ".git/hooks/x.hcl", "hcl"}

// TestLeftovers: files that editors and git leave next to the config files are not read.
func TestLeftovers(t *testing.T) {
	t.Parallel()
	testrig.Thorough(t)
	r := newRig(t, nil)
	for _, name := range leftovers {
		r.put(name, "project \"acme\" {\n")
	}
	r.put("other.hcl", strings.Replace(rigFiles["other.hcl"], "Other", "Renamed", 1))
	r.until("the edit among them is seen", resolvePath+"other.example", func(got reply) bool {
		return strings.Contains(got.body, `"name":"Renamed"`)
	})
	r.awaitOK()
	if text, code := r.run("validate"); code != 0 {
		t.Errorf("validate: exit code %d: %s", code, text)
	}
}

// clearSecret must not show, wherever a broken file contains it.
const clearSecret = "hunter2hunter2"

// secretLines are wrong ways to write a secret, which is PLAIN.
var secretLines = []string{
	`jwt_secret = "PLAIN" junk`, `jwt_secret = "PLAIN`, `jwt_secrt = "PLAIN"`, `jwtSecret = "PLAIN"`, `JWT_SECRET = "PLAIN"`, `jwt-secret = "PLAIN"`, `jwt_secret: "PLAIN"`, `"jwt_secret" = "PLAIN"`, `jwt_secret "PLAIN"`, `jwt_secret PLAIN`,
	`jwt_secret = PLAIN`, `jwt_secret = 'PLAIN'`, `jwt_secret = ["PLAIN"]`, `jwt_secret = { v = "PLAIN" }`, `jwt_secret = upper("PLAIN")`, `jwt_secret = sealed("PLAIN")`, `jwt_secret = sealed("x", "PLAIN")`, `jwt_secret = env("PLAIN =")`,
	`jwt_secret = "a${PLAIN}"`, `jwt_secret = "a" + "PLAIN"`, `jwt_secret = true ? "PLAIN" : "x"`, `jwt_secret = "PLAIN" "x"`, `jwt_secret = "PLAIN\q"`, "jwt_secret = \"PLAIN\x00\"", "jwt_secret = \"PLAIN\xff\"", `jwt_secret = trimsuffix("PLAIN", "x")`,
	"jwt_secret = env(\"A\")\n    jwt_secret = \"PLAIN\"", "jwt_secret =\n    \"PLAIN\"", "jwt_secret = <<EOT\nPLAIN\nEOT junk", "jwt_secret = <<EOT\nPLAIN\nEOT\n    foo = 1", "jwt_secret = <<EOT\nPLAIN", "jwt_secret = [\n\"PLAIN\",\njunk(]",
	"jwt_secret = upper(\n\"PLAIN\"\n)", `jwt_secret "PLAIN" {}`, `jwt_secret { value = "PLAIN" }`, "<<<<<<< HEAD\n    jwt_secret = \"PLAIN\"\n=======\n    jwt_secret = \"x\"\n>>>>>>> b", `password = "PLAIN"`, `passwd = "PLAIN"`,
	"}\n  smtp_config {\n    host = \"h\"\n    password = \"PLAIN\" foo = 1",
}

// TestSecretsInBadFiles: a problem shows its line, but never the secret in it; nor do the log and /status.
func TestSecretsInBadFiles(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	r := newRig(t, nil)
	var bad []badFile
	for i, line := range secretLines {
		b := badFile{name: fmt.Sprintf("secret%d.hcl", i), says: "."}
		b.text = fmt.Sprintf("project \"s%d\" {\n  name = \"S\"\n  auth_settings {\n    %s\n  }\n}\n", i, strings.ReplaceAll(line, "PLAIN", clearSecret))
		b.drop(r)
		bad = append(bad, b)
	}
	err := poll(testrig.Patience, func() error {
		_, all, err := r.problems()
		for _, b := range bad {
			if d, _ := b.named(all); d == nil {
				return errors.Join(err, fmt.Errorf("%s is not named: %s", b.name, b.text))
			}
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	shown := map[string]string{"the log": r.logged()}
	for _, command := range []string{"validate", "validate --json", "fmt --check", "keys list", "resolve shop.acme.example"} {
		shown[command], _ = r.run(strings.Fields(command)...)
	}
	status, err := fetch(r.ops + "/status")
	if err != nil {
		t.Error(err)
	}
	shown["/status"] = string(status)
	for where, text := range shown {
		if i := strings.Index(text, "hunter2"); i >= 0 {
			t.Errorf("%s shows a secret: %q", where, text[max(0, i-200):min(len(text), i+50)])
		}
	}
}

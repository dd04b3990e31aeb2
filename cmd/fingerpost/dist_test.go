package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"fingerpost/cmd/fingerpost/cli"
	"fingerpost/cmd/testrig"
)

// envFileHead begins dist/fingerpost.env.
const envFileHead = `# Settings of fingerpost.service: every flag of "fingerpost serve" as a variable with its default. Take the # away to change
# one, and run "systemctl restart fingerpost". Lines are NAME=VALUE as in systemd.exec(5); lists are separated by commas.
`

// inUnit are the flags that fingerpost.service sets itself.
var inUnit = map[string]string{"config": "/etc/fingerpost/projects.d", "data": "/var/lib/fingerpost"}

// TestEnvFile: the file of variables that packages bring has every flag of serve, with its default and its help. With
// FINGERPOST_WRITE set it is written.
func TestEnvFile(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", "/var/lib/fingerpost/.config") // the service's home
	serve, _, err := newRoot(cli.Terminal{In: strings.NewReader(""), Out: os.Stdout, Err: os.Stderr}).Find([]string{"serve"})
	if err != nil {
		t.Fatal(err)
	}
	var want bytes.Buffer
	want.WriteString(envFileHead)
	group := ""
	add := func(f *pflag.Flag) {
		if f.Name == "help" || f.Hidden {
			return
		}
		of := groupFiles
		if a := f.Annotations[flagGroup]; len(a) > 0 {
			of = a[0]
		}
		if of != group {
			return
		}
		value := strings.Trim(f.DefValue, "[]")
		if v, ok := inUnit[f.Name]; ok {
			value = v
		}
		fmt.Fprintf(&want, "\n# %s.\n#%s=%s\n", strings.ToUpper(f.Usage[:1])+f.Usage[1:], cli.EnvName(f.Name), value)
	}
	for _, g := range []string{groupFiles, groupListen, groupConsole, groupMail, groupDomains, groupWebhooks, groupGit, groupCluster, groupLimits, groupLogs} {
		group = g
		fmt.Fprintf(&want, "\n\n## %s\n", group)
		serve.InheritedFlags().VisitAll(add)
		serve.LocalNonPersistentFlags().VisitAll(add)
	}
	const file = "dist/fingerpost.env"
	if os.Getenv("FINGERPOST_WRITE") != "" {
		if err := os.WriteFile(file, want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, want.Bytes()) {
		t.Errorf("%s is not what serve's flags are (%v): FINGERPOST_WRITE=1 go test -run TestEnvFile ./cmd/fingerpost writes it",
			file, err)
	}
}

// TestDistCaddyfile: dist/Caddyfile has the gateway lines that the documents explain and other tests run, and compose.yaml
// uses it with addresses of its own.
func TestDistCaddyfile(t *testing.T) {
	t.Parallel()
	_, part, _ := strings.Cut(readText(t, "../../api/gateway/README.md"), "\n## Caddy\n")
	_, lines, _ := strings.Cut(part, "```caddyfile\n")
	lines, _, found := strings.Cut(lines, "```")
	if !found {
		t.Fatal("api/gateway/README.md has no lines for Caddy")
	}
	file := readText(t, "dist/Caddyfile")
	for strings.HasPrefix(file, "#") {
		_, file, _ = strings.Cut(file, "\n")
	}
	if got := strings.NewReplacer("{$GATE:127.0.0.1:8081}", "127.0.0.1:8081", "{$APP:127.0.0.1:3000}", "127.0.0.1:3000").Replace(file); got != lines {
		t.Errorf("dist/Caddyfile has\n%s, want\n%s", got, lines)
	}
	compose := readText(t, "dist/compose.yaml")
	for _, want := range []string{"{GATE: \"fingerpost:8081\", APP: \"app:3000\"}", "- ./Caddyfile:/etc/caddy/Caddyfile:ro\n",
		"[./app.go:/app.go:ro]"} {
		if !strings.Contains(compose, want) {
			t.Errorf("dist/compose.yaml does not have %s", want)
		}
	}
}

// TestPostinstAdvice: after an installation the package says what "fingerpost doctor" warns of, and never fails.
func TestPostinstAdvice(t *testing.T) {
	testrig.Slow(t)
	t.Parallel()
	script, err := os.ReadFile("dist/package/postinst")
	must(t, err)
	_, advise, _ := strings.Cut(string(script), "\nadvise() {\n")
	advise, _, found := strings.Cut(advise, "\n}\n")
	if !found {
		t.Fatal("postinst has no function advise")
	}
	r := idleRig(t, t.TempDir(), nil)
	bin := t.TempDir() // the service's user is this one
	must(t, os.WriteFile(filepath.Join(bin, "runuser"), []byte("#!/bin/sh\nshift 3\nexec \"$@\"\n"), 0o755))
	says := func(lines ...string) string {
		t.Helper()
		lines = append(lines, "# FINGERPOST_QUATSCH=1", "FINGERPOST_CONFIG=\""+r.path(".")+"\"",
			"FINGERPOST_DATA="+filepath.Join(r.dir, "data"), "FINGERPOST_LISTEN=127.0.0.1:0", "FINGERPOST_OPS_LISTEN=127.0.0.1:0")
		r.put("../env", strings.Join(lines, "\n")+"\n")
		cmd := exec.CommandContext(t.Context(), "sh", "-euc", "advise() {\n"+advise+"\n}\nadvise env")
		cmd.Dir, cmd.Env = r.dir, []string{"PATH=" + bin + ":" + os.Getenv("PATH")}
		out, err := cmd.CombinedOutput()
		must(t, err)
		return string(out)
	}
	r.put("sealed.hcl", "project \"sealed\" {\n  name = \"S\"\n  auth_settings { jwt_secret = sealed(\"YWdl\") }\n}\n")
	if got := says(); got != "" {
		t.Errorf("a healthy installation, but for the seal key: %s", got)
	}
	got := says("FINGERPOST_MAIL_LISTEN=" + silent(t))
	if !strings.HasPrefix(got, "fingerpost doctor:\nfailure  listeners ") || !strings.Contains(got, "→ ") ||
		strings.Contains(got, "ok ") {
		t.Errorf("a port is taken: %q", got)
	}
	got = says("FINGERPOST_MAIL_QUEUE=many", "FINGERPOST_NOSUCH=1")
	if !strings.Contains(got, "fingerpost: FINGERPOST_MAIL_QUEUE: ") || !strings.Contains(got, "warning: FINGERPOST_NOSUCH is no variable") {
		t.Errorf("wrong variables: %q", got)
	}
}

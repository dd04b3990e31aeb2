package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/spf13/pflag"
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
	serve, _, err := newRoot(terminal{in: strings.NewReader(""), out: os.Stdout, err: os.Stderr}).Find([]string{"serve"})
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
		fmt.Fprintf(&want, "\n# %s.\n#%s=%s\n", strings.ToUpper(f.Usage[:1])+f.Usage[1:], envName(f.Name), value)
	}
	for _, g := range []string{groupFiles, groupListen, groupConsole, groupMail, groupGit, groupCluster, groupLimits, groupLogs} {
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

// TestComposeCaddy: compose.yaml has the gateway lines that the documents explain and other tests run.
func TestComposeCaddy(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("../../api/gateway/README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, part, _ := strings.Cut(string(readme), "\n## Caddy\n")
	_, lines, _ := strings.Cut(part, "```caddyfile\n")
	lines, _, found := strings.Cut(lines, "```")
	if !found {
		t.Fatal("api/gateway/README.md has no lines for Caddy")
	}
	lines = strings.NewReplacer("127.0.0.1:8081", "fingerpost:8081", "127.0.0.1:3000", "app:3000", "$", "$$").Replace(lines)
	compose, err := os.ReadFile("dist/compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if indented := "    content: |\n      " + strings.ReplaceAll(strings.TrimSuffix(lines, "\n"), "\n", "\n      ") + "\n"; !strings.Contains(string(compose), indented) {
		t.Errorf("dist/compose.yaml does not have, as its Caddyfile:\n%s", indented)
	}
}

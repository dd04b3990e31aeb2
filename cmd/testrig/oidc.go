package testrig

import (
	"bufio"
	"encoding/json"
	"os/exec"
	"strings"
	"testing"
)

// A Provider is a provider of OpenID Connect that others have written, see .ci/oidc for its clients and its user.
type Provider struct {
	Issuer string
	CA     string // its certificate in PEM, with -tls
}

// StartProvider starts a provider whose clients have these redirect URIs. It skips a test as Need does.
func StartProvider(t testing.TB, redirects []string, args ...string) (p Provider) {
	t.Helper()
	program := Need(t, "oidc-provider")[0]
	cmd := exec.Command(program, append(args, "-redirects", strings.Join(redirects, ","))...)
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = in.Close(); _ = cmd.Wait() })
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err != nil || json.Unmarshal(line, &p) != nil {
		t.Fatalf("%v: the provider has printed %q", err, line)
	}
	return p
}

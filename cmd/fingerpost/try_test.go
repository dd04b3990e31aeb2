package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"fingerpost/cmd/fingerpost/cli"
	"fingerpost/cmd/testrig"
)

// TestTryLine: the first line to try asks for a domain of the file that README.md edits.
func TestTryLine(t *testing.T) {
	testrig.Slow(t)
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	edit := regexp.MustCompile("Now change a value in `projects.d/([a-z.]+)`").FindSubmatch(readme)
	if edit == nil {
		t.Fatal("README.md no longer says which file to edit")
	}
	file, err := os.ReadFile(filepath.Join("../../projects.d", string(edit[1])))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(context.Background(), testrig.Patience)
	defer stop()
	out := &announced{stop: stop}
	code := runContext(ctx, []string{"serve", "--config", "../../projects.d", "--data", filepath.Join(t.TempDir(), "store"), "--read-only",
		"--listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0", "--shutdown-grace", time.Second.String()},
		cli.Terminal{In: strings.NewReader(""), Out: out, Err: &bytes.Buffer{}})
	if code != cli.ExitOK {
		t.Fatalf("exit code %d", code)
	}
	domain := regexp.MustCompile(`(?m)^try: .*domain=([^']+)'$`).FindSubmatch(out.Bytes())
	if domain == nil {
		t.Fatalf("no line to try:\n%s", out)
	}
	if !bytes.Contains(file, []byte(`domain "`+string(domain[1])+`"`)) {
		t.Errorf("the line to try asks for %s, which %s does not declare", domain[1], edit[1])
	}
}

// An announced ends the service once it has printed its addresses.
type announced struct {
	bytes.Buffer
	stop func()
}

func (a *announced) Write(p []byte) (int, error) {
	defer a.stop()
	return a.Buffer.Write(p)
}

package tenant_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"fingerpost/cmd/testrig"
)

// TestProgram builds the program of the package comment as it stands there, starts it and asks it.
func TestProgram(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	f := newFake(t)
	address := fmt.Sprintf("127.0.0.1:%d", testrig.FreePort(t))
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	var program strings.Builder
	for line := range strings.Lines(string(doc)) {
		if code, is := strings.CutPrefix(line, "//\t"); is {
			fmt.Fprint(&program, code)
		} else if program.Len() > 0 && line == "//\n" {
			fmt.Fprintln(&program)
		}
	}
	text := strings.NewReplacer("http://127.0.0.1:8080", f.url, ":8000", address).Replace(program.String())
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("go", "build", "-o", filepath.Join(dir, "program"), filepath.Join(dir, "main.go")).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s\n%s", err, out, text)
	}
	cmd := exec.Command(filepath.Join(dir, "program"))
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "FINGERPOST_KEY="+fakeKey)
	cmd.Stderr = &testrig.Log{}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	ask := func(host string) string {
		req, err := http.NewRequest("GET", "http://"+address+"/", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host, req.Close = host, true
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			return err.Error()
		}
		defer res.Body.Close()
		body, _ := io.ReadAll(res.Body)
		return fmt.Sprint(res.StatusCode, " ", strings.TrimSpace(string(body)))
	}
	testrig.Eventually(t, "the program's answer", func() bool { return ask("shop.example") == "200 Welcome to Shop, plan gold" })
	if got := ask("nobody.example"); got != "404 unknown host" {
		t.Error(got)
	}
	testrig.Eventually(t, "the program's file", func() bool { _, err := os.Stat(filepath.Join(dir, "tenants.cache")); return err == nil })
	f.away()
	if got := ask("shop.example"); got != "200 Welcome to Shop, plan gold" {
		t.Error(got)
	}
}

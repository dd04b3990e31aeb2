package api_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"fingerpost/api"
	"fingerpost/api/console"
	"fingerpost/cmd/testrig"
)

// BenchmarkConsolePages asks for pages of projects of which 400 share a file, nearly as large as a file may be, and for the
// same pages where each has a file of its own. The full size has 100,000 projects.
func BenchmarkConsolePages(b *testing.B) {
	block, err := os.ReadFile("../bench/project.hcl.tmpl")
	if err != nil {
		b.Fatal(err)
	}
	for _, of := range []struct {
		name           string
		files, perFile int
	}{
		{"own files", 1200, 1},
		{"shared files", testrig.Size(b, 250, 3), 400},
	} {
		files := map[string]string{}
		for i := range of.files {
			var text strings.Builder
			for j := range of.perFile {
				slug := fmt.Sprintf("p%06d", i*of.perFile+j)
				domain := "  domain \"shop." + slug + ".example\" {}\n"
				text.WriteString(strings.NewReplacer("SLUG", slug, "TITLE", "Shop "+slug, "DESCRIPTION", "A shop", "SMS", "false",
					"DOMAINS", domain).Replace(string(block)))
			}
			files[fmt.Sprintf("d%03d/f%04d.hcl", i%100, i)] = text.String()
		}
		b.Run(of.name, func(b *testing.B) { consolePages(b, files, of.files*of.perFile) })
	}
}

func consolePages(b *testing.B, files map[string]string, projects int) {
	d := &desk{dir: b.TempDir(), console: &console.Options{}}
	d.open(b, files)
	if st := d.source.Status(); st.Errors > 0 {
		b.Fatal(st.Problems[0])
	}
	base := "http://" + d.listen(api.Console)
	jar, err := cookiejar.New(nil)
	if err != nil {
		b.Fatal(err)
	}
	client := &http.Client{Jar: jar}
	ask := func(path, want string) {
		b.Helper()
		res, err := client.Get(base + path)
		if err != nil {
			b.Fatal(err)
		}
		defer res.Body.Close()
		page, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode != http.StatusOK || !strings.Contains(string(page), want) {
			b.Fatalf("%s: %d, %v: %.300s", path, res.StatusCode, err, page)
		}
	}
	res, err := client.PostForm(base+"/console/sign-in", url.Values{"key": {d.key}})
	if err != nil {
		b.Fatal(err)
	}
	res.Body.Close()
	slug := fmt.Sprintf("p%06d", projects/2)
	for _, page := range []struct{ name, path, want string }{
		{"list", "/console/projects", "Shop p0"},
		{"search", "/console/projects?q=" + slug, slug},
		{"project", "/console/projects/" + slug, "body_text"},
		{"lookup", "/console/lookup?domain=shop." + slug + ".example", ".hcl:"},
	} {
		b.Run(page.name, func(b *testing.B) {
			ask(page.path, page.want) // the first visit parses the pages and builds the index
			began := cpu(b)
			for b.Loop() {
				ask(page.path, page.want)
			}
			b.ReportMetric(float64(cpu(b)-began)/float64(time.Millisecond)/float64(b.N), "cpu-ms/op")
		})
	}
}

// cpu is the time that this process has used of the processors. A machine with other work does not change it much.
func cpu(b *testing.B) time.Duration {
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

package configsrc_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

// BenchmarkLargeBody measures writes to a project with a body of 480 KB that came over the API: of the body, and of
// the project's name.
func BenchmarkLargeBody(b *testing.B) {
	for _, what := range []string{"body", "name"} {
		b.Run(what, func(b *testing.B) {
			dir := b.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "a.hcl"), []byte("project \"acme\" {\n  name = \"Acme\"\n}\n"), 0o644); err != nil {
				b.Fatal(err)
			}
			source := benchSource(b, dir, resolver.Options{})
			update := func(change func(p *catalog.ProjectConfig)) {
				err := updateProject(context.Background(), source, catalog.DeriveProjectUUID("acme"),
					func(p *catalog.ProjectConfig) error { change(p); return nil })
				if err != nil {
					b.Fatal(err)
				}
			}
			text := strings.Repeat("<p>Dear {{userName}}, your order is on its way.</p>\n", 480_000/52)
			update(func(p *catalog.ProjectConfig) {
				t := catalog.Template{Code: "T", ProjectID: p.Project.ID, UUID: catalog.DeriveTemplateUUID(p.Project.UUID, "T"),
					Active: true, Name: "n", SubjectTemplate: "s", BodyHTML: text}
				t.ID = catalog.DeriveID(catalog.KindTemplate, t.UUID)
				p.Templates = append(p.Templates, t)
			})
			before, n := cpuTime(), 0
			for b.Loop() {
				n++
				update(func(p *catalog.ProjectConfig) {
					if what == "body" {
						p.Templates[0].BodyHTML = fmt.Sprint(text, n)
					} else {
						p.Project.Name = fmt.Sprint("Acme ", n)
					}
				})
			}
			b.ReportMetric(float64(cpuTime()-before)/float64(n)/1e6, "cpu-ms/op")
		})
	}
}

package configsrc_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"fingerpost/configsrc"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

// BenchmarkWriters measures one write by one of several clients, with the store on disk: changes of a project, and
// removals.
func BenchmarkWriters(b *testing.B) {
	for _, clients := range []int{1, 64} {
		slug := func(i int) string { return fmt.Sprintf("p%06d", i) }
		of := func(b *testing.B, projects int) *configsrc.Source {
			dir := b.TempDir()
			for i := range projects {
				text := fmt.Sprintf("project %q {\n  name = \"P\"\n  domain \"%s.example\" {}\n}\n", slug(i), slug(i))
				if err := os.WriteFile(filepath.Join(dir, slug(i)+".hcl"), []byte(text), 0o644); err != nil {
					b.Fatal(err)
				}
			}
			return benchSource(b, dir, resolver.Options{DataDir: filepath.Join(b.TempDir(), "store")})
		}
		each := func(b *testing.B, f func(n int) error) {
			var all sync.WaitGroup
			b.ResetTimer()
			for c := range clients {
				all.Go(func() {
					for n := c; n < b.N; n += clients {
						if err := f(n); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			all.Wait()
			b.StopTimer()
		}
		b.Run(fmt.Sprintf("change/clients=%d", clients), func(b *testing.B) {
			source := of(b, clients)
			each(b, func(n int) error {
				return updateProject(context.Background(), source, catalog.DeriveProjectUUID(slug(n%clients)), func(p *catalog.ProjectConfig) error {
					p.Project.Name = fmt.Sprint("P ", n)
					return nil
				})
			})
		})
		b.Run(fmt.Sprintf("remove/clients=%d", clients), func(b *testing.B) {
			source := of(b, b.N)
			each(b, func(n int) error {
				return deleteProject(context.Background(), source, catalog.DeriveProjectUUID(slug(n)), func(*catalog.ProjectConfig) error { return nil })
			})
		})
	}
}

package configsrc_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"fingerpost/configsrc"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

// BenchmarkUpdate measures one write from the call to the commit in file and store. It also reports the CPU time,
// because most of the time is the disk's.
func BenchmarkUpdate(b *testing.B) {
	project := func(slug string, domains int) string {
		var text strings.Builder
		fmt.Fprintf(&text, "project %q {\n  name   = \"Shop\"\n  status = \"ACTIVE\"\n\n", slug)
		for i := range domains {
			fmt.Fprintf(&text, "  domain \"d%d.%s.example\" { primary = %v } # since 2024\n", i, slug, i == 0)
		}
		text.WriteString("\n  auth_settings {\n    registration_mode = \"OPEN\"\n    jwt_expires_in    = \"15m\"\n  }\n}\n\n")
		return text.String()
	}
	var many strings.Builder
	for i := range 1000 {
		many.WriteString(project(fmt.Sprintf("p%d", i), 2))
	}
	for _, file := range []struct{ name, slug, text string }{
		{"domains=3", "acme", project("acme", 3)},
		{"domains=64", "acme", project("acme", 64)},
		{"projects=1000", "p500", many.String()},
	} {
		b.Run(file.name, func(b *testing.B) {
			dir := b.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "a.hcl"), []byte(file.text), 0o644); err != nil {
				b.Fatal(err)
			}
			source := benchSource(b, dir, resolver.Options{})
			before, n := cpuTime(), 0
			b.ReportAllocs()
			for b.Loop() {
				n++
				err := updateProject(context.Background(), source, catalog.DeriveProjectUUID(file.slug), func(p *catalog.ProjectConfig) error {
					p.Project.Name = fmt.Sprint("Shop ", n)
					return nil
				})
				if err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(cpuTime()-before)/float64(n)/1e3, "cpu-µs/op")
		})
	}
}

func benchSource(b *testing.B, dir string, o resolver.Options) *configsrc.Source {
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	o.CacheBytes, o.Logger = 1<<20, log
	r, err := resolver.Open(o)
	if err != nil {
		b.Fatal(err)
	}
	s := configsrc.New(configsrc.Options{Dir: dir, Sink: r, Logger: log, MaxDelete: 0.3})
	ctx, cancel := context.WithCancel(context.Background())
	if err := s.Load(ctx); err != nil {
		b.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.Run(ctx)
	}()
	b.Cleanup(func() {
		cancel()
		<-done
		r.Close()
	})
	return s
}

// cpuTime returns the CPU time of the process so far.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

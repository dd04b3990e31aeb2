package resolver_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"fingerpost/cmd/testrig"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

const benchProjects = 100_000

// benchFile declares one project with three domains and the blocks of a typical one.
func benchFile(i int) catalog.FileChange {
	slug := fmt.Sprintf("project-%d", i)
	p := block(slug, slug+".example", "www."+slug+".example", "*."+slug+".example")
	text := "The shop of customer " + slug
	p.Project.Description = &text
	p.SMTP = &catalog.SMTPConfig{ID: 1, Host: "smtp." + slug + ".example", FromEmail: "hello@" + slug + ".example", Username: slug}
	f := file(slug+".hcl", p)
	f.Bytes = []byte(strings.Repeat("# a line of a config file of "+slug+"\n", 60))
	return f
}

// big opens a resolver over 100,000 projects and 300,000 domains on the disk.
func big(b *testing.B, o resolver.Options) *resolver.Resolver {
	b.Helper()
	o.DataDir = filepath.Join(b.TempDir(), "data")
	r := open(b, o)
	const part = 1000
	for start := 0; start < benchProjects; start += part {
		c := new(catalog.Change)
		for i := range part {
			c.Files = append(c.Files, benchFile(start+i))
		}
		if err := r.Fill(c); err != nil {
			b.Fatal(err)
		}
	}
	if _, err := r.Apply(new(catalog.Change)); err != nil {
		b.Fatal(err)
	}
	return r
}

func BenchmarkHit(b *testing.B) {
	r := open(b, resolver.Options{CacheBytes: resolver.DefaultCacheBytes})
	var names [][]byte
	for i := range 10_000 {
		apply(b, r, benchFile(i))
		names = append(names, fmt.Appendf(nil, "www.project-%d.example", i))
		resolve(b, r, string(names[i]), resolver.Nested)
	}
	r.Settle()
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		if _, err := r.Resolve(names[n*7919%len(names)], resolver.Nested); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkMiss reads the store for each answer, for an exact name and for one that a wildcard matches: the cache is
// too small to keep anything.
func BenchmarkMiss(b *testing.B) {
	r := open(b, resolver.Options{CacheBytes: 2000})
	const projects = 1000
	for i := range projects {
		apply(b, r, benchFile(i))
	}
	for _, kind := range []struct{ name, label string }{{"exact", "www."}, {"wildcard", "any."}} {
		b.Run(kind.name, func(b *testing.B) {
			var names [][]byte
			for i := range projects {
				names = append(names, fmt.Appendf(nil, "%sproject-%d.example", kind.label, i))
			}
			b.ReportAllocs()
			for n := 0; b.Loop(); n++ {
				if _, err := r.Resolve(names[n*7919%len(names)], resolver.Nested); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkHitUnknown(b *testing.B) {
	r := open(b, resolver.Options{})
	name := []byte("nobody.example")
	resolve(b, r, string(name), resolver.Nested)
	r.Settle()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.Resolve(name, resolver.Nested); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkNotModified measures the work of a 304: comparing the answer's tag.
func BenchmarkNotModified(b *testing.B) {
	r := open(b, resolver.Options{})
	apply(b, r, benchFile(1))
	name := []byte("project-1.example")
	tag := resolve(b, r, string(name), resolver.Nested).ETag
	r.Settle()
	b.ReportAllocs()
	for b.Loop() {
		if a, err := r.Resolve(name, resolver.Nested); err != nil || a.ETag != tag {
			b.Fatal(err)
		}
	}
}

// BenchmarkBig measures misses, and changes of one file, among 100,000 projects in a store on disk. The cache is too
// small to keep anything.
func BenchmarkBig(b *testing.B) {
	r := big(b, resolver.Options{CacheBytes: 2000})
	random := rand.New(rand.NewPCG(1, 2))
	for range benchProjects {
		resolve(b, r, fmt.Sprintf("project-%d.example", random.IntN(benchProjects)), resolver.Nested)
	}
	untilIdle(b)
	// ask requests names of one kind, and fails if the cache answers them.
	ask := func(format string) func(*testing.B) {
		return func(b *testing.B) {
			b.ReportAllocs()
			before, cpu := r.Metrics(), cpuTime(b)
			for n := uint64(0); b.Loop(); n++ {
				if _, err := r.Resolve(fmt.Appendf(nil, format, random.IntN(benchProjects), n), resolver.Nested); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(cpuTime(b)-cpu)/float64(b.N), "cpu-ns/op")
			if m := r.Metrics(); m.Misses == before.Misses {
				b.Error("these are hits")
			}
		}
	}
	b.Run("miss/exact", ask("project-%[1]d.example"))
	b.Run("miss/wildcard", ask("shop.project-%[1]d.example"))
	b.Run("miss/unknown", ask("n%[1]d.nobody%[2]d.test"))
	b.Run("apply/one-file", func(b *testing.B) {
		b.ReportAllocs()
		for n := 0; b.Loop(); n++ {
			f := benchFile(random.IntN(benchProjects))
			f.Declared.Projects[0].Project.Name = fmt.Sprint("Name ", n)
			apply(b, r, f)
		}
	})
	b.Run("page/by-id", func(b *testing.B) {
		for b.Loop() {
			if rows, _, err := r.Projects(resolver.Query{Page: 500, Limit: 100}); err != nil || len(rows) != 100 {
				b.Fatal(len(rows), err)
			}
		}
	})
	b.Run("each-project", func(b *testing.B) {
		for b.Loop() {
			if err := r.EachProject(func(*catalog.Project) bool { return true }); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkBulk changes 100,000 files at once, then moves the store to memory and back.
func BenchmarkBulk(b *testing.B) {
	for b.Loop() {
		r := big(b, resolver.Options{CacheBytes: resolver.DefaultCacheBytes})
		dir := r.DataDir()
		untilIdle(b)
		b.ReportMetric(rss(b), "rss-before-MiB")
		c := &catalog.Change{Files: make([]catalog.FileChange, benchProjects)}
		for i := range c.Files {
			c.Files[i] = benchFile(i)
			c.Files[i].Declared.Projects[0].Project.Name = "Renamed"
		}
		b.ReportMetric(rss(b), "rss-change-MiB")
		start := time.Now()
		if _, err := r.Apply(c); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(time.Since(start).Seconds(), "apply-s")
		b.ReportMetric(rss(b), "rss-after-MiB")
		c = nil
		untilIdle(b)                                                                                    // by now Pebble has opened all tables
		testrig.Eventually(b, "the directory is gone", func() bool { return os.RemoveAll(dir) == nil }) // a compaction may still add files
		start = time.Now()
		testrig.Eventually(b, "the loss is noticed", func() bool { _, bad := r.Degraded(); return bad })
		b.ReportMetric(time.Since(start).Seconds(), "take-over-s")
		testrig.Eventually(b, "the store is back", func() bool { _, bad := r.Degraded(); return !bad })
		b.ReportMetric(time.Since(start).Seconds(), "back-s")
		b.ReportMetric(rss(b), "rss-back-MiB")
	}
}

// BenchmarkMemory fills a store and the cache at their default sizes and reports the memory of the process.
func BenchmarkMemory(b *testing.B) {
	for b.Loop() {
		r := big(b, resolver.Options{CacheBytes: resolver.DefaultCacheBytes})
		for i := range 3 * benchProjects {
			name := fmt.Sprintf([]string{"project-%d.example", "www.project-%d.example", "x.project-%d.example"}[i%3], i/3)
			resolve(b, r, name, resolver.Nested)
		}
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		b.ReportMetric(float64(m.HeapAlloc)/(1<<20), "heap-MiB")
		b.ReportMetric(rss(b), "rss-MiB")
		b.ReportMetric(float64(r.Metrics().CacheBytes)/(1<<20), "cache-MiB")
	}
}

// cpuTime returns the CPU time of the whole process, which other load on the machine barely changes.
func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// untilIdle waits for the compactions of the load.
func untilIdle(b *testing.B) {
	const window = 200 * time.Millisecond
	for before := cpuTime(b); ; {
		time.Sleep(window)
		now := cpuTime(b)
		if now-before < window/20 {
			return
		}
		before = now
	}
}

func rss(b *testing.B) float64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		b.Skip(err)
	}
	_, rest, _ := strings.Cut(string(status), "VmRSS:")
	var kib float64
	if _, err := fmt.Sscan(rest, &kib); err != nil {
		b.Fatal(err)
	}
	return kib / 1024
}

package main

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fingerpost/cmd/testrig"
	"fingerpost/resolver/catalog"
	"fingerpost/resolver/hostname"
)

func TestCorpus(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "corpus")
	p := corpusParams{Projects: 1200, Domains: 3600}
	c, err := openCorpus(dir, p)
	if err != nil {
		t.Fatal(err)
	}
	files := 0
	err = filepath.WalkDir(c.config, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && filepath.Base(path) != keysFile {
			files++
		}
		return err
	})
	if err != nil || files != p.Projects {
		t.Errorf("%d files, %v", files, err)
	}
	for _, i := range []int{0, 999, 1000, 1199} {
		if b, err := os.ReadFile(c.path(i)); err != nil || !bytes.Equal(b, c.file(i, 0)) {
			t.Errorf("file %d: %v", i, err)
		}
	}
	id, ok := catalog.KeyTextID([]byte(c.key))
	keys, err := os.ReadFile(filepath.Join(c.config, keysFile))
	if !ok || err != nil || !strings.Contains(string(keys), `"`+string(id)+`"`) || !strings.Contains(string(keys), catalog.HashKeyText(c.key)) {
		t.Errorf("key %q, file %s, %v", id, keys, err)
	}
	if bytes.Contains(keys, []byte(c.key)) {
		t.Error("the key itself stands in the file")
	}

	again, err := openCorpus(dir, p)
	if err != nil || again.key != c.key || !slices.Equal(again.slugs, c.slugs) {
		t.Errorf("not reused: %v", err)
	}
	if err := errors.Join(c.edited(), c.edited()); err != nil {
		t.Fatal(err)
	}
	if again, err = openCorpus(dir, p); err != nil || again.key == c.key {
		t.Errorf("reused although it was edited: %v", err)
	}
	p.Domains *= 2
	if other, err := openCorpus(dir, p); err != nil || other.key == again.key {
		t.Errorf("reused for other domains: %v", err)
	}
}

func TestProjectFile(t *testing.T) {
	text := string(projectFile("brisk-otter-012345", 3, 17))
	if len(text) < 2400 || len(text) > 3000 {
		t.Errorf("%d bytes, want about 2,700", len(text))
	}
	for _, want := range []string{
		`project "brisk-otter-012345" {`, `domain "brisk-otter-012345.example" { primary = true }`, `domain "*.brisk-otter-012345.example" {}`,
		"revision 000017", "sms_enabled          = true", `env("BENCH_SMTP_PASSWORD")`, `env("BENCH_JWT_SECRET")`, `template "WELCOME"`, `template "PASSWORD_RESET"`,
	} {
		if strings.Count(text, want) != 1 {
			t.Errorf("%q stands %d times in it", want, strings.Count(text, want))
		}
	}
	if strings.Contains(text, "%!") || strings.Count(text, "{") != strings.Count(text, "}") {
		t.Errorf("badly formed:\n%s", text)
	}
	even := string(projectFile("brisk-otter-012345", 3, 18))
	if !strings.Contains(even, "sms_enabled          = false") {
		t.Error("the revision's lowest bit does not show in sms_enabled")
	}
}

// The names that are asked and declared belong together, and lead back to their project.
func TestNames(t *testing.T) {
	p := corpusParams{Projects: 3, Domains: 60}
	c := newCorpus("", p)
	seen := map[string]bool{}
	for n := range p.Domains {
		host := string(c.appendHost(nil, n))
		if seen[host] {
			t.Errorf("%s is asked twice", host)
		}
		seen[host] = true
		if got := projectNumber([]byte(host)); got != n/20 {
			t.Errorf("projectNumber(%s) = %d, want %d", host, got, n/20)
		}
		if canonical, err := hostname.Parse(host); err != nil || canonical != host {
			t.Errorf("%s is not canonical: %q, %v", host, canonical, err)
		}
		record := declaredLabel(n%20) + c.slugs[n/20] + hostSuffix
		if canonical, err := hostname.ParseDomain(record); err != nil || canonical != record {
			t.Errorf("%s is not canonical: %q, %v", record, canonical, err)
		}
		if n%20 != 2 && record != host {
			t.Errorf("%s is asked, %s declared", host, record)
		}
	}
	for _, slug := range c.slugs {
		if msg := catalog.CheckSlug(slug); msg != "" {
			t.Errorf("slug %q %s", slug, msg)
		}
	}
	for _, bad := range []string{"", ".example", "acme.example", "a12345.example", "brisk-otter-01234x.example", "12"} {
		if got := projectNumber([]byte(bad)); got != -1 {
			t.Errorf("projectNumber(%q) = %d", bad, got)
		}
	}
}

func TestSchedules(t *testing.T) {
	const n = 10_000
	count := func(schedule []uint32) []int {
		counts := make([]int, n)
		for _, name := range schedule {
			counts[name]++
		}
		return counts
	}
	all := names(n, n)
	z := zipfSchedule(all)
	counts := count(z)
	if len(z) != scheduleLen || !slices.Equal(z, zipfSchedule(names(n, n))) {
		t.Error("two schedules differ")
	}
	slices.SortFunc(counts, func(a, b int) int { return b - a })
	// With exponent s, rank 2 comes 2^-s times as often as rank 1.
	if ratio := float64(counts[0]) / float64(counts[1]); ratio < 1.9 || ratio > 2.15 {
		t.Errorf("the first name comes %.2f times as often as the second, want 2^1.01 = 2.0", ratio)
	}
	for name, c := range count(all) {
		if c != 1 {
			t.Fatalf("name %d comes %d times among all names", name, c)
		}
	}
	asked := map[uint32]bool{}
	for _, name := range names(n, 100) {
		asked[name] = true
		if name%100 != 0 {
			t.Fatalf("name %d of every hundredth", name)
		}
	}
	if len(asked) != 100 {
		t.Errorf("%d names asked, want 100", len(asked))
	}
}

// TestIDs: no two domains of a corpus have the same id. At full size it is one of five million domains.
func TestIDs(t *testing.T) {
	const domains = 10
	ids := map[int64]string{}
	for _, slug := range makeSlugs(testrig.Size(t, 500_000, 5000)) {
		u := catalog.DeriveProjectUUID(slug)
		for k := range domains {
			name := declaredLabel(k) + slug + hostSuffix
			id := catalog.DeriveID(catalog.KindDomain, catalog.DeriveDomainUUID(u, name))
			if other, found := ids[id]; found {
				t.Fatalf("%s and %s have the same id", name, other)
			}
			ids[id] = name
		}
	}
}

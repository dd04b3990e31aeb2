package configsrc_test

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"fingerpost/cmd/testrig"
	"fingerpost/configsrc"
	"fingerpost/resolver/catalog"
)

// An eagerSink calls asked between the moment in which a project is served and the end of Apply.
type eagerSink struct {
	configsrc.Sink
	asked func(project catalog.UUID)
}

func (s *eagerSink) Apply(c *catalog.Change) (uint64, error) {
	generation, err := s.Sink.Apply(c)
	for _, f := range c.Files {
		if f.Declared != nil {
			go s.asked(f.Declared.Projects[0].Project.UUID)
		}
	}
	for range 100 {
		runtime.Gosched() // so that the question comes before the end of Apply, most times
	}
	return generation, err
}

// Whoever is served a project finds its file, also in the moment in which the file is accepted.
func TestServedIsKnown(t *testing.T) {
	testrig.Slow(t)
	t.Parallel()
	dir := t.TempDir()
	r := memoryResolver(t)
	answers := make(chan error, 1)
	sink := &eagerSink{Sink: r}
	n := newNode(t, dir, nodeOptions{resolver: r, sink: sink, loadOnly: true})
	sink.asked = func(project catalog.UUID) {
		_, err := n.source.Block(project)
		answers <- err
	}
	n.run()
	for i := range 20 {
		slug := fmt.Sprintf("p%d", i)
		replace(t, filepath.Join(dir, slug+".hcl"), project(slug))
		if err := <-answers; err != nil {
			t.Errorf("project %d: %v", i, err)
		}
	}
}

// What changes is logged, once, with its generation; what changes nothing is not.
func TestReloadsAreLogged(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.hcl"), project("a"))
	var log safeBuffer
	r := memoryResolver(t)
	source := configsrc.New(configsrc.Options{Dir: dir, Sink: r, MaxDelete: 1, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	lines := func(what string, want ...string) {
		t.Helper()
		var got []string
		for line := range strings.Lines(log.String()) {
			for _, w := range []string{"config loaded", "config reloaded", "config written"} {
				if strings.Contains(line, w) {
					got = append(got, w+" "+regexp.MustCompile(`generation=\d+`).FindString(line))
				}
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: logged %q, want %q", what, got, want)
		}
	}
	if err := source.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	lines("the first load", "config loaded generation=1")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go func() { _ = source.Run(ctx) }()
	reload := func() {
		t.Helper()
		if err := source.Reload(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	reload()
	lines("nothing new", "config loaded generation=1")
	replace(t, filepath.Join(dir, "a.hcl"), project("a")+"# a comment\n")
	reload()
	lines("a save", "config loaded generation=1", "config reloaded generation=2")
	p, err := r.ProjectBySlug("a")
	if err != nil {
		t.Fatal(err)
	}
	err = updateProject(t.Context(), source, p.UUID, func(p *catalog.ProjectConfig) error {
		p.Project.Name = "New"
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	reload()
	lines("a write", "config loaded generation=1", "config reloaded generation=2", "config written generation=3")
	if !regexp.MustCompile(`"config reloaded" generation=2 files=1 .* seconds=[0-9.e-]+ changed=1 paths=\[a\.hcl\]\n`).MatchString(log.String()) {
		t.Errorf("the line of the save is not there:\n%s", log.String())
	}

	// Another process on the same store loads, whether or not anything has changed meanwhile.
	again := configsrc.New(configsrc.Options{Dir: dir, Sink: r, MaxDelete: 1, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err := again.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	lines("a restart", "config loaded generation=1", "config reloaded generation=2", "config written generation=3",
		"config loaded generation=3")
}

package configsrc_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"fingerpost/cmd/testrig"
	"fingerpost/configsrc"
	"fingerpost/resolver/catalog"
)

var errSink = errors.New("the sink fails")

// A brokenSink fails in the next Apply: before the change, or after it.
type brokenSink struct {
	configsrc.Sink
	mu     sync.Mutex
	before bool // guarded by mu
	after  bool // guarded by mu
}

func (s *brokenSink) fail(before, after bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before, s.after = before, after
}

func (s *brokenSink) Apply(c *catalog.Change) (uint64, error) {
	s.mu.Lock()
	before, after := s.before, s.after
	s.before, s.after = false, false
	s.mu.Unlock()
	if before {
		return 0, errSink
	}
	generation, err := s.Sink.Apply(c)
	if after {
		return 0, errSink
	}
	return generation, err
}

// A journal remembers how the writes have ended.
type journal struct {
	mu    sync.Mutex
	ended []bool // guarded by mu
}

func (*journal) Begin(w *catalog.FileWrite) error { w.ID = 1; return nil }

func (j *journal) End(_ *catalog.FileWrite, made bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.ended = append(j.ended, made)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return fmt.Sprint(j.ended)
}

// If the Sink fails once the files were exchanged, the write is undone, and the error says so; or it is in the files,
// and the answer is that nobody knows the outcome: then it goes live by itself. Files, Journal, Sink and answer agree.
func TestSinkFailsAfterTheFiles(t *testing.T) {
	testrig.Slow(t)
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "a.hcl")
	write(t, file, project("a"))
	r := memoryResolver(t)
	sink, notes := &brokenSink{Sink: r}, new(journal)
	source := configsrc.New(configsrc.Options{Dir: dir, Sink: sink, MaxDelete: 1, Journal: notes,
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err := source.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- source.Run(ctx) }()
	defer func() { stop(); <-ended }()
	p, err := r.ProjectBySlug("a")
	if err != nil {
		t.Fatal(err)
	}
	rename := func(name string) error {
		return updateProject(t.Context(), source, p.UUID, func(p *catalog.ProjectConfig) error {
			p.Project.Name = name
			return nil
		})
	}
	agree := func(what, name, ended string) {
		t.Helper()
		testrig.Eventually(t, what+": "+name+" is live", func() bool {
			p, err := r.ProjectBySlug("a")
			return err == nil && p.Name == name
		})
		if got := read(t, file); !strings.Contains(got, fmt.Sprintf("%q", name)) {
			t.Errorf("%s: the file has\n%s", what, got)
		}
		if got := notes.String(); got != ended {
			t.Errorf("%s: the Journal has %s, want %s", what, got, ended)
		}
	}

	was := read(t, file)
	sink.fail(true, false)
	if err := rename("Refused"); !errors.Is(err, errSink) {
		t.Errorf("the refused write: %v", err)
	}
	if got := read(t, file); got != was {
		t.Errorf("a write that was answered with an error is in the file:\n%s", got)
	}
	agree("refused", "a", "[false]")
	sink.fail(true, false)
	if err := createProject(t.Context(), source, &catalog.Project{Name: "B", Slug: "b", UUID: catalog.NewUUID(), Status: catalog.StatusDraft}); !errors.Is(err, errSink) {
		t.Errorf("the refused new project: %v", err)
	}
	sink.fail(true, false)
	if err := deleteProject(t.Context(), source, p.UUID, func(*catalog.ProjectConfig) error { return nil }); !errors.Is(err, errSink) {
		t.Errorf("the refused removal: %v", err)
	}
	onlyFiles(t, dir, "a.hcl")
	agree("refused", "a", "[false false false]")

	sink.fail(false, true)
	var e *catalog.Error
	if err := rename("Unknown"); !errors.As(err, &e) || e.Code != catalog.CodeOutcomeUnknown {
		t.Errorf("the write of which the outcome is unknown: %v", err)
	}
	agree("unknown", "Unknown", "[false false false true]")
	if err := rename("Made"); err != nil {
		t.Error(err)
	}
	agree("made", "Made", "[false false false true true]")
	onlyFiles(t, dir, "a.hcl")
}

package configsrc_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"fingerpost/configsrc"
)

// A save between Load and Run, in a sub-folder, is recorded and does not wait for a sweep.
func TestSaveBeforeRunIsNoted(t *testing.T) {
	dir := t.TempDir()
	must(t, os.Mkdir(filepath.Join(dir, "team"), 0o755))
	name := filepath.Join(dir, "team", "acme.hcl")
	must(t, os.WriteFile(name, []byte("project \"acme\" {\n  name = \"One\"\n}\n"), 0o644))
	n := newNode(t, dir, nodeOptions{loadOnly: true})
	source := configsrc.New(configsrc.Options{Dir: dir, Sink: n.resolver, Logger: slog.New(slog.DiscardHandler), MaxDelete: 1})
	source.Watch()
	ctx, cancel := context.WithCancel(context.Background())
	must(t, source.Load(ctx))
	must(t, os.WriteFile(name, []byte("project \"acme\" {\n  name = \"Two\"\n}\n"), 0o644))
	n.until("the save is noted", func() bool { return source.Noted("team/acme.hcl") })
	done := make(chan error, 1)
	go func() { done <- source.Run(ctx) }()
	n.until("the save shows", func() bool {
		p, err := n.resolver.ProjectBySlug("acme")
		return err == nil && p.Name == "Two"
	})
	cancel()
	must(t, <-done)
}

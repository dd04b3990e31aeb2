package configsrc_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fingerpost/configsrc/edits"
	"fingerpost/resolver/catalog"
)

func write(t *testing.T, name, content string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	return name
}

func read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// onlyFiles fails if dir holds anything else, such as a leftover temporary file.
func onlyFiles(t *testing.T, dir string, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if strings.Join(got, " ") != strings.Join(names, " ") {
		t.Errorf("%s holds %v, want %v", dir, got, names)
	}
}

func appendText(text string) func([]byte) ([]byte, error) {
	return func(src []byte) ([]byte, error) { return append(src, text...), nil }
}

// A writer makes edits: a Source or an Overlay.
type writer interface {
	Write(ctx context.Context, e *catalog.Edit) (edits.Outcome, error)
}

func edit(ctx context.Context, w writer, e *catalog.Edit) error {
	e.By.Door = catalog.DoorAPI
	_, err := w.Write(ctx, e)
	return err
}

func createProject(ctx context.Context, w writer, p *catalog.Project) error {
	return edit(ctx, w, &catalog.Edit{NewProject: &catalog.ProjectConfig{Project: *p}})
}

func updateProject(ctx context.Context, w writer, uuid catalog.UUID, change func(p *catalog.ProjectConfig) error) error {
	return edit(ctx, w, &catalog.Edit{Project: &catalog.ProjectEdit{UUID: uuid, Change: change}})
}

func deleteProject(ctx context.Context, w writer, uuid catalog.UUID, check func(p *catalog.ProjectConfig) error) error {
	return edit(ctx, w, &catalog.Edit{Project: &catalog.ProjectEdit{UUID: uuid, Change: check, Remove: true}})
}

func createKey(ctx context.Context, w writer, k *catalog.Key, permit func() error) error {
	return edit(ctx, w, &catalog.Edit{Key: &catalog.KeyEdit{Name: k.Name, Create: k, Permit: permit}})
}

func rotateKey(ctx context.Context, w writer, name string, rotate func(k catalog.Key) (*catalog.Rotation, error), permit func() error) error {
	return edit(ctx, w, &catalog.Edit{Key: &catalog.KeyEdit{Name: name, Rotate: rotate, Permit: permit}})
}

func revokeKey(ctx context.Context, w writer, name string, permit func() error) error {
	return edit(ctx, w, &catalog.Edit{Key: &catalog.KeyEdit{Name: name, Permit: permit}})
}

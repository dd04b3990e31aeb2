package configsrc

import (
	"maps"
	"path/filepath"
	"slices"
	"testing"

	"github.com/fsnotify/fsnotify"
)

// TestNamed: a path with a possible write is never treated as renamed only.
func TestNamed(t *testing.T) {
	type event struct {
		name string
		op   fsnotify.Op
	}
	for _, c := range []struct {
		name   string
		events []event
		named  []string
		nobody bool // no path counts as folder.Renamed
	}{
		{"put there", []event{{"a.hcl", fsnotify.Create}, {"b/c.hcl", fsnotify.Rename}}, []string{"a.hcl", "b/c.hcl"}, false},
		{"written into", []event{{"a.hcl", fsnotify.Write}}, nil, false},
		{"put there and written into", []event{{"a.hcl", fsnotify.Create}, {"a.hcl", fsnotify.Write}, {"b.hcl", fsnotify.Create}}, []string{"b.hcl"}, false},
		{"written into and put there", []event{{"a.hcl", fsnotify.Write}, {"a.hcl", fsnotify.Create}}, nil, false},
		{"in one event", []event{{"a.hcl", fsnotify.Create | fsnotify.Write}}, nil, false},
		{"writes that are no longer noted", []event{{"a.hcl", fsnotify.Create}, {"..data", fsnotify.Create}, {"a.hcl", fsnotify.Write}}, nil, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			w := &watch{dir: dir, ready: make(chan struct{}, 1), paths: map[string]bool{}}
			for _, e := range c.events {
				w.note(dir, fsnotify.Event{Name: filepath.Join(dir, filepath.FromSlash(e.name)), Op: e.op})
			}
			sc, _ := w.take()
			if got := slices.Sorted(maps.Keys(sc.replaced)); !slices.Equal(got, c.named) || (sc.replaced == nil) != c.nobody {
				t.Errorf("named %v, want %v", sc.replaced, c.named)
			}
			if sc, _ := w.take(); len(sc.paths)+len(sc.replaced) > 0 || sc.all {
				t.Errorf("taken twice: %+v", sc)
			}
		})
	}
}

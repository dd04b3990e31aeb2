package folder

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
		nobody bool // no path counts as renamed
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
			w := &Watch{dir: dir, Ready: make(chan struct{}, 1), paths: map[string]bool{}}
			for _, e := range c.events {
				w.noteEvent(dir, fsnotify.Event{Name: filepath.Join(dir, filepath.FromSlash(e.name)), Op: e.op})
			}
			sc, _ := w.Take()
			if got := slices.Sorted(maps.Keys(sc.Replaced)); !slices.Equal(got, c.named) || (sc.Replaced == nil) != c.nobody {
				t.Errorf("named %v, want %v", sc.Replaced, c.named)
			}
			if sc, _ := w.Take(); len(sc.Paths)+len(sc.Replaced) > 0 || sc.All {
				t.Errorf("taken twice: %+v", sc)
			}
		})
	}
}

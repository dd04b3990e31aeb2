package cluster

import (
	"context"
	"io"
	"log/slog"
	"testing"

	"fingerpost/resolver/catalog"
)

// A heldReplica counts what it is given.
type heldReplica struct {
	at      catalog.Position
	changes []catalog.TreeChange
}

func (r *heldReplica) Position() catalog.Position { return r.at }

func (r *heldReplica) Tree(func(path string, content []byte) bool) error { return nil }

func (r *heldReplica) ApplyTree(_ context.Context, c catalog.TreeChange) error {
	r.changes, r.at = append(r.changes, c), c.Position
	return nil
}

// TestTornNextToARefusedMessage: a generation of which a part is missing is not applied while another message is refused,
// and is once all of it but the refused one is there.
func TestTornNextToARefusedMessage(t *testing.T) {
	t.Parallel()
	for name, refused := range map[string]string{"new": "c.hcl", "replaced": "a.hcl"} {
		replica := &heldReplica{}
		f := NewFollower(FollowerOptions{Cluster: "test", Edge: "fra1", Replica: replica, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
		f.own, f.view, f.held = map[string]Sum{}, map[string]Sum{}, map[string]*catalog.TreeFile{}
		f.from = listing{start: true}
		at := func(generation uint64) catalog.Position { return catalog.Position{Epoch: "e", Generation: generation} }
		put := func(path, content string, damage bool) Sum {
			m, sum := pack(&catalog.TreeFile{Path: path, Bytes: []byte(content)})
			if damage {
				m.value = m.value[:len(m.value)-3]
			}
			f.takeFile(record{key: m.key, value: m.value})
			return sum
		}
		mark := func(generation uint64, sums ...Sum) {
			t.Helper()
			var root Root
			for _, s := range sums {
				root.Add(s)
			}
			f.last = marker{Files: len(sums), Root: root.String(), position: at(generation)}
			if err := f.mark(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		a, b := put("a.hcl", "a", false), put("b.hcl", "b", false)
		mark(1, a, b)
		if len(replica.changes) != 1 || f.state.at != current {
			t.Fatalf("%s: %+v", name, f.state)
		}
		bad := put(refused, "not to be unpacked", true)
		if len(f.bad) != 1 {
			t.Fatalf("%s: refused %v", name, f.bad)
		}
		want := []Sum{a, b, bad}
		if refused == "a.hcl" {
			want = want[1:]
		}
		_, missing := pack(&catalog.TreeFile{Path: "d.hcl", Bytes: []byte("d")})
		mark(2, append(want, missing)...)
		if len(replica.changes) != 1 || f.state.at != torn {
			t.Errorf("%s: a torn generation is applied: %+v", name, f.state)
		}
		put("d.hcl", "d", false)
		mark(2, append(want, missing)...)
		if len(replica.changes) != 2 || f.state.at != current || replica.at != at(2) {
			t.Errorf("%s: a generation with a refused message is not applied: %+v", name, f.state)
		}
	}
}

package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"fingerpost/cmd/testrig"
	"fingerpost/cmd/testrig/history"
	"fingerpost/resolver/catalog"
)

// The files of the seeded defects: one generation changes left and right together.
const leftFile, rightFile, soloFile = "left.hcl", "right.hcl", "solo.hcl"

// A servedTree is an edge's tree with a reader, who reads all names after each change and records what the edge answers.
// Its other fields are defects.
type servedTree struct {
	*tree
	h     *history.History
	ready func() bool // otherwise the edge answers 503

	mu    sync.Mutex         // guards given
	given []catalog.Position // what the follower has had applied

	brake    func(catalog.TreeChange) error              // nil: there is none
	applies  func(x *servedTree, c catalog.TreeChange)   // in the place of apply
	reported func(own catalog.Position) catalog.Position // in the place of Position, for the follower
}

func (x *servedTree) Position() catalog.Position {
	if x.reported != nil {
		return x.reported(x.tree.Position())
	}
	return x.tree.Position()
}

func (x *servedTree) ApplyTree(_ context.Context, c catalog.TreeChange) error {
	if x.brake != nil {
		if err := x.brake(c); err != nil {
			return err
		}
	}
	if x.applies != nil {
		x.applies(x, c)
	} else {
		x.put(c)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.given = append(x.given, c.Position)
	return nil
}

// put applies a change as it is, and has it read.
func (x *servedTree) put(c catalog.TreeChange) {
	x.tree.mu.Lock()
	x.apply(c)
	x.tree.mu.Unlock()
	x.read(false)
}

func (x *servedTree) had(p catalog.Position) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.Contains(x.given, p)
}

func (x *servedTree) read(last bool) {
	for _, name := range []string{leftFile, rightFile, soloFile} {
		a := history.Answer{Edge: "fra1", Name: name, Status: http.StatusOK, Position: x.tree.Position().String(), Began: x.h.Now(), Last: last}
		f, err := x.TreeFile(name)
		switch {
		case x.ready != nil && !x.ready():
			a.Status = http.StatusServiceUnavailable
		case err != nil:
			a.Status = http.StatusNotFound
		default:
			a.Content = string(f.Bytes)
		}
		a.Ended = x.h.Now()
		x.h.Answered(a)
	}
}

// A defectRig is a cluster with one served edge.
type defectRig struct {
	*rig
	h       *history.History
	edge    *edge
	tree    *servedTree
	written int
}

// newDefectRig begins with all files. It does not start the edge.
func newDefectRig(t *testing.T) *defectRig {
	r := &defectRig{rig: newRig(t, "fra1"), h: &history.History{}}
	r.tree = &servedTree{tree: newTree(), h: r.h}
	r.rig.tree.commit(map[string]string{leftFile: "begin", rightFile: "begin", soloFile: "begin", "other.hcl": "begin"})
	r.h.End(r.h.Begin("begin", leftFile, rightFile, soloFile), history.Acknowledged, catalog.Position{})
	return r
}

func (r *defectRig) follow() {
	r.t.Helper()
	f := r.follower()
	r.edge = &edge{f, r.tree.tree, run(r.t, f.Run)}
	testrig.Eventually(r.t, "the edge has a whole tree", r.edge.Whole)
}

func (r *defectRig) follower() *Follower {
	f := NewFollower(FollowerOptions{Edge: "fra1", Cluster: "test", Logger: quiet(), Replica: r.tree,
		Connection: Connection{URLs: []string{"nats://" + r.supervisor.Addr()}, KeyFile: r.seeds["fra1"]}})
	if err := f.Open(); err != nil {
		r.t.Fatal(err)
	}
	return f
}

// write acknowledges a write at an authority's tree; of both names at once, or of the one.
func (r *defectRig) write(x *tree, names ...string) catalog.Position {
	r.written++
	content, files := fmt.Sprint("write ", r.written), map[string]string{}
	for _, name := range names {
		files[name] = content
	}
	number := r.h.Begin(content, names...)
	p := x.commit(files)
	r.h.End(number, history.Acknowledged, p)
	return p
}

// writeAll writes a few times, each time until the follower has taken it, so that no two generations are merged.
func (r *defectRig) writeAll() {
	r.t.Helper()
	for range 3 {
		for _, names := range [][]string{{leftFile, rightFile}, {soloFile}} {
			p := r.write(r.rig.tree, names...)
			testrig.Eventually(r.t, "the follower has the write", func() bool { return r.tree.had(p) })
		}
	}
}

var errBraked = errors.New("held back: too much would go")

// TestSeededDefects: the checker is no use if it misses a defect. Each of these is put between the real publisher and the
// real follower, or around them, and has to be found; without it the same steps break no promise.
func TestSeededDefects(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	for _, c := range []struct {
		name string
		kind history.Kind
		run  func(t *testing.T, r *defectRig, defect bool)
	}{
		{"drop a message", history.LostWrite, func(t *testing.T, r *defectRig, defect bool) {
			r.tree.applies = unless(!defect, func(x *servedTree, c catalog.TreeChange) {
				if c.Position.Generation == 3 {
					c.Put = nil
				}
				x.put(c)
			})
			r.follow()
			r.writeAll()
		}},
		{"reorder", history.StaleRead, func(t *testing.T, r *defectRig, defect bool) {
			var late catalog.TreeChange
			r.tree.applies = unless(!defect, func(x *servedTree, c catalog.TreeChange) {
				switch c.Position.Generation {
				case 3:
					late = c
				case 5: // both change the same file
					x.put(c)
					x.put(late)
				default:
					x.put(c)
				}
			})
			r.follow()
			r.writeAll()
		}},
		{"apply half a generation", history.HalfGeneration, func(t *testing.T, r *defectRig, defect bool) {
			r.tree.applies = unless(!defect, func(x *servedTree, c catalog.TreeChange) {
				if len(c.Put) == 2 {
					half := c
					half.Position, half.Put = x.tree.Position(), c.Put[:1]
					x.put(half)
				}
				x.put(c)
			})
			r.follow()
			r.writeAll()
		}},
		{"ignore the epoch", history.LostWrite, func(t *testing.T, r *defectRig, defect bool) {
			// The authority's store is restored: another epoch, and lower generations.
			restored := newTree()
			if defect {
				r.tree.reported = func(own catalog.Position) catalog.Position {
					if own.Generation > 0 {
						own.Epoch = r.rig.tree.Position().Epoch
					}
					return own
				}
			}
			r.follow()
			r.writeAll()
			r.stop()
			restored.commit(map[string]string{leftFile: "begin", rightFile: "begin", soloFile: "begin", "other.hcl": "begin"})
			r.rig.tree.mu.Lock()
			r.rig.tree.position, r.rig.tree.files = restored.position, restored.files
			r.rig.tree.mu.Unlock()
			r.startAuthority(AuthorityOptions{})
			p := r.write(r.rig.tree, soloFile)
			testrig.Eventually(t, "the follower has the write, or says that it waits", func() bool {
				return r.tree.had(p) || strings.Contains(r.edge.Status().Problem, "waiting for the authority")
			})
		}},
		{"ignore the fence", history.BackInTime, func(t *testing.T, r *defectRig, defect bool) {
			r.follow()
			r.writeAll()
			r.stop()
			former, x := r.second(AuthorityOptions{Holder: "former:/data"})
			awake, sleep := context.WithCancel(t.Context())
			if err := former.Claim(awake); err != nil {
				t.Fatal(err)
			}
			x.commit(map[string]string{leftFile: "begin", rightFile: "begin", soloFile: "begin", "other.hcl": "begin"})
			p := r.write(x, soloFile)
			if err := former.compare(t.Context()); err != nil {
				t.Fatal(err)
			}
			testrig.Eventually(t, "the edge follows it", func() bool { return r.tree.had(p) })
			sleep() // through its lease, while another one takes over
			next, successor := r.second(AuthorityOptions{Holder: "next:/data", TakeOver: true})
			if err := next.Claim(t.Context()); err != nil {
				t.Fatal(err)
			}
			successor.commit(map[string]string{leftFile: "begin", rightFile: "begin", soloFile: "begin", "other.hcl": "begin"})
			p = r.write(successor, soloFile)
			stop := run(t, next.Run)
			testrig.Eventually(t, "the edge follows the successor", func() bool { return r.tree.had(p) })
			stop()
			late := r.h.Begin("late", soloFile) // its client is told that nothing was done
			r.h.End(late, history.Refused, catalog.Position{})
			p = x.commit(map[string]string{soloFile: "late"})
			if defect { // the condition of a publish always holds
				st, err := former.bucket.state(patient(t))
				if err != nil {
					t.Fatal(err)
				}
				former.tail.found(st.last)
			}
			switch err := former.compare(t.Context()); {
			case defect && err == nil:
				testrig.Eventually(t, "the edge follows the former authority again", func() bool { return r.tree.had(p) })
			case defect || !errors.Is(err, errFenced):
				t.Errorf("the former authority's publish: %v", err)
			}
		}},
		{"skip fsync at the authority", history.LostWrite, func(t *testing.T, r *defectRig, defect bool) {
			r.follow()
			r.writeAll()
			r.stop()
			if defect { // power fails, and the disk has the state before the last write
				x := r.rig.tree
				x.mu.Lock()
				x.position.Generation--
				x.files[soloFile] = catalog.TreeFile{Path: soloFile, Bytes: []byte("write 4")}
				x.mu.Unlock()
			}
			r.startAuthority(AuthorityOptions{})
			for range 2 { // the first takes the number of the lost one
				p := r.write(r.rig.tree, leftFile, rightFile)
				testrig.Eventually(t, "the follower has the write", func() bool { return r.tree.had(p) })
			}
		}},
		{"forget the brake", history.Forgotten, func(t *testing.T, r *defectRig, defect bool) {
			if !defect {
				r.tree.brake = func(c catalog.TreeChange) error {
					if len(c.Removed) > 1 {
						return errBraked
					}
					return nil
				}
			}
			r.follow()
			r.writeAll()
			p := r.rig.tree.commit(map[string]string{leftFile: "", rightFile: "", soloFile: ""}) // confirmed at the authority
			testrig.Eventually(t, "the follower has it, or says that it is held back", func() bool {
				return r.tree.had(p) || strings.Contains(r.edge.Status().Problem, "held back")
			})
		}},
		{"serve before the first tree is whole", history.Forgotten, func(t *testing.T, r *defectRig, defect bool) {
			f := r.follower()
			if !defect {
				r.tree.ready = f.Whole
			}
			r.tree.read(false)
			r.edge = &edge{f, r.tree.tree, run(t, f.Run)}
			r.tree.applies = func(x *servedTree, c catalog.TreeChange) {
				if len(c.Put) > 3 { // as a first load does, in parts
					first := c
					first.Position, first.Put = x.tree.Position(), c.Put[:1]
					x.put(first)
				}
				x.put(c)
			}
			testrig.Eventually(t, "the edge has a whole tree", r.edge.Whole)
			r.writeAll()
		}},
	} {
		for _, defect := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/%t", c.name, defect), func(t *testing.T) {
				r := newDefectRig(t)
				c.run(t, r, defect)
				r.edge.stop()
				r.tree.read(true)
				found := r.h.Check()
				hit := slices.ContainsFunc(found, func(v history.Violation) bool { return v.Kind == c.kind })
				if defect && !hit || !defect && len(found) > 0 {
					t.Errorf("the checker finds %v", found)
				}
			})
		}
	}
}

// unless returns f, or nil if not is true.
func unless(not bool, f func(*servedTree, catalog.TreeChange)) func(*servedTree, catalog.TreeChange) {
	if not {
		return nil
	}
	return f
}

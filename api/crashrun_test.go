package api_test

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"fingerpost/cmd/testrig"
	"fingerpost/configsrc"
	"fingerpost/configsrc/atomicfile"
	"fingerpost/resolver"
	"fingerpost/resolver/ledger"
	"fingerpost/resolver/store"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// A crashRun plays writes against a server whose disks, its own and Pebble's, can lose power at every step, and starts
// a new server on each state that may be left. Answered writes must be in the files then, all other files must be old
// or new and complete, the folder must have nothing else in it, and the store must agree with the files.
type crashRun struct {
	*desk
	disk  *crashDisk
	mem   *vfs.MemFS // the store's disk
	links map[string]string
	every int         // one of so many states that a crash may leave is looked at; 0: all of them
	steps []crashStep // that are over

	mu     sync.Mutex // guards what follows; taken after disk.mu
	on     bool
	acked  map[string]bool   // files of the present step whose writes have been answered
	saved  string            // what a person has written last, during the present step
	writes int               // by Pebble so far
	seen   map[string]bool   // states that a crash may leave
	shots  []*shot           // those of them that are looked at
	fresh  map[string]string // what a server with an empty store makes of a tree
	due    []func()          // checks of the present step: they begin when it is over, or it would be kept waiting
	slots  chan struct{}
	checks sync.WaitGroup
}

type crashStep struct {
	name        string
	prev, after map[string]string
}

// A shot is a state that a crash may leave, and the result of its check.
type shot struct {
	step  int
	at    string
	acked map[string]bool
	saved string            // what a person has written by then
	left  map[string]string // by the crash
	got   map[string]string // after the restart
	wrong string
}

// newCrashRun serves files; links lead from path to target.
func newCrashRun(t testing.TB, files, links map[string]string, disk *crashDisk) *crashRun {
	t.Helper()
	r := &crashRun{desk: &desk{dir: t.TempDir()}, disk: disk, mem: vfs.NewCrashableMem(), links: links,
		seen: map[string]bool{}, fresh: map[string]string{}, slots: make(chan struct{}, 48)}
	r.save(t, files)
	r.link(t, r.dir)
	r.desk.disk = disk
	r.desk.store = onDisk(errorfs.Wrap(r.mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
			disk.mu.Lock()
			defer disk.mu.Unlock()
			r.mu.Lock()
			r.writes++
			r.mu.Unlock()
			r.shoot("Pebble's write")
		}
		return nil
	})))
	r.open(t, files)
	disk.mu.Lock()
	defer disk.mu.Unlock()
	if err := disk.begin(r.dir); err != nil {
		t.Fatal(err)
	}
	disk.after = r.shoot
	return r
}

func (r *crashRun) link(t testing.TB, dir string) {
	for name, target := range r.links {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
}

// onDisk keeps a resolver's store on a file system.
func onDisk(fsys vfs.FS) resolver.Options {
	return resolver.Options{DataDir: "/store", Disk: resolver.DiskOptions{
		Store: func(dir string, o store.Options) (*store.Store, error) {
			o.FS = fsys
			return store.Open(dir, o)
		},
		Ledger: func(dir string, o ledger.Options) (*ledger.Ledger, error) {
			o.FS = fsys
			return ledger.Open(dir, o)
		},
		Probe: func(string) error { return nil },
	}}
}

// A crashWrite is one request of a step, and the file that it changes; "" where it is the only one of its step.
type crashWrite struct {
	file string
	exchange
}

// step makes requests at the same time and takes shots until all are answered.
func (r *crashRun) step(t testing.TB, name string, writes ...crashWrite) {
	t.Helper()
	prev := readTree(t, r.dir)
	r.mu.Lock()
	r.on, r.acked, r.saved = true, map[string]bool{}, ""
	r.mu.Unlock()
	var all sync.WaitGroup
	for _, w := range writes {
		if w.path = r.path(t, w.path); w.header == nil {
			w.header = http.Header{}
		}
		all.Go(func() {
			r.exchange(t, w.exchange)
			r.disk.mu.Lock()
			defer r.disk.mu.Unlock()
			r.mu.Lock()
			r.acked[w.file] = true
			r.mu.Unlock()
			r.shoot("answer")
		})
	}
	all.Wait()
	r.mu.Lock()
	r.on = false
	for _, check := range r.due {
		r.checks.Go(check)
	}
	r.due = nil
	r.mu.Unlock()
	r.checks.Wait() // they would keep the next step waiting, too
	after := readTree(t, r.dir)
	r.disk.mu.Lock()
	is := r.disk.images()[0]
	r.disk.mu.Unlock()
	if fold(is) != fold(after) {
		t.Fatalf("%s: the disk's picture of the folder is not what is there:\n%q\n%q", name, is, after)
	}
	r.steps = append(r.steps, crashStep{name, prev, after})
}

// readTree reads a folder, all of it but links.
func readTree(t testing.TB, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(name)
		rel, _ := filepath.Rel(dir, name)
		found[filepath.ToSlash(rel)] = string(b)
		return err
	})
	if err != nil {
		t.Error(err)
	}
	return found
}

// shoot records the states that a crash may leave now; a new server is started on each later. The caller holds the
// disk's mu.
func (r *crashRun) shoot(at string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.on {
		return
	}
	acked := maps.Clone(r.acked)
	clones := map[int]*vfs.MemFS{}
	for i, left := range r.disk.images() {
		for _, percent := range []int{0, 50, 100} {
			key := fmt.Sprint(len(r.steps), acked, r.writes, percent, r.saved, fold(left))
			if r.seen[key] || i > 0 && percent != 50 {
				continue
			}
			r.seen[key] = true
			if r.every > 1 && len(r.seen)%r.every != 0 {
				continue
			}
			if clones[percent] == nil {
				rng := rand.New(rand.NewPCG(uint64(len(r.shots)), 1))
				clones[percent] = r.mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rng})
			}
			mem := clones[percent]
			s := &shot{step: len(r.steps), at: fmt.Sprintf("%s, %d%% of Pebble's writes", at, percent), acked: acked, saved: r.saved, left: left}
			r.shots = append(r.shots, s)
			r.due = append(r.due, func() {
				r.slots <- struct{}{}
				defer func() { <-r.slots }()
				s.wrong = r.restart(s, mem.CrashClone(vfs.CrashCloneCfg{})) // for itself
			})
		}
	}
}

// restart starts a server on the state after a crash, and returns what is wrong with it.
func (r *crashRun) restart(s *shot, mem vfs.FS) (wrong string) {
	dir, err := os.MkdirTemp(r.t.TempDir(), "crash")
	if err != nil {
		return err.Error()
	}
	defer os.RemoveAll(dir)
	for name, content := range s.left {
		name = filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err.Error()
		}
		if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
			return err.Error()
		}
	}
	r.link(r.t, dir)
	says, wrong := r.serves(dir, onDisk(mem))
	// While another test starts a program, its copy of this process has the files open that were written here. What an
	// interrupted write has left is then not cleared by this start, but by the next look.
	for end := time.Now().Add(testrig.Patience); wrong == "" && hasTemps(r.t, dir) && time.Now().Before(end); {
		says, wrong = r.serves(dir, onDisk(mem))
	}
	if wrong != "" {
		return wrong
	}
	s.got = readTree(r.t, dir)
	key := fold(s.got)
	r.mu.Lock()
	fresh, known := r.fresh[key]
	r.mu.Unlock()
	if !known {
		if fresh, wrong = r.serves(dir, resolver.Options{}); wrong != "" {
			return "with an empty store: " + wrong
		}
		r.mu.Lock()
		r.fresh[key] = fresh
		r.mu.Unlock()
	}
	if says != fresh {
		return fmt.Sprintf("it says\n%s\nand with an empty store\n%s", says, fresh)
	}
	return ""
}

// serves returns everything that a server on a folder answers.
func (r *crashRun) serves(dir string, o resolver.Options) (says, wrong string) {
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	o.Logger, o.CacheBytes, o.StoreCacheBytes = log, 1<<20, 1<<20
	res, err := resolver.Open(o)
	if err != nil {
		return "", err.Error()
	}
	defer res.Close()
	source := configsrc.New(configsrc.Options{Dir: dir, Sink: res, Logger: log, MaxDelete: 0.3})
	if err := source.Load(context.Background()); err != nil {
		return "", err.Error()
	}
	if reason, bad := res.Degraded(); bad {
		return "", "the store: " + reason
	}
	if st := source.Status(); st.State != configsrc.StateOK {
		return "", fmt.Sprintf("state %s, %v", st.State, st.Problems)
	}
	return tellAll(r.t, res), ""
}

// hasTemps reports whether an interrupted write has left a temporary file.
func hasTemps(t testing.TB, dir string) bool {
	for name := range readTree(t, dir) {
		if atomicfile.IsTemp(filepath.Base(name)) {
			return true
		}
	}
	return false
}

// finish waits for all checks and returns what is wrong, as text.
func (r *crashRun) finish() (wrong []string) {
	r.checks.Wait()
	for _, s := range r.shots {
		if bad := s.judge(r.steps); bad != "" {
			wrong = append(wrong, fmt.Sprintf("%s, power lost after %s: %s\n--- left\n%s\n--- after the restart\n%s",
				r.steps[s.step].name, s.at, bad, show(s.left), show(s.got)))
		}
	}
	return wrong
}

// judge compares a shot with the changes of its step.
func (s *shot) judge(steps []crashStep) string {
	if s.wrong != "" {
		return s.wrong
	}
	step := steps[s.step]
	names := maps.Clone(s.got)
	maps.Copy(names, step.prev)
	maps.Copy(names, step.after)
	for name := range names {
		content, there := s.got[name]
		old, wasThere := step.prev[name]
		now, isThere := step.after[name]
		isOld, isNew := content == old && there == wasThere, content == now && there == isThere
		switch {
		case isNew || isOld && !s.acked[""] && !s.acked[name]:
		case isOld:
			return "the answered write to " + name + " is lost"
		case !wasThere && !isThere:
			return name + " is left behind"
		default:
			return name + " is neither old nor new"
		}
	}
	return ""
}

func show(tree map[string]string) string {
	return strings.NewReplacer("\x00\x00", "\n", "\x00", "\n").Replace(fold(tree))
}

// report fails the test with the first of what is wrong.
func (r *crashRun) report(t testing.TB, wrong []string) {
	t.Helper()
	t.Logf("%d of %d states after a power cut", len(r.shots), len(r.seen))
	for i, w := range wrong {
		if t.Error(w); i == 3 {
			t.Fatalf("and %d more", len(wrong)-4)
		}
	}
}

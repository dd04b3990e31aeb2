package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"fingerpost/cmd/testrig"
	"fingerpost/configsrc/cluster/natsd"
	"fingerpost/resolver/catalog"
)

// serverEnv makes the test's binary the process of the built-in server.
const serverEnv = "FINGERPOST_CLUSTER_TEST_SERVER"

func TestMain(m *testing.M) {
	if os.Getenv(serverEnv) != "" {
		if err := natsd.Run(os.Stdin, os.Stdout, os.Stderr); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(3)
		}
		return
	}
	os.Exit(m.Run())
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// A tree is a tree in memory: the authority's, or an edge's.
type tree struct {
	mu       sync.Mutex
	position catalog.Position
	files    map[string]catalog.TreeFile
	refuse   error // of ApplyTree
	applied  []catalog.TreeChange
	told     func(catalog.TreeChange)
}

func newTree() *tree {
	return &tree{position: catalog.Position{Epoch: catalog.NewEpoch()}, files: map[string]catalog.TreeFile{}}
}

func (x *tree) Position() catalog.Position {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.position
}

func (x *tree) Tree(yield func(string, []byte) bool) error {
	x.mu.Lock()
	files := maps.Clone(x.files)
	x.mu.Unlock()
	for path, f := range files {
		if !yield(path, f.Bytes) {
			return nil
		}
	}
	return nil
}

func (x *tree) TreeFile(path string) (catalog.TreeFile, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	f, found := x.files[path]
	if !found {
		return f, &catalog.Error{Code: catalog.CodeNotFound}
	}
	return f, nil
}

func (x *tree) ApplyTree(_ context.Context, c catalog.TreeChange) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.refuse != nil {
		return x.refuse
	}
	x.apply(c)
	return nil
}

func (x *tree) apply(c catalog.TreeChange) {
	for _, f := range c.Put {
		x.files[f.Path] = f
	}
	for _, path := range c.Removed {
		delete(x.files, path)
	}
	x.position = c.Position
	x.applied = append(x.applied, c)
}

// commit makes a generation: an empty content removes a file.
func (x *tree) commit(files map[string]string) catalog.Position {
	x.mu.Lock()
	defer x.mu.Unlock()
	c := catalog.TreeChange{Position: catalog.Position{Epoch: x.position.Epoch, Generation: x.position.Generation + 1}}
	for _, path := range slices.Sorted(maps.Keys(files)) {
		if files[path] == "" {
			c.Removed = append(c.Removed, path)
		} else {
			c.Put = append(c.Put, catalog.TreeFile{Path: path, Bytes: []byte(files[path])})
		}
	}
	x.apply(c)
	if x.told != nil {
		x.told(c)
	}
	return c.Position
}

func (x *tree) same(y *tree) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	y.mu.Lock()
	defer y.mu.Unlock()
	return x.position == y.position && maps.EqualFunc(x.files, y.files, func(a, b catalog.TreeFile) bool { return bytes.Equal(a.Bytes, b.Bytes) })
}

func (x *tree) refusing(err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.refuse = err
}

// A rig is a cluster: a built-in server in a process of its own, an authority and edges.
type rig struct {
	t          testing.TB
	dir        string
	supervisor *natsd.Supervisor
	tree       *tree
	authority  *Authority
	stop       func() // the authority
	seeds      map[string]string
	publics    map[string]string
}

func newRig(t testing.TB, edges ...string) *rig {
	t.Helper()
	testrig.Slow(t)
	if t, ok := t.(*testing.T); ok {
		t.Parallel() // most of them wait most of the time
	}
	r := &rig{t: t, dir: t.TempDir(), tree: newTree(), seeds: map[string]string{}, publics: map[string]string{}}
	for _, name := range edges {
		r.seeds[name], r.publics[name] = newKey(t)
	}
	r.startServer(natsd.Config{Listen: "127.0.0.1:0", Dir: r.dir, Name: "fingerpost_test", Grants: Grants("test"), Edges: r.publics})
	r.startAuthority(AuthorityOptions{})
	return r
}

func newKey(t testing.TB) (file, public string) {
	t.Helper()
	pair, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	seed, err := pair.Seed()
	if err != nil {
		t.Fatal(err)
	}
	if public, err = pair.PublicKey(); err != nil {
		t.Fatal(err)
	}
	file = t.TempDir() + "/edge.nk"
	if err := os.WriteFile(file, seed, 0o600); err != nil {
		t.Fatal(err)
	}
	return file, public
}

func (r *rig) startServer(config natsd.Config) {
	r.t.Helper()
	var err error
	r.supervisor, err = natsd.NewSupervisor(config, func() *exec.Cmd {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), serverEnv+"=1")
		return cmd
	}, quiet())
	if err != nil {
		r.t.Fatal(err)
	}
	wait, err := r.supervisor.Start(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.supervisor.Run(ctx, wait)
	}()
	r.t.Cleanup(func() {
		cancel()
		<-ended
	})
}

// startAuthority fills in what every test has in common.
func (r *rig) startAuthority(o AuthorityOptions) {
	r.t.Helper()
	a := r.newAuthority(o)
	r.tree.mu.Lock()
	r.tree.told = a.Committed
	r.tree.mu.Unlock()
	if err := a.Claim(r.t.Context()); err != nil {
		r.t.Fatal(err)
	}
	r.authority, r.stop = a, run(r.t, a.Run)
}

func (r *rig) newAuthority(o AuthorityOptions) *Authority {
	if o.Connection.URLs == nil {
		o.Connection = ConnectionTo(r.supervisor)
		o.OwnServer = true
	}
	if o.Holder == "" {
		o.Holder = "here:" + r.dir
	}
	if o.Tree == nil {
		o.Tree = r.tree
	}
	o.Cluster, o.Logger, o.Version = "test", quiet(), "1.2.3"
	return NewAuthority(o)
}

// run runs a part until stop, or the end of the test.
func run(t testing.TB, part func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- part(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-ended:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(testrig.Patience):
			t.Error("it does not end")
		}
	})
	t.Cleanup(stop)
	return stop
}

// An edge is a follower with its tree.
type edge struct {
	*Follower
	tree *tree
	stop func()
}

func (r *rig) edge(name string) *edge { return r.edgeOn(name, newTree()) }

func (r *rig) edgeOn(name string, x *tree) *edge {
	r.t.Helper()
	return startEdge(r.t, FollowerOptions{Edge: name, Connection: Connection{URLs: []string{"nats://" + r.supervisor.Addr()}, KeyFile: r.seeds[name]}}, x)
}

func startEdge(t testing.TB, o FollowerOptions, x *tree) *edge {
	t.Helper()
	o.Replica, o.Logger, o.Version = x, quiet(), "1.2.3"
	if o.Cluster == "" {
		o.Cluster = "test"
	}
	f := NewFollower(o)
	if err := f.Open(); err != nil {
		t.Fatal(err)
	}
	return &edge{f, x, run(t, f.Run)}
}

func (r *rig) reaches(e *edge) {
	r.t.Helper()
	testrig.Eventually(r.t, "the edge has the authority's tree: "+fmt.Sprint(e.Status().Problem), func() bool { return r.tree.same(e.tree) })
}

// admin is a connection that may do everything.
func (r *rig) admin() *bucket {
	r.t.Helper()
	c := ConnectionTo(r.supervisor)
	c.inbox = "_INBOX_test"
	nc, err := c.connect()
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(nc.Close)
	testrig.Eventually(r.t, "the test is connected", nc.IsConnected)
	b, err := newBucket(nc, "test")
	if err != nil {
		r.t.Fatal(err)
	}
	return b
}

// patient is a context for calls of NATS, which end after 5 s without a deadline: a busy machine takes longer.
func patient(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), testrig.Patience)
	t.Cleanup(cancel)
	return ctx
}

func (b *bucket) putRaw(t testing.TB, key string, value []byte) {
	t.Helper()
	if _, err := b.js.PublishMsg(patient(t), &nats.Msg{Subject: b.prefix + key, Data: value}); err != nil {
		t.Fatal(err)
	}
}

var errHeld = errors.New("held back")

func kill(t testing.TB, pid int) {
	t.Helper()
	p, err := os.FindProcess(pid)
	if err == nil {
		err = p.Kill()
	}
	if err != nil {
		t.Fatal(err)
	}
}

package cluster

import (
	"crypto/rand"
	"fmt"
	"os"
	"strings"
	"testing"

	"fingerpost/cmd/testrig"
)

func TestEdgesFollow(t *testing.T) {
	r := newRig(t, "fra1", "ams1")
	r.tree.commit(map[string]string{"acme.hcl": "one", "mail/welcome.html": "<p>"})
	fra, ams := r.edge("fra1"), r.edge("ams1")
	r.reaches(fra)
	r.tree.commit(map[string]string{"acme.hcl": "two", "other.hcl": "new"})
	r.tree.commit(map[string]string{"mail/welcome.html": ""})
	r.reaches(fra)
	r.reaches(ams)
	for i := range 200 {
		r.tree.commit(map[string]string{"acme.hcl": fmt.Sprint("write ", i), fmt.Sprintf("p%d.hcl", i%7): fmt.Sprint(i)})
	}
	r.reaches(fra)
	r.reaches(ams)
	if s := fra.Stats(); s.Listings != 1 || s.Repairs != 0 {
		t.Errorf("the edge has read the whole bucket %d times, %d of them for repair", s.Listings, s.Repairs)
	}
	generation := uint64(0)
	for _, c := range fra.tree.applied {
		if c.Position.Generation < generation {
			t.Errorf("the edge went from generation %d to %d", generation, c.Position.Generation)
		}
		generation = c.Position.Generation
	}
	testrig.Eventually(t, "the authority knows that both edges are up to date", func() bool {
		s := r.authority.Status(nil)
		return len(s.Edges) == 2 && s.Edges[0].Current && s.Edges[1].Current && s.Edges[0].Ready && s.Edges[0].Name == "ams1" && s.Problem == ""
	})
}

func TestManyFilesArriveWhole(t *testing.T) {
	r := newRig(t, "fra1")
	files := map[string]string{}
	for i := range 3000 {
		files[fmt.Sprintf("p%d.hcl", i)] = strings.Repeat(fmt.Sprint("line ", i, "\n"), 20)
	}
	noise := make([]byte, 1<<20)
	rand.Read(noise)
	files["mail/large.html"] = string(noise)
	r.tree.commit(files)
	e := r.edge("fra1")
	r.reaches(e)
	if len(e.tree.applied) != 1 {
		t.Errorf("the first generation came in %d changes", len(e.tree.applied))
	}
}

func TestEmptyTreeIsNotTaken(t *testing.T) {
	r := newRig(t, "fra1")
	e := r.edge("fra1")
	testrig.Eventually(t, "the edge says that there is no file", func() bool { return strings.Contains(e.Status().Problem, "no file") })
	if e.Whole() {
		t.Error("it counts as whole")
	}
	r.tree.commit(map[string]string{"acme.hcl": "one"})
	r.reaches(e)
	r.tree.commit(map[string]string{"acme.hcl": ""})
	testrig.Eventually(t, "the edge says so again", func() bool { return strings.Contains(e.Status().Problem, "no file") })
	if _, err := e.tree.TreeFile("acme.hcl"); err != nil {
		t.Error("the edge has dropped what it had")
	}
}

// TestPartOfAFirstTreeIsNotWhole: an edge that was killed during its first load has some files and no position yet.
func TestPartOfAFirstTreeIsNotWhole(t *testing.T) {
	r := newRig(t, "fra1")
	r.tree.commit(map[string]string{"acme.hcl": "one", "b.hcl": "b"})
	x := newTree()
	x.files["acme.hcl"] = r.tree.files["acme.hcl"]
	f := NewFollower(FollowerOptions{Edge: "fra1", Cluster: "test", Logger: quiet(), Replica: x,
		Connection: Connection{URLs: []string{"nats://" + r.supervisor.Addr()}, KeyFile: r.seeds["fra1"]}})
	if err := f.Open(); err != nil {
		t.Fatal(err)
	}
	if err := f.loadOwn(); err != nil {
		t.Fatal(err)
	}
	if f.Whole() {
		t.Error("it counts as whole")
	}
	e := &edge{f, x, run(t, f.Run)}
	r.reaches(e)
	if !f.Whole() {
		t.Error("it does not count as whole in the end")
	}
}

func TestEdgeStartsWithoutReadingAll(t *testing.T) {
	r := newRig(t, "fra1")
	r.tree.commit(map[string]string{"acme.hcl": "one"})
	e := r.edge("fra1")
	r.reaches(e)
	e.stop()
	r.tree.commit(map[string]string{"acme.hcl": "two"})
	testrig.Eventually(t, "the authority has published", func() bool { return r.authority.Status(nil).Published == r.tree.Position().String() })
	again := r.edgeOn("fra1", e.tree)
	r.reaches(again)
	again.stop()
	third := r.edgeOn("fra1", e.tree)
	testrig.Eventually(t, "the edge follows", func() bool { return third.Status().Problem == "" })
	if s := third.Stats(); s.Listings != 0 {
		t.Errorf("an edge that has everything has read the bucket %d times", s.Listings)
	}
	r.tree.commit(map[string]string{"acme.hcl": "three"})
	r.reaches(third)
}

func TestDeletedBucketHeals(t *testing.T) {
	r := newRig(t, "fra1")
	r.tree.commit(map[string]string{"acme.hcl": "one", "b.hcl": "b"})
	e := r.edge("fra1")
	r.reaches(e)
	b := r.admin()
	if err := b.js.DeleteKeyValue(patient(t), Bucket("test")); err != nil {
		t.Fatal(err)
	}
	r.tree.commit(map[string]string{"acme.hcl": "two"})
	r.reaches(e)
	for _, c := range e.tree.applied {
		if len(c.Removed) > 0 {
			t.Errorf("generation %v removed %v", c.Position, c.Removed)
		}
	}
}

// TestBucketGoesBeforeTheNewsWasRead: the edge has been told of a message, and the bucket is replaced by one that is not
// that long before the edge reads it.
func TestBucketGoesBeforeTheNewsWasRead(t *testing.T) {
	r := newRig(t, "fra1")
	for i := range 20 {
		r.tree.commit(map[string]string{"acme.hcl": fmt.Sprint("write ", i)})
	}
	e := r.edge("fra1")
	r.reaches(e)
	e.told([]byte("1000000"))
	if err := r.admin().js.DeleteKeyValue(patient(t), Bucket("test")); err != nil {
		t.Fatal(err)
	}
	r.tree.commit(map[string]string{"acme.hcl": "last"})
	r.reaches(e)
}

func TestServerDiesAndItsFolderGoes(t *testing.T) {
	testrig.Thorough(t)
	r := newRig(t, "fra1")
	r.tree.commit(map[string]string{"acme.hcl": "one"})
	e := r.edge("fra1")
	r.reaches(e)
	for round := range 2 {
		starts := r.supervisor.Starts()
		if round == 0 {
			kill(t, r.supervisor.PID())
		} else if err := os.RemoveAll(r.dir + "/jetstream"); err != nil {
			t.Fatal(err)
		}
		r.tree.commit(map[string]string{"acme.hcl": fmt.Sprint("round ", round)})
		if err := r.authority.MayWrite(); err != nil {
			t.Error(err)
		}
		testrig.Eventually(t, "the server was started again", func() bool { return r.supervisor.Starts() > starts })
		r.reaches(e)
	}
}

func TestNewEpochIsTakenWhole(t *testing.T) {
	r := newRig(t, "fra1")
	r.tree.commit(map[string]string{"acme.hcl": "one", "b.hcl": "b"})
	r.tree.commit(map[string]string{"acme.hcl": "two"})
	e := r.edge("fra1")
	r.reaches(e)
	r.stop()
	old := r.tree
	r.tree = newTree()
	r.tree.commit(map[string]string{"acme.hcl": "zero", "b.hcl": "b"})
	r.startAuthority(AuthorityOptions{})
	r.reaches(e)
	last := e.tree.applied[len(e.tree.applied)-1]
	if len(last.Put) != 2 || last.Position.Epoch == old.position.Epoch {
		t.Errorf("the last change puts %d files at %v", len(last.Put), last.Position)
	}
}

func TestHeldBackIsTriedAgain(t *testing.T) {
	r := newRig(t, "fra1")
	r.tree.commit(map[string]string{"acme.hcl": "one"})
	e := r.edge("fra1")
	r.reaches(e)
	e.tree.refusing(errHeld)
	r.tree.commit(map[string]string{"acme.hcl": "", "b.hcl": "b"})
	testrig.Eventually(t, "the edge says why it does not follow", func() bool { return strings.Contains(e.Status().Problem, "held back") })
	r.tree.commit(map[string]string{"c.hcl": "c"})
	e.tree.refusing(nil)
	r.reaches(e)
}

func TestDamageOfTheOwnTreeHeals(t *testing.T) {
	r := newRig(t, "fra1")
	r.tree.commit(map[string]string{"acme.hcl": "one", "b.hcl": "b"})
	e := r.edge("fra1")
	r.reaches(e)
	e.stop()
	e.tree.mu.Lock()
	delete(e.tree.files, "b.hcl")
	e.tree.mu.Unlock()
	again := r.edgeOn("fra1", e.tree)
	r.reaches(again)
}

func TestGarbageIsRefused(t *testing.T) {
	testrig.Thorough(t)
	r := newRig(t, "fra1")
	r.tree.commit(map[string]string{"acme.hcl": "one", "b.hcl": "b"})
	e := r.edge("fra1")
	r.reaches(e)
	r.stop() // otherwise the authority mends it at once
	b := r.admin()
	b.putRaw(t, prefixFile+encodePath("acme.hcl"), []byte("garbage"))
	b.putRaw(t, prefixFile+encodePath("b.hcl"), nil)
	b.putRaw(t, prefixFile+"new", make([]byte, 7<<20))
	testrig.Eventually(t, "the edge names the three messages", func() bool { return len(e.Status().Refused) == 3 })
	if got, err := e.tree.TreeFile("acme.hcl"); err != nil || string(got.Bytes) != "one" {
		t.Errorf("it serves %q, %v", got.Bytes, err)
	}
	fresh := r.edge("fra1")
	testrig.Eventually(t, "a new edge names them too", func() bool { return len(fresh.Status().Refused) == 3 })
	r.tree.commit(map[string]string{"c.hcl": "c"})
	r.startAuthority(AuthorityOptions{})
	r.reaches(e)
	r.reaches(fresh)
	testrig.Eventually(t, "the authority has mended them", func() bool { return len(e.Status().Refused) == 0 && len(fresh.Status().Refused) == 0 })
}

func TestOtherBucketsAreRefused(t *testing.T) {
	testrig.Thorough(t)
	r := newRig(t, "fra1")
	r.tree.commit(map[string]string{"acme.hcl": "one"})
	e := r.edge("fra1")
	r.reaches(e)
	r.stop()
	b := r.admin()
	for _, format := range []string{"", "2"} {
		if err := b.js.DeleteKeyValue(patient(t), Bucket("test")); err != nil {
			t.Fatal(err)
		}
		config := kvConfig("test")
		want := "not made by fingerpost"
		delete(config.Metadata, metadataFormat)
		if format != "" {
			config.Metadata[metadataFormat], want = format, "of a newer release"
		}
		// The server answers a deletion before it has removed the stream's files, and refuses the same name until then.
		testrig.Eventually(t, "the bucket is recreated", func() bool {
			_, err := b.js.CreateKeyValue(patient(t), config)
			return err == nil
		})
		if err := r.newAuthority(AuthorityOptions{}).Claim(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the authority says %v, want %q", err, want)
		}
		testrig.Eventually(t, "the edge says "+want, func() bool { return strings.Contains(e.Status().Problem, want) })
	}
	if _, err := e.tree.TreeFile("acme.hcl"); err != nil {
		t.Error("the edge has dropped what it had:", err)
	}
}

func TestUnknownClusterAndKeys(t *testing.T) {
	testrig.Thorough(t)
	r := newRig(t, "fra1")
	r.tree.commit(map[string]string{"acme.hcl": "one"})
	stranger, _ := newKey(t)
	follow := func(name, cluster, key string) *edge {
		connection := Connection{URLs: []string{"nats://" + r.supervisor.Addr()}, KeyFile: key}
		return startEdge(t, FollowerOptions{Edge: name, Cluster: cluster, Connection: connection}, newTree())
	}
	for want, e := range map[string]*edge{
		"refuses the key": follow("fra1", "test", stranger),
		`"prod"`:          follow("fra1", "prod", r.seeds["fra1"]),
		`"ams1"`:          follow("ams1", "test", r.seeds["fra1"]),
	} {
		testrig.Eventually(t, "an edge names "+want, func() bool { return strings.Contains(e.Status().Problem, want) })
	}
}

func TestRevokedEdgeIsCutOff(t *testing.T) {
	r := newRig(t, "fra1", "ams1")
	r.tree.commit(map[string]string{"acme.hcl": "one"})
	fra, ams := r.edge("fra1"), r.edge("ams1")
	r.reaches(fra)
	r.reaches(ams)
	if err := r.supervisor.SetEdges(map[string]string{"ams1": r.publics["ams1"]}); err != nil {
		t.Fatal(err)
	}
	testrig.Eventually(t, "the revoked edge has lost its connection", func() bool { return !fra.Status().Connected })
	r.tree.commit(map[string]string{"acme.hcl": "two"})
	r.reaches(ams)
	if got, _ := fra.tree.TreeFile("acme.hcl"); string(got.Bytes) != "one" {
		t.Errorf("the revoked edge has got %q", got.Bytes)
	}
	if err := r.supervisor.SetEdges(r.publics); err != nil {
		t.Fatal(err)
	}
	r.reaches(fra)
}

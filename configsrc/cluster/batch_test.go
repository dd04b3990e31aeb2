package cluster

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"fingerpost/cmd/testrig"
)

// batchOf makes messages that put files.
func batchOf(n int) (messages []message) {
	for i := range n {
		messages = append(messages, message{fmt.Sprintf("%sb%d", prefixFile, i), []byte("x")})
	}
	return messages
}

// TestFencedPut: of what an authority puts that somebody else has overtaken by one message, nothing is taken.
func TestFencedPut(t *testing.T) {
	r := newRig(t)
	r.stop()
	a := r.newAuthority(AuthorityOptions{})
	if err := a.Claim(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := a.put(t.Context(), batchOf(maxBatch+minBatch)); err != nil { // two batches
		t.Fatal(err)
	}
	b := r.admin()
	b.putRaw(t, keyLease, []byte("{}"))
	before, err := b.state(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{1, 2, minBatch - 1, minBatch} {
		if err := a.put(t.Context(), batchOf(n)); !errors.Is(err, errFenced) {
			t.Errorf("a put of %d says %v", n, err)
		}
		if after, err := b.state(t.Context()); err != nil || after.last != before.last {
			t.Errorf("after a put of %d: the stream ended at %d, and ends at %d (%v)", n, before.last, after.last, err)
		}
	}
	a.nc.Close()
}

// TestBucketWithoutBatches: earlier releases made the bucket without atomic batches.
func TestBucketWithoutBatches(t *testing.T) {
	r := newRig(t, "fra1")
	r.stop()
	b := r.admin()
	if err := b.js.DeleteKeyValue(patient(t), Bucket("test")); err != nil {
		t.Fatal(err)
	}
	// For a moment the server still removes the folder of the former bucket, and cannot make it again.
	testrig.Eventually(t, "the bucket can be made", func() bool { return b.make(t.Context()) == nil })
	r.tree.commit(manyFiles(2 * minBatch))
	r.startAuthority(AuthorityOptions{})
	r.reaches(r.edge("fra1"))
	if st, err := b.state(t.Context()); err != nil || !st.batches {
		t.Errorf("it takes batches: %t (%v)", st.batches, err)
	}
}

func manyFiles(n int) map[string]string {
	files := map[string]string{}
	for i := range n {
		files[fmt.Sprintf("p%04d.hcl", i)] = fmt.Sprint("file ", i)
	}
	return files
}

// TestServerKilledAmongBatches: the server is killed while a tree of many batches goes out. The edge has all of it in the
// end, and nothing before.
func TestServerKilledAmongBatches(t *testing.T) {
	testrig.Thorough(t)
	r := newRig(t, "fra1")
	r.tree.commit(map[string]string{"acme.hcl": "one"})
	e := r.edge("fra1")
	r.reaches(e)
	b := r.admin()
	before, err := b.state(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r.tree.commit(manyFiles(20 * maxBatch))
	testrig.Eventually(t, "a batch has gone out", func() bool {
		st, err := b.state(t.Context())
		return err == nil && st.last > before.last+maxBatch
	})
	kill(t, r.supervisor.PID())
	r.reaches(e)
	e.tree.mu.Lock()
	defer e.tree.mu.Unlock()
	if n := len(e.tree.applied); n != 2 {
		t.Errorf("the edge has applied %d generations", n)
	}
}

// TestWriteIsReadOneByOne: an edge asks for no batch after a write. The server would look at every subject of the bucket.
func TestWriteIsReadOneByOne(t *testing.T) {
	r := newRig(t, "fra1")
	r.tree.commit(manyFiles(2 * fewMessages))
	e := r.edge("fra1")
	r.reaches(e)
	b := r.admin()
	asked, err := b.nc.SubscribeSync(directGet("test"))
	if err == nil {
		err = b.nc.Flush()
	}
	if err != nil {
		t.Fatal(err)
	}
	r.tree.commit(map[string]string{"acme.hcl": "one"})
	r.reaches(e)
	if err := b.nc.Flush(); err != nil {
		t.Fatal(err)
	}
	n, _, err := asked.Pending()
	if n < 2 || err != nil { // the file and the marker
		t.Errorf("the edge has asked %d times (%v)", n, err)
	}
	for range n {
		if m, err := asked.NextMsg(testrig.Patience); err != nil || strings.Contains(string(m.Data), "batch") {
			t.Errorf("it has asked for %s (%v)", m.Data, err)
		}
	}
}

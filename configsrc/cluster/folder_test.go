package cluster

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"fingerpost/cmd/testrig"
)

// fillBlocks commits files that take several of the files that the server keeps messages in.
func (r *rig) fillBlocks() {
	files := map[string]string{"acme.hcl": "one"}
	noise := make([]byte, 1<<20)
	for i := range 20 {
		rand.Read(noise)
		files[fmt.Sprintf("mail/large%d.html", i)] = string(noise)
	}
	r.tree.commit(files)
	r.tree.commit(map[string]string{"acme.hcl": "two"})
}

// blocks returns the files with the stream's messages, the newest last.
func (r *rig) blocks() []string {
	r.t.Helper()
	blocks, err := filepath.Glob(r.dir + "/jetstream/fingerpost/streams/*/msgs/*.blk")
	if err != nil || len(blocks) == 0 || len(blocks) > 9 { // 10.blk would come before 2.blk
		r.t.Fatalf("%d files: %v", len(blocks), err)
	}
	return blocks
}

func (r *rig) remove(files ...string) {
	r.t.Helper()
	for _, file := range files {
		if err := os.RemoveAll(file); err != nil {
			r.t.Fatal(err)
		}
	}
}

func (r *rig) startsAgain(starts int) {
	r.t.Helper()
	testrig.Eventually(r.t, "the server was started again", func() bool { return r.supervisor.Starts() > starts && r.supervisor.PID() != 0 })
}

// TestFilesOfTheServerGo: a running server notices nothing until somebody reads messages that it has in a file which is
// gone. It leaves them out then, so a new edge would wait for ever.
func TestFilesOfTheServerGo(t *testing.T) {
	testrig.Thorough(t)
	r := newRig(t, "fra1", "ams1")
	r.fillBlocks()
	fra := r.edge("fra1")
	r.reaches(fra)
	blocks := r.blocks()
	r.remove(blocks[:len(blocks)-1]...)
	r.reaches(r.edge("ams1"))
	r.tree.commit(map[string]string{"acme.hcl": "three"})
	r.reaches(fra)
}

// TestFilesGoWhileTheServerIsDown: it starts with the rest, and its stream ends where it did, so the last sequence alone
// tells the authority nothing.
func TestFilesGoWhileTheServerIsDown(t *testing.T) {
	testrig.Thorough(t)
	r := newRig(t, "fra1", "ams1")
	r.fillBlocks()
	fra := r.edge("fra1")
	r.reaches(fra)
	blocks, starts := r.blocks(), r.supervisor.Starts()
	kill(t, r.supervisor.PID())
	r.remove(blocks[:len(blocks)-1]...)
	r.startsAgain(starts)
	r.reaches(r.edge("ams1"))
	r.reaches(fra)
}

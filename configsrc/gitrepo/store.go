package gitrepo

import (
	"os"
	"path/filepath"
)

// blobWriters is how many files of a commit are stored at the same time.
const blobWriters = 8

// A store is git's objects and refs, read and written by the git command. What a ref names is on the disk before the
// ref is. Its methods are not for concurrent use, but for those of its command.
type store struct {
	*command
	gitDir    string
	digits    int      // of an object's name
	committer []string // the variables of the committer: the service
	signKey   string   // signs commits; "": none

	objects objectFolder
	reader  helper              // cat-file --batch
	trees   helper              // hash-object -t tree -w --stdin-paths
	blobs   [blobWriters]helper // hash-object -w --stdin-paths
}

// open starts to use the objects of a repository, whose gitDir and digits are known.
func (g *store) open() error {
	g.reader = helper{git: g.command, args: []string{"cat-file", "--batch"}}
	g.trees = helper{git: g.command, args: []string{"hash-object", "-t", "tree", "-w", "--no-filters", "--stdin-paths"}}
	for i := range g.blobs {
		g.blobs[i] = helper{git: g.command, args: []string{"hash-object", "-w", "--no-filters", "--stdin-paths"}}
	}
	g.objects.dir, g.objects.unsynced = filepath.Join(g.gitDir, "objects"), map[string]bool{}
	return os.WriteFile(g.treeFile(), nil, 0o600)
}

// close ends git's helpers.
func (g *store) close() {
	g.reader.close()
	g.trees.close()
	for i := range g.blobs {
		g.blobs[i].close()
	}
	g.held.Close()
}

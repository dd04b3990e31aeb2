package gitrepo

import (
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
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

// open starts to use the objects of a repository, whose gitDir is known.
func (g *store) open(ctx context.Context) error {
	format, err := g.run(ctx, "rev-parse", "--show-object-format")
	if err != nil {
		return err
	}
	g.digits = hex.EncodedLen(sha1.Size)
	if format == "sha256" {
		g.digits = hex.EncodedLen(sha256.Size)
	}
	g.reader = helper{git: g.command, args: []string{"cat-file", "--batch"}}
	g.trees = helper{git: g.command, args: []string{"hash-object", "-t", "tree", "-w", "--no-filters", "--stdin-paths"}}
	for i := range g.blobs {
		g.blobs[i] = helper{git: g.command, args: []string{"hash-object", "-w", "--no-filters", "--stdin-paths"}}
	}
	g.objects.dir, g.objects.unsynced = filepath.Join(g.gitDir, "objects"), map[string]bool{}
	return os.WriteFile(g.treeFile(), nil, 0o600)
}

// objectID returns git's name for an object.
func (g *store) objectID(kind string, content []byte) string {
	var h hash.Hash = sha1.New()
	if g.digits == hex.EncodedLen(sha256.Size) {
		h = sha256.New()
	}
	fmt.Fprintf(h, "%s %d\x00", kind, len(content))
	h.Write(content)
	return hex.EncodeToString(h.Sum(nil))
}

// sync makes all objects that were made durable.
func (g *store) sync() error { return g.objects.sync() }

// fetch runs git fetch, and notes for sync which objects it has brought.
func (g *store) fetch(ctx context.Context, args ...string) error {
	before := g.objects.times()
	_, err := g.call(ctx, remoteLimit, nil, nil, args...)
	g.objects.changedSince(before)
	return err
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

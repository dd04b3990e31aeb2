package plumbing

import (
	"context"
	"crypto/sha1" //nolint:gosec // see where it is used
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"os"
	"path/filepath"
	"sync"
)

// blobWriters is how many files of a commit are stored at the same time.
const blobWriters = 8

// A Store is git's objects and refs, read and written by the git command. What a ref names is on the disk before the
// ref is. What reads, and what makes objects, is safe for concurrent use; refs are changed by one caller at a time.
type Store struct {
	*Command
	GitDir    string
	digits    int      // of an object's name
	Committer []string // the variables of the committer: the service
	SignKey   string   // signs commits; "": none

	locks   lockRecord
	objects objectFolder
	storing sync.Mutex          // held while treeFile is in use
	reader  helper              // cat-file --batch
	trees   helper              // hash-object -t tree -w --stdin-paths
	blobs   [blobWriters]helper // hash-object -w --stdin-paths
}

// Open starts to use the objects of a repository, whose GitDir is known. It writes nothing.
func (g *Store) Open(ctx context.Context) error {
	format, err := g.Run(ctx, "rev-parse", "--show-object-format")
	if err != nil {
		return err
	}
	g.digits = hex.EncodedLen(sha1.Size)
	if format == "sha256" {
		g.digits = hex.EncodedLen(sha256.Size)
	}
	g.reader.git, g.reader.args = g.Command, []string{"cat-file", "--batch"}
	g.trees.git, g.trees.args = g.Command, []string{"hash-object", "-t", "tree", "-w", "--no-filters", "--stdin-paths"}
	for i := range g.blobs {
		g.blobs[i].git, g.blobs[i].args = g.Command, []string{"hash-object", "-w", "--no-filters", "--stdin-paths"}
	}
	g.objects.dir, g.objects.unsynced = filepath.Join(g.GitDir, "objects"), map[string]bool{}
	g.locks.gitDir = g.GitDir
	return nil
}

// OpenForWrites makes the files that writes need, removes the locks of refs that the gits of an earlier process have
// left behind, and returns these. Before it has succeeded, no ref can be changed.
func (g *Store) OpenForWrites() (removed []string, err error) {
	if err := os.WriteFile(g.treeFile(), nil, 0o600); err != nil {
		return nil, err
	}
	return g.locks.start()
}

// ID returns git's name for an object.
func (g *Store) ID(kind string, content []byte) string {
	var h hash.Hash = sha1.New() //nolint:gosec // git names objects so
	if g.digits == hex.EncodedLen(sha256.Size) {
		h = sha256.New()
	}
	fmt.Fprintf(h, "%s %d\x00", kind, len(content))
	h.Write(content)
	return hex.EncodeToString(h.Sum(nil))
}

// Sync puts all objects that were made, and all refs that were changed, on the disk.
func (g *Store) Sync() error { return g.objects.sync() }

// Fetch runs git fetch, which sets a ref, and notes for Sync which objects it has brought.
func (g *Store) Fetch(ctx context.Context, ref string, args ...string) error {
	before := g.objects.times()
	_, err := g.Remote(ctx, []string{ref}, args...)
	g.objects.changedSince(before)
	return err
}

// Remote runs a git that speaks with a remote and may set refs, and returns what it prints.
func (g *Store) Remote(ctx context.Context, refs []string, args ...string) ([]byte, error) {
	end, err := g.locks.begin(locksOf(refs...)...)
	if err != nil {
		return nil, fmt.Errorf("note the locks of git %s: %w", args[0], err)
	}
	out, err := g.Call(ctx, RemoteLimit, nil, nil, args...)
	end(err)
	return out, err
}

// Close ends git's helpers, and closes the file of Share.
func (g *Store) Close() {
	g.reader.close()
	g.trees.close()
	for i := range g.blobs {
		g.blobs[i].close()
	}
	g.locks.close()
	g.shared.Close()
}

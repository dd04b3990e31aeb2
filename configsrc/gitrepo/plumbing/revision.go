package plumbing

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"strconv"
	"strings"
)

// ErrRevision is wrapped by errors of Extract that say that the revision, or the folder, is not what was meant.
var ErrRevision = errors.New("no such revision of the folder")

// Extract writes the files below a folder of a work tree, as a revision has them, into an existing folder, and returns
// the commit. It reads objects only, never the index or the work tree. A revision with links or submodules below the
// folder is refused: what they lead to is not in it.
func Extract(ctx context.Context, dir, revision, to string) (commit string, err error) {
	if _, err := exec.LookPath("git"); err != nil {
		return "", fmt.Errorf("read a revision: the git command is needed: %w", err)
	}
	if revision == "" || revision[0] == '-' {
		return "", fmt.Errorf("%w: %q is no name of one; a branch, a tag or a commit is, such as origin/main", ErrRevision,
			revision)
	}
	git := NewCommand(dir, false)
	if inside, err := git.Run(ctx, "rev-parse", "--is-inside-work-tree"); err != nil {
		return "", fmt.Errorf("%w: %s is in no work tree that git reads: %w", ErrRevision, dir, err)
	} else if inside != "true" {
		return "", fmt.Errorf("%w: %s is in a bare repository, which has no work tree to compare", ErrRevision, dir)
	}
	prefix, err := git.Run(ctx, "rev-parse", "--show-prefix")
	if err != nil {
		return "", err
	}
	if commit, err = git.Run(ctx, "rev-parse", "--verify", "--quiet", revision+"^{commit}"); err != nil {
		return "", fmt.Errorf("%w: git knows no commit by %q; fetch it first, if it is a branch of a remote", ErrRevision,
			revision)
	}
	blobs, err := git.blobsBelow(ctx, commit, prefix)
	if err != nil {
		return "", err
	}
	if len(blobs) == 0 {
		if _, err := git.Run(ctx, "check-ignore", "-q", "--", "fingerpost-check.hcl"); err == nil {
			return "", fmt.Errorf("%w: git ignores the files of %s, so that no revision has them; take the pattern out of "+
				".gitignore", ErrRevision, dir)
		}
	}
	return commit, git.writeBlobs(ctx, blobs, to)
}

// A namedBlob is a file of a commit.
type namedBlob struct{ id, path string }

// blobsBelow lists the files of a commit below a folder, which ends in a slash or is the root: "".
func (c *Command) blobsBelow(ctx context.Context, commit, prefix string) (blobs []namedBlob, err error) {
	args := []string{"ls-tree", "-r", "-z", "--full-tree", commit}
	if prefix != "" {
		args = append(args, "--", prefix)
	}
	out, err := c.Call(ctx, LocalLimit, nil, nil, args...)
	if err != nil {
		return nil, err
	}
	var odd []string
	for line := range bytes.SplitSeq(bytes.TrimSuffix(out, []byte{0}), []byte{0}) {
		head, name, found := strings.Cut(string(line), "\t")
		fields := strings.Fields(head)
		if !found || len(fields) != 3 {
			continue // there is no file
		}
		name = strings.TrimPrefix(name, prefix)
		switch mode := fields[0]; mode {
		case "100644", "100755":
			blobs = append(blobs, namedBlob{fields[2], name})
		default:
			odd = append(odd, name)
		}
	}
	if len(odd) > 0 {
		return nil, fmt.Errorf("%w: links and submodules are not followed: %s", ErrRevision, strings.Join(odd, ", "))
	}
	return blobs, nil
}

// writeBlobs writes files into a folder.
func (c *Command) writeBlobs(ctx context.Context, blobs []namedBlob, to string) error {
	root, err := os.OpenRoot(to)
	if err != nil {
		return err
	}
	defer root.Close()
	ctx, cancel := context.WithTimeout(ctx, LocalLimit)
	defer cancel()
	var names bytes.Buffer
	for _, b := range blobs {
		names.WriteString(b.id + "\n")
	}
	cmd := c.make(ctx, nil, "cat-file", "--batch")
	cmd.Stdin = &names
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("git cat-file: %w", err)
	}
	in := bufio.NewReader(out)
	for _, b := range blobs {
		if err = copyBlob(in, root, b); err != nil {
			cancel()
			break
		}
	}
	return errors.Join(err, cmd.Wait())
}

// copyBlob copies one answer of cat-file --batch to a file.
func copyBlob(in *bufio.Reader, root *os.Root, b namedBlob) error {
	head, err := in.ReadString('\n')
	if err != nil {
		return fmt.Errorf("git cat-file: %w", err)
	}
	fields := strings.Fields(head)
	if len(fields) != 3 || fields[1] != "blob" {
		return fmt.Errorf("git cat-file: %s: %s", b.path, strings.TrimSpace(head))
	}
	size, err := strconv.ParseInt(fields[2], 10, 64)
	if err != nil {
		return fmt.Errorf("git cat-file: %w", err)
	}
	if err := root.MkdirAll(path.Dir(b.path), 0o700); err != nil {
		return err
	}
	f, err := root.OpenFile(b.path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.CopyN(f, in, size)
	_, skipped := in.Discard(1) // the line end after the content
	return errors.Join(err, skipped, f.Close())
}

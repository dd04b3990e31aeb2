package configsrc_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"fingerpost/cmd/testrig"
)

// keyFile declares a key.
func keyFile(name, id string) string {
	return fmt.Sprintf("key %q {\n  id    = %q\n  hash  = \"sha256:%064d\"\n  allow = [\"resolve\"]\n}\n", name, id, 7)
}

// TestKeyIDIsTakenAfterRestart: the owner of a key's public id is known even for files that a start does not read.
func TestKeyIDIsTakenAfterRestart(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	dir, data := t.TempDir(), t.TempDir()
	write(t, filepath.Join(dir, "a.hcl"), keyFile("first", "31g45atf"))
	write(t, filepath.Join(dir, "b.hcl"), keyFile("second", "7k2m9q4x"))
	newNode(t, dir, nodeOptions{data: data, loadOnly: true}).stop()

	n := newNode(t, dir, nodeOptions{data: data})
	write(t, filepath.Join(dir, "c.hcl"), keyFile("third", "31g45atf"))
	n.problem("c.hcl", `"31g45atf"`)
	write(t, filepath.Join(dir, "c.hcl"), keyFile("third", "9zuhf3ab"))
	n.until("an id of its own is taken", func() bool { return len(n.source.Status().Problems) == 0 })
}

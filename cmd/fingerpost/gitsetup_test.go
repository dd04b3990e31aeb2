package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fingerpost/cmd/fingerpost/cli"
	"fingerpost/cmd/testrig"
)

// TestGitSetups: a repository that --git cannot work with is told at the start, with what to do.
func TestGitSetups(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	testrig.Need(t, "git")
	base := idleRig(t, t.TempDir(), nil)
	git := func(dir string, args ...string) {
		t.Helper()
		testrig.Git(t, dir, append([]string{"-c", "protocol.file.allow=always"}, args...)...)
	}
	git(base.dir, "init", "-q", "-b", "main")
	git(base.dir, "add", "projects.d")
	git(base.dir, "commit", "-qm", "one")
	git(base.dir, "commit", "-qm", "two", "--allow-empty")
	refused := func(name, folder, path string, want ...string) {
		t.Helper()
		cmd := base.command(t.Context(), "serve", "--git", "--config", folder, "--data", filepath.Join(t.TempDir(), "store"), "--listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0")
		if path != "" {
			cmd.Env = append(cmd.Env, "PATH="+path)
		}
		out, err := cmd.CombinedOutput()
		if err == nil || cmd.ProcessState.ExitCode() != cli.ExitFailed {
			t.Errorf("%s: it ended with %v", name, err)
		}
		for _, w := range want {
			if !strings.Contains(string(out), w) {
				t.Errorf("%s: it does not say %q:\n%s", name, w, out)
			}
		}
	}
	at := func(elements ...string) string { return filepath.Join(append([]string{t.TempDir()}, elements...)...) }

	shallow := at("shallow")
	git(base.dir, "clone", "-q", "--depth", "1", "file://"+base.dir, shallow)
	refused("shallow", filepath.Join(shallow, "projects.d"), "", "the clone is shallow", "git fetch --unshallow")

	tree := at("tree")
	git(base.dir, "worktree", "add", "-q", tree, "-b", "other")
	refused("worktree", filepath.Join(tree, "projects.d"), "", "linked worktree")

	super := at()
	git(super, "init", "-q")
	git(super, "submodule", "--quiet", "add", "file://"+base.dir, "config")
	refused("submodule", filepath.Join(super, "config", "projects.d"), "", "in a submodule")

	bare := at("bare.git")
	git(base.dir, "clone", "-q", "--bare", ".", bare)
	must(t, os.CopyFS(filepath.Join(bare, "projects.d"), os.DirFS(base.path("."))))
	refused("bare", filepath.Join(bare, "projects.d"), "", "is bare", "a clone with a work tree")

	fake := at()
	must(t, os.WriteFile(filepath.Join(fake, "git"), []byte("#!/bin/sh\necho git version 2.30.1\n"), 0o755))
	refused("old git", base.path("."), fake, "2.39 or later", "2.30.1")
	refused("no git", base.path("."), at(), "needs the git command, 2.39 or later")

	if os.Geteuid() == 0 { // only root can give files away
		foreign := at("foreign")
		git(base.dir, "clone", "-q", ".", foreign)
		must(t, filepath.WalkDir(foreign, func(path string, _ fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			return os.Lchown(path, 65534, 65534)
		}))
		refused("another user's", filepath.Join(foreign, "projects.d"), "", "belongs to another user", "safe.directory "+foreign)
	}
}

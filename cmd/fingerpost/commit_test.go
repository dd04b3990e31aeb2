package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A checkout is a person's git repository with the config folder in it.
type checkout struct {
	t   testing.TB
	dir string
}

// newCheckout has one commit on its branch, main, unless unborn.
func newCheckout(t testing.TB, unborn bool) *checkout {
	t.Helper()
	needGit(t)
	c := &checkout{t, t.TempDir()}
	c.git("init", "-q", "-b", "main")
	c.write("projects.d/a.hcl", "a 1\n")
	c.write("notes.txt", "notes\n")
	c.write("code.txt", "code\n")
	if !unborn {
		c.git("add", "-A")
		c.git("commit", "-qm", "start")
	}
	return c
}

func needGit(t testing.TB) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip("needs git: ", err)
	}
}

// gitCommand is git as a person uses it, without this machine's settings.
func gitCommand(dir string, args ...string) *exec.Cmd {
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GIT_CONFIG_GLOBAL=" + os.DevNull, "GIT_CONFIG_NOSYSTEM=1", "GIT_EDITOR=true",
		"GIT_AUTHOR_NAME=A Person", "GIT_AUTHOR_EMAIL=person@example.org", "GIT_COMMITTER_NAME=A Person", "GIT_COMMITTER_EMAIL=person@example.org"}
	return cmd
}

func (c *checkout) try(args ...string) (string, error) {
	out, err := gitCommand(c.dir, args...).CombinedOutput()
	return string(out), err
}

func (c *checkout) git(args ...string) string {
	c.t.Helper()
	out, err := c.try(args...)
	if err != nil {
		c.t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return out
}

func (c *checkout) write(name, text string) {
	c.t.Helper()
	name = filepath.Join(c.dir, name)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		c.t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		c.t.Fatal(err)
	}
}

// script runs the README's script as --after-write runs it after writes to these files. more is for its environment.
func (c *checkout) script(more []string, paths ...string) (string, error) {
	c.t.Helper()
	cmd := exec.Command("sh", "-c", readmeCommand(c.t))
	cmd.Dir = filepath.Join(c.dir, "projects.d")
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + c.dir, "GIT_CONFIG_GLOBAL=" + os.DevNull, "FINGERPOST_CONFIG=" + cmd.Dir,
		"FINGERPOST_PATHS=" + strings.Join(paths, "\n"), "FINGERPOST_KEYS=ci desk", "FINGERPOST_REQUEST_IDS=r1 r2"}, more...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (c *checkout) commits(paths ...string) {
	c.t.Helper()
	if out, err := c.script(nil, paths...); err != nil {
		c.t.Fatalf("the script: %v\n%s", err, out)
	}
}

// refuses runs the script in a state in which it must change nothing and say why.
func (c *checkout) refuses(why string, paths ...string) {
	c.t.Helper()
	before := c.state()
	out, err := c.script(nil, paths...)
	if err == nil || !strings.Contains(out, why) {
		c.t.Errorf("the script: %v, %q, want an error that says %q", err, out, why)
	}
	c.is("after a refusal", c.state(), before)
}

// state returns everything that the script must not change when it refuses.
func (c *checkout) state() string {
	head, _ := c.try("log", "--format=%H", "-1", "HEAD", "--")
	return head + c.git("status", "--porcelain=v2", "--branch") + c.git("ls-files", "-s")
}

func (c *checkout) is(what, got, want string) {
	c.t.Helper()
	if got != want {
		c.t.Errorf("%s:\n%s\nwant\n%s", what, got, want)
	}
}

// last names the author and the files of the last commit.
func (c *checkout) last() string {
	c.t.Helper()
	return c.git("log", "-1", "--root", "--format=%an", "--name-status")
}

// TestCommitScript: the script for --after-write in every state in which people leave a checkout.
func TestCommitScript(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts git some hundred times")
	}
	t.Parallel()
	t.Run("a person commits other files in between", func(t *testing.T) {
		c := newCheckout(t, false)
		c.write("projects.d/a.hcl", "a 2\n")
		c.commits("a.hcl")
		c.write("notes.txt", "more\n")
		c.git("commit", "-qam", "by a person")
		c.write("projects.d/a.hcl", "a 3\n")
		c.commits("a.hcl")
		c.is("last", c.last(), "fingerpost\n\nM\tprojects.d/a.hcl\n")
		c.is("HEAD", c.git("show", "HEAD:notes.txt")+c.git("show", "HEAD:projects.d/a.hcl"), "more\na 3\n")
		c.is("status", c.git("status", "--porcelain"), "")
		if body := c.git("log", "-1", "--format=%B"); body != "written by ci desk\n\na.hcl\n\nRequests: r1 r2\n\n" {
			t.Errorf("message %q", body)
		}
	})
	t.Run("what a person has staged stays theirs", func(t *testing.T) {
		c := newCheckout(t, false)
		c.write("notes.txt", "staged\n")
		c.write("new.txt", "staged\n")
		c.git("add", "notes.txt", "new.txt")
		c.write("code.txt", "not staged\n")
		c.write("projects.d/a.hcl", "a 2\n")
		c.write("projects.d/b.hcl", "b 1\n")
		c.commits("a.hcl", "b.hcl")
		c.is("last", c.last(), "fingerpost\n\nM\tprojects.d/a.hcl\nA\tprojects.d/b.hcl\n")
		c.is("status", c.git("status", "--porcelain"), " M code.txt\nA  new.txt\nM  notes.txt\n")
		// The person's commit reverts nothing.
		c.git("commit", "-qm", "by a person")
		c.is("last", c.last(), "A Person\n\nA\tnew.txt\nM\tnotes.txt\n")
		c.is("HEAD", c.git("show", "HEAD:projects.d/a.hcl")+c.git("show", "HEAD:projects.d/b.hcl"), "a 2\nb 1\n")
	})
	t.Run("an edit in the same file goes along", func(t *testing.T) {
		c := newCheckout(t, false)
		c.write("projects.d/a.hcl", "a 1\n# staged by a person\n")
		c.git("add", "-A")
		c.write("projects.d/a.hcl", "a 2\n# staged by a person\n")
		c.commits("a.hcl")
		c.is("HEAD", c.git("show", "HEAD:projects.d/a.hcl"), "a 2\n# staged by a person\n")
		c.is("status", c.git("status", "--porcelain"), "")
	})
	t.Run("deleted, here and gone, odd names", func(t *testing.T) {
		c := newCheckout(t, false)
		if err := os.Remove(filepath.Join(c.dir, "projects.d/a.hcl")); err != nil {
			t.Fatal(err)
		}
		odd := []string{`"quoted".hcl`, "-dash.hcl", "a b.hcl", "*.hcl", ":(glob)x.hcl", "deep/ü.hcl", "$(touch evil).hcl"}
		for _, name := range odd {
			c.write("projects.d/"+name, name)
		}
		c.commits(append(odd, "a.hcl", "brief.hcl")...)
		c.is("status", c.git("status", "--porcelain"), "")
		c.is("HEAD", c.git("-c", "core.quotePath=false", "ls-tree", "-rz", "--name-only", "HEAD", "projects.d"),
			"projects.d/"+strings.Join([]string{`"quoted".hcl`, "$(touch evil).hcl", "*.hcl", "-dash.hcl", ":(glob)x.hcl", "a b.hcl", "deep/ü.hcl"}, "\x00projects.d/")+"\x00")
	})
	t.Run("nothing has changed", func(t *testing.T) {
		c := newCheckout(t, false)
		before := c.state()
		c.commits("a.hcl", "brief.hcl")
		c.is("state", c.state(), before)
	})
	t.Run("no commit yet", func(t *testing.T) {
		c := newCheckout(t, true)
		c.commits("brief.hcl")
		if out, err := c.try("rev-parse", "-q", "--verify", "HEAD"); err == nil {
			t.Errorf("an empty commit: %s", out)
		}
		c.git("add", "notes.txt")
		c.commits("a.hcl")
		c.is("last", c.last(), "fingerpost\n\nA\tprojects.d/a.hcl\n")
		c.is("status", c.git("status", "--porcelain"), "A  notes.txt\n?? code.txt\n")
	})
	t.Run("detached", func(t *testing.T) {
		c := newCheckout(t, false)
		c.git("checkout", "-q", "--detach")
		c.write("projects.d/a.hcl", "a 2\n")
		c.refuses("HEAD is detached: check out a branch", "a.hcl")
		c.git("checkout", "-q", "main")
		c.commits("a.hcl")
		c.is("main", c.git("show", "main:projects.d/a.hcl"), "a 2\n")
	})
	t.Run("merge and rebase", func(t *testing.T) {
		c := newCheckout(t, false)
		c.git("checkout", "-qb", "side")
		c.write("code.txt", "side\n")
		c.git("commit", "-qam", "side")
		c.git("checkout", "-q", "main")
		c.write("code.txt", "main\n")
		c.git("commit", "-qam", "main")
		c.write("projects.d/b.hcl", "b\n")
		for _, command := range [][]string{{"merge", "side"}, {"cherry-pick", "side"}, {"revert", "HEAD~1"}, {"rebase", "side"}} {
			if out, err := c.try(command...); err == nil {
				t.Fatalf("git %v: no conflict: %s", command, out)
			}
			c.refuses("is not finished", "b.hcl")
			c.git(command[0], "--abort")
		}
		c.commits("b.hcl")
		c.is("last", c.last(), "fingerpost\n\nA\tprojects.d/b.hcl\n")
	})
	t.Run("git is at work", func(t *testing.T) {
		c := newCheckout(t, false)
		c.write("projects.d/a.hcl", "a 2\n")
		c.write(".git/index.lock", "a person's")
		out, err := c.script(nil, "a.hcl")
		if err == nil || !strings.Contains(out, "index.lock") {
			t.Errorf("the script: %v\n%s", err, out)
		}
		if b, err := os.ReadFile(filepath.Join(c.dir, ".git/index.lock")); err != nil || string(b) != "a person's" {
			t.Errorf("the lock: %v, %q", err, b)
		}
		c.is("last", c.last(), "A Person\n\nA\tcode.txt\nA\tnotes.txt\nA\tprojects.d/a.hcl\n")
	})
	t.Run("the branch moves meanwhile", func(t *testing.T) {
		c := newCheckout(t, false)
		c.write("projects.d/a.hcl", "a 2\n")
		// As a push into this repository does, which takes no lock on the index.
		bin := t.TempDir()
		real := lookPath(t, "git")
		wrapper := "#!/bin/sh\ncase \" $* \" in *\" update-ref \"*) " + real + " update-ref refs/heads/main \"$MOVED\" || exit 99;; esac\nexec " + real + " \"$@\"\n"
		if err := os.WriteFile(filepath.Join(bin, "git"), []byte(wrapper), 0o755); err != nil {
			t.Fatal(err)
		}
		moved := strings.TrimSpace(c.git("commit-tree", "HEAD^{tree}", "-p", "HEAD", "-m", "pushed"))
		out, err := c.script([]string{"PATH=" + bin + ":" + os.Getenv("PATH"), "MOVED=" + moved}, "a.hcl")
		if err == nil || !strings.Contains(out, "main") {
			t.Errorf("the script: %v\n%s", err, out)
		}
		c.is("main", strings.TrimSpace(c.git("rev-parse", "main")), moved)
		c.is("status", c.git("status", "--porcelain"), " M projects.d/a.hcl\n")
		c.commits("a.hcl")
		c.is("subjects", c.git("log", "--format=%s"), "written by ci desk\npushed\nstart\n")
	})
	t.Run("hooks and environment", func(t *testing.T) {
		c := newCheckout(t, false)
		for _, hook := range []string{"pre-commit", "commit-msg", "post-commit", "reference-transaction", "post-index-change"} {
			c.write(".git/hooks/"+hook, "#!/bin/sh\necho "+hook+" >>"+c.dir+"/hooked\nexit 1\n")
			if err := os.Chmod(filepath.Join(c.dir, ".git/hooks", hook), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		c.write("projects.d/a.hcl", "a 2\n")
		elsewhere := t.TempDir()
		out, err := c.script([]string{"GIT_DIR=" + elsewhere, "GIT_WORK_TREE=" + elsewhere, "GIT_INDEX_FILE=" + elsewhere + "/index", "GIT_AUTHOR_NAME=Nobody",
			"GIT_COMMITTER_DATE=2001-01-01T00:00:00Z", "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=core.worktree", "GIT_CONFIG_VALUE_0=" + elsewhere}, "a.hcl")
		if err != nil {
			t.Fatalf("the script: %v\n%s", err, out)
		}
		if b, err := os.ReadFile(filepath.Join(c.dir, "hooked")); err == nil {
			t.Errorf("hooks ran: %s", b)
		}
		if err := os.RemoveAll(filepath.Join(c.dir, ".git/hooks")); err != nil {
			t.Fatal(err)
		}
		c.is("last", c.last(), "fingerpost\n\nM\tprojects.d/a.hcl\n")
		if year := c.git("log", "-1", "--format=%cs"); strings.HasPrefix(year, "2001") {
			t.Errorf("committed at %s", year)
		}
	})
	t.Run("a linked worktree", func(t *testing.T) {
		c := newCheckout(t, false)
		linked := &checkout{t, filepath.Join(t.TempDir(), "linked")}
		c.git("worktree", "add", "-q", "-b", "live", linked.dir)
		linked.write("projects.d/a.hcl", "a 2\n")
		linked.commits("a.hcl")
		linked.is("last", linked.last(), "fingerpost\n\nM\tprojects.d/a.hcl\n")
		linked.is("status", linked.git("status", "--porcelain"), "")
		c.is("main", c.git("show", "main:projects.d/a.hcl")+c.git("status", "--porcelain"), "a 1\n")
	})
}

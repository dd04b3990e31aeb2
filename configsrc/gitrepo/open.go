package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"fingerpost/configsrc/gitrepo/plumbing"
)

// minVersion is the oldest git with what is used here: merge-tree without a work tree, core.fsync, hook run.
var minVersion = [2]int{2, 39}

// check looks at the set-up and reports all that is wrong with it.
func (r *Repo) check(ctx context.Context) error {
	if err := checkVersion(ctx, r.git.Command); err != nil {
		return err
	}
	bare, err := r.git.Run(ctx, "rev-parse", "--is-bare-repository")
	switch {
	case err != nil && strings.Contains(err.Error(), "dubious ownership"):
		return fmt.Errorf("--git: the repository of %s belongs to another user, and git refuses it; run \"git config "+
			"--global --add safe.directory %s\" as the service's user", r.o.Dir, r.top())
	case err != nil && strings.Contains(err.Error(), "not a git repository"):
		return fmt.Errorf("--git: %s is not in a git repository; run \"git init\" there, or serve without --git", r.o.Dir)
	case err != nil:
		return fmt.Errorf("--git: %w", err)
	case bare == "true":
		return fmt.Errorf("--git: the repository of %s is bare; --git needs a clone with a work tree", r.o.Dir)
	}
	out, err := r.git.Run(ctx, "rev-parse", "--show-toplevel", "--absolute-git-dir", "--show-prefix")
	lines := strings.Split(out, "\n")
	if err != nil || len(lines) < 2 {
		return fmt.Errorf("--git: %s is not in a work tree: %w", r.o.Dir, err)
	}
	r.git.Dir, r.git.GitDir = lines[0], lines[1]
	if len(lines) > 2 {
		r.prefix = lines[2]
	}
	var problems []error
	add := func(format string, args ...any) { problems = append(problems, fmt.Errorf("--git: "+format, args...)) }
	if strings.ContainsAny(r.prefix, "\n") || strings.HasPrefix(r.prefix, ".git/") {
		add("%s is no folder that git keeps", r.o.Dir)
	}
	is := func(want string, args ...string) bool {
		got, err := r.git.Run(ctx, args...)
		return err == nil && got == want
	}
	if is("true", "rev-parse", "--is-shallow-repository") {
		add("the clone is shallow, and a merge could not find where histories part; run \"git fetch --unshallow\"")
	}
	if super, err := r.git.Run(ctx, "rev-parse", "--show-superproject-working-tree"); err == nil && super != "" {
		add("the config folder is in a submodule, whose commits another repository has to follow; use a clone of its own")
	}
	common, err := r.git.Run(ctx, "rev-parse", "--git-common-dir")
	if !filepath.IsAbs(common) {
		common = filepath.Join(r.git.Dir, common)
	}
	if err != nil || filepath.Clean(common) != filepath.Clean(r.git.GitDir) {
		add("the config folder is in a linked worktree, which shares its branches with others; use a clone of its own")
	}
	plain := r.git.WithoutSettings()
	if sparse, err := plain.Run(ctx, "config", "--type=bool", "core.sparseCheckout"); err == nil && sparse == "true" {
		add("the checkout is sparse, and files that are not checked out would look deleted; run \"git sparse-checkout " +
			"disable\"")
	}
	if _, err := r.git.Run(ctx, "check-ignore", "-q", "--", r.prefix+"fingerpost-check.hcl"); err == nil {
		add("git ignores the files of %s; take the pattern out of .gitignore", r.o.Dir)
	}
	if r.o.SignKey != "" {
		if key, err := filepath.Abs(r.o.SignKey); err == nil {
			r.o.SignKey = key
		}
		if f, err := os.Open(r.o.SignKey); err != nil {
			add("--git-sign-key: %v", err)
		} else {
			f.Close()
		}
		if _, err := exec.LookPath("ssh-keygen"); err != nil {
			add("--git-sign-key needs ssh-keygen, which signs: %v", err)
		}
	}
	if r.o.Push || r.o.Pull > 0 {
		if branch, err := r.git.Run(ctx, "symbolic-ref", "-q", "HEAD"); err == nil {
			if _, err := r.upstream(ctx, branch); err != nil {
				problems = append(problems, fmt.Errorf("--git-push, --git-pull: %w", err))
			}
		}
	}
	return errors.Join(problems...)
}

// A Remote is the upstream's repository, before anything is asked of it.
type Remote struct {
	Name, Branch string // as "origin" and "main"
	Host         string // "": it is not on another machine

	git *plumbing.Command
	up  *upstream
}

// Check checks the repository of the config folder as Open does, needs Dir and the fields after Answered of o alone, and
// changes nothing. It returns nil without Push and Pull, which need a remote.
func Check(ctx context.Context, o Options) (*Remote, error) {
	r, err := checked(ctx, o)
	if err != nil || !o.Push && o.Pull == 0 {
		return nil, err
	}
	branch, err := r.git.Run(ctx, "symbolic-ref", "-q", "HEAD")
	if err != nil {
		return nil, errors.New("--git: HEAD is detached; run \"git switch\" with the name of a branch")
	}
	u, err := r.upstream(ctx, branch)
	if err != nil {
		return nil, fmt.Errorf("--git: %w", err)
	}
	return &Remote{Name: u.remote, Branch: strings.TrimPrefix(u.ref, "refs/heads/"), Host: u.host, git: r.git.Command,
		up: u}, nil
}

// Reach asks the remote for its branch, as a fetch would, within a time limit.
func (m *Remote) Reach(ctx context.Context, limit time.Duration) error {
	_, err := m.git.Call(ctx, limit, nil, nil, m.up.allowed("ls-remote", "--quiet", m.up.remote, m.up.ref)...)
	return err
}

// top returns the folder with .git above the config folder.
func (r *Repo) top() string {
	for dir := r.git.Dir; ; dir = filepath.Dir(dir) {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil || dir == filepath.Dir(dir) {
			return dir
		}
	}
}

func checkVersion(ctx context.Context, git *plumbing.Command) error {
	if _, err := exec.LookPath("git"); err != nil {
		return fmt.Errorf("--git needs the git command, %d.%d or later: %w", minVersion[0], minVersion[1], err)
	}
	text, err := git.Run(ctx, "version")
	if err != nil {
		return fmt.Errorf("--git: %w", err)
	}
	number, _, _ := strings.Cut(strings.TrimPrefix(text, "git version "), " ")
	parts := strings.Split(number+".0", ".")
	major, err1 := strconv.Atoi(parts[0])
	minor, err2 := strconv.Atoi(parts[1])
	if err1 != nil || err2 != nil || major < minVersion[0] || major == minVersion[0] && minor < minVersion[1] {
		return fmt.Errorf("--git needs git %d.%d or later; this machine has %s", minVersion[0], minVersion[1], number)
	}
	return nil
}

// An upstream is the remote branch of a branch.
type upstream struct {
	remote string // its name
	ref    string // there, refs/heads/…
	track  string // here, refs/remotes/…
	scheme string // file, ssh, https …
	host   string // "" for a file
}

// upstream returns the upstream of a branch, a full ref.
func (r *Repo) upstream(ctx context.Context, branch string) (*upstream, error) {
	name := strings.TrimPrefix(branch, "refs/heads/")
	u := new(upstream)
	var err1, err2 error
	u.remote, err1 = r.git.Run(ctx, "config", "branch."+name+".remote")
	u.ref, err2 = r.git.Run(ctx, "config", "branch."+name+".merge")
	if err1 != nil || err2 != nil || u.remote == "." {
		return nil, fmt.Errorf("branch %s has no upstream; run \"git branch --set-upstream-to=<remote>/<branch> %s\"", name,
			name)
	}
	if strings.HasPrefix(u.remote, "-") || !strings.HasPrefix(u.ref, "refs/heads/") || strings.ContainsAny(u.remote,
		"/:") {
		return nil, fmt.Errorf("branch %s has the upstream %q of %q; --git needs a branch of a named remote", name, u.ref,
			u.remote)
	}
	u.track = u.tracks(u.ref)
	address, err := r.git.Run(ctx, "remote", "get-url", "--push", u.remote)
	if err != nil {
		return nil, err
	}
	if u.scheme, err = schemeOf(address); err != nil {
		return nil, fmt.Errorf("remote %s: %w", u.remote, err)
	}
	u.host = hostOf(u.scheme, address)
	return u, nil
}

// tracks returns the ref here that follows a branch there.
func (u *upstream) tracks(ref string) string {
	return "refs/remotes/" + u.remote + "/" + strings.TrimPrefix(ref, "refs/heads/")
}

// hostOf returns the host of a remote's URL, which may have the form user@host:path, "" for a file.
func hostOf(scheme, address string) string {
	if scheme == "file" {
		return ""
	}
	if u, err := url.Parse(address); err == nil && u.Host != "" {
		return u.Hostname()
	}
	host, _, _ := strings.Cut(address, ":")
	return host[strings.LastIndexByte(host, '@')+1:]
}

// schemeOf returns the protocol of a remote's URL. Those that run a command of their own are refused.
func schemeOf(url string) (string, error) {
	scheme, _, found := strings.Cut(url, "://")
	switch {
	case found:
		switch scheme {
		case "file", "ssh", "http", "https", "git":
			return scheme, nil
		case "git+ssh", "ssh+git":
			return "ssh", nil
		}
		return "", fmt.Errorf("the protocol %q is not supported: use https, ssh, git or file", scheme)
	case strings.Contains(url, "::"):
		return "", errors.New("remote helpers are not supported: use https, ssh, git or file")
	case strings.HasPrefix(url, "/"), strings.HasPrefix(url, "."):
		return "file", nil
	}
	if host, _, colon := strings.Cut(url, ":"); colon && !strings.Contains(host, "/") {
		return "ssh", nil
	}
	return "file", nil
}

// remoteArgs allows the protocol of the remote for one call.
func (u *upstream) allowed(args ...string) []string {
	return append([]string{"-c", "protocol." + u.scheme + ".allow=always"}, args...)
}

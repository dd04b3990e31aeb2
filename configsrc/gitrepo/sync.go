package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"fingerpost/configsrc/gitrepo/plumbing"
)

const (
	// The pause after a fetch or push that has failed doubles from the first value to the second.
	syncFirst, syncMost = time.Second, 5 * time.Minute
	maxRejected         = 5 // rejected pushes, before a pause
)

var errRejected = errors.New("the remote has commits that are not here")

// A remote is what is to be brought to the remote, and what is known of it.
type remote struct {
	wake chan struct{} // of capacity 1

	mu       sync.Mutex // guards what follows
	fetchNow bool       // the next round is to fetch
	outgoing []string   // refspecs of proposals for the next push

	// The fields below belong to the sync loop.
	asidePushed int    // of Status.Overruled
	tooLarge    string // the commit of the upstream that was refused for its size last
}

// A conflict is what a person has to solve.
type conflict struct{ text string }

func (e *conflict) Error() string { return e.text }

// syncLoop fetches, merges and pushes until ctx ends; then it pushes a last time.
func (r *Repo) syncLoop(ctx context.Context) {
	var tick <-chan time.Time
	if r.o.Pull > 0 {
		t := time.NewTicker(r.o.Pull)
		defer t.Stop()
		tick = t.C
	}
	pause := time.Duration(0)
	fetch := r.o.Pull > 0
	for {
		err := r.sync(ctx, fetch)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			pause = min(max(2*pause, syncFirst), syncMost)
		} else {
			pause = 0
		}
		var again <-chan time.Time
		if pause > 0 {
			again = time.After(pause)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick:
			fetch = true
		case <-r.remote.wake:
			r.remote.mu.Lock()
			fetch = r.remote.fetchNow || pause > 0
			r.remote.fetchNow = false
			r.remote.mu.Unlock()
		case <-again:
			fetch = true
		}
	}
}

// sync is one round. It fetches if it is asked to, or if the remote rejects a push.
func (r *Repo) sync(ctx context.Context, fetch bool) error {
	err := r.syncOnce(ctx, fetch && r.o.Pull > 0)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	told := false
	r.change(func(s *Status) {
		was := s.SyncError + s.Conflict
		s.SyncError, s.Conflict = "", ""
		var c *conflict
		switch {
		case errors.As(err, &c):
			s.Conflict = c.text
		case err != nil:
			s.SyncError = err.Error()
		}
		if err != nil {
			s.Failures++
		}
		told = was == s.SyncError+s.Conflict
	})
	if err != nil && !told {
		r.o.Logger.Warn("git: not in step with the remote", "error", err)
	}
	return err
}

func (r *Repo) syncOnce(ctx context.Context, fetch bool) error {
	for range maxRejected {
		h, u, err := r.headAndUpstream(ctx)
		if err != nil {
			return err
		}
		if fetch {
			if err := r.fetch(ctx, u); err != nil {
				return err
			}
			_ = r.commitPending(ctx) // a write without a commit looks like a person's edit
			if err = r.bounded(ctx, u); err == nil {
				err = r.integrate(ctx, h.branch, u)
			}
			if err != nil {
				r.count(ctx, h.branch, u)
				return err
			}
		}
		err = nil
		if r.o.Push {
			err = r.push(ctx, u)
		}
		r.count(ctx, h.branch, u)
		if !errors.Is(err, errRejected) || r.o.Pull == 0 {
			return err
		}
		fetch = true
	}
	return errRejected
}

func (r *Repo) headAndUpstream(ctx context.Context) (head, *upstream, error) {
	r.work.Lock()
	defer r.work.Unlock()
	h, err := r.head(ctx)
	if err != nil {
		return h, nil, err
	}
	u, err := r.upstream(ctx, h.branch)
	return h, u, err
}

func (r *Repo) fetch(ctx context.Context, u *upstream) error {
	err := r.git.Fetch(ctx, u.track, u.allowed("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", u.remote,
		"+"+u.ref+":"+u.track)...)
	if err != nil && strings.Contains(err.Error(), "couldn't find remote ref") {
		return nil // nothing has been pushed yet
	}
	if err == nil {
		r.change(func(s *Status) { s.LastFetch = time.Now().UTC() })
	}
	return err
}

// push sends the branch to its upstream, and the branches of writes that were set aside.
func (r *Repo) push(ctx context.Context, u *upstream) error {
	r.work.Lock()
	h, err := r.head(ctx)
	var there string
	if err == nil {
		there, err = r.git.Ref(u.track)
	}
	writes := r.queue.takeUnpushed()
	r.remote.mu.Lock()
	more := r.remote.outgoing
	r.remote.outgoing = nil
	r.remote.mu.Unlock()
	r.work.Unlock()
	back := func() {
		r.queue.putBack(writes)
		r.remote.mu.Lock()
		r.remote.outgoing = append(more, r.remote.outgoing...)
		r.remote.mu.Unlock()
	}
	if err != nil || h.commit == "" {
		back()
		return err
	}
	aside := r.Status().Overruled
	sent := there != h.commit || len(aside) > r.remote.asidePushed || len(more) > 0
	if sent {
		args, sets := u.allowed("push", "--porcelain", "--quiet", u.remote, h.commit+":"+u.ref), []string{u.track}
		for _, branch := range aside {
			args = append(args, "refs/heads/"+branch+":refs/heads/"+branch)
			sets = append(sets, u.tracks("refs/heads/"+branch))
		}
		slices.Sort(more)
		for _, refspec := range slices.Compact(more) {
			from, gone, _ := strings.Cut(refspec, ":")
			if from != "" && r.git.Exists(ctx, from) {
				args, sets = append(args, refspec), append(sets, u.tracks(gone))
			}
			if from != "" || r.git.Exists(ctx, gone) {
				continue
			}
			// By itself: a branch that the remote has not, because it was dropped before the push, would fail all others.
			if _, err := r.git.Remote(ctx, []string{u.tracks(gone)}, u.allowed("push", "--quiet", u.remote,
				refspec)...); err != nil && !strings.Contains(err.Error(), "does not exist") {
				back()
				return err
			}
		}
		end := r.stepOf(writes, "git.push")
		out, err := r.git.Remote(ctx, sets, args...)
		end(h.commit, err)
		if err != nil {
			back()
			if text := string(out) + err.Error(); strings.Contains(text, "(fetch first)") || strings.Contains(text,
				"(non-fast-forward)") {
				return fmt.Errorf("git push: %w (--git-pull would take them)", errRejected)
			}
			return fmt.Errorf("%w %s", err, plumbing.Clean(string(out)))
		}
		r.remote.asidePushed = len(aside)
		r.change(func(s *Status) { s.LastPush, s.Pushes = time.Now().UTC(), s.Pushes+1 })
	}
	// ---- The remote has the commits. From here on nothing is answered as a failure. ----
	for _, w := range writes {
		close(w.pushed)
	}
	if !sent {
		return nil
	}
	if err := r.setBase(context.WithoutCancel(ctx), h.branch, h.commit); err != nil { // the next fetch sets it
		r.o.Logger.Warn("git: the push has succeeded, but its commit was not noted", "error", err)
	}
	return nil
}

// count updates how far the branch is from its upstream.
func (r *Repo) count(ctx context.Context, branch string, u *upstream) {
	out, err := r.git.Run(ctx, "rev-list", "--left-right", "--count", branch+"..."+u.track)
	if f := strings.Fields(out); err == nil && len(f) == 2 {
		ahead, _ := strconv.Atoi(f[0])
		behind, _ := strconv.Atoi(f[1])
		r.change(func(s *Status) {
			s.Upstream, s.Ahead, s.Behind = strings.TrimPrefix(u.track, "refs/remotes/"), ahead, behind
		})
	}
}

// baseRef keeps the commit of the upstream on which a branch is built. It tells a rewritten upstream from one that is
// ahead.
func baseRef(branch string) string {
	return "refs/fingerpost/base/" + strings.TrimPrefix(branch, "refs/heads/")
}

func (r *Repo) setBase(ctx context.Context, branch, commit string) error {
	return r.git.SetRef(ctx, baseRef(branch), commit)
}

// integrate brings the commits of the upstream into the branch.
func (r *Repo) integrate(ctx context.Context, branch string, u *upstream) error {
	r.work.Lock()
	defer r.work.Unlock()
	h, err := r.head(ctx)
	if err != nil || h.branch != branch {
		return err
	}
	remote, err := r.git.Ref(u.track)
	if err != nil || remote == "" {
		return err
	}
	if h.commit == "" {
		return r.moveTo(ctx, h, remote, remote, r.files.GitTurn)
	}
	behind, err := r.git.IsAncestor(ctx, remote, h.commit)
	if err != nil {
		return err
	}
	if behind {
		return r.setBase(ctx, branch, remote)
	}
	ahead, err := r.git.IsAncestor(ctx, h.commit, remote)
	if err != nil {
		return err
	}
	if ahead {
		return r.moveTo(ctx, h, remote, remote, r.files.GitTurn)
	}
	base, err := r.git.Ref(baseRef(branch))
	if err != nil {
		return err
	}
	if base != "" {
		kept, err := r.git.IsAncestor(ctx, base, remote)
		if err != nil {
			return err
		}
		own, err := r.git.IsAncestor(ctx, h.commit, base)
		switch {
		case err != nil:
			return err
		case !kept && own: // nothing of our own was lost
			if err := r.keepFormer(ctx, h.commit, remote); err != nil {
				return err
			}
			return r.moveTo(ctx, h, remote, remote, r.files.GitTurn)
		case !kept:
			return &conflict{fmt.Sprintf("%s was rewritten, and %s has commits of its own: bring them onto it by \"git "+
				"rebase --onto %s %.12s\", or drop them by \"git reset --keep %s\"", u.track, branch, u.track, base, u.track)}
		}
	}
	since, err := r.git.Run(ctx, "merge-base", h.commit, remote)
	if plumbing.ExitCode(err) == 1 {
		return &conflict{fmt.Sprintf("%s and %s have no commit in common; push to another branch, or make a new clone",
			branch, u.track)}
	}
	if err != nil {
		return err
	}
	m, err := r.rebase(ctx, h, remote, since)
	if err != nil {
		return err
	}
	if err := m.keepAside(ctx); err != nil {
		return err
	}
	if err := r.keepFormer(ctx, h.commit, m.tip); err != nil {
		return err
	}
	if err := r.moveTo(ctx, h, m.tip, remote, r.files.GitTurn); err != nil {
		return err
	}
	m.tell()
	return nil
}

// bounded returns a *conflict if the upstream differs from the head in more than the bounds. It reads without work, and
// a commit of the upstream that was refused is not looked at again.
func (r *Repo) bounded(ctx context.Context, u *upstream) error {
	from, to, commit, err := r.treesOf(ctx, u)
	if err != nil || to == "" {
		return err
	}
	if commit != r.remote.tooLarge {
		if _, _, err = r.git.Diff(ctx, from, to); !errors.Is(err, plumbing.ErrTooLarge) {
			return err
		}
		r.remote.tooLarge = commit
	}
	return &conflict{fmt.Sprintf("%.12s of %s is not taken: %v; take it by \"git pull\" in the clone, "+
		"or push a smaller one", commit, u.track, plumbing.ErrTooLarge)}
}

// treesOf returns the trees of the head and of the upstream, whose commit it names; "" if it has none.
func (r *Repo) treesOf(ctx context.Context, u *upstream) (head, theirs, commit string, err error) {
	r.work.Lock()
	defer r.work.Unlock()
	h, err := r.head(ctx)
	if err != nil {
		return "", "", "", err
	}
	if commit, err = r.git.Ref(u.track); err != nil || commit == "" {
		return "", "", "", err
	}
	c, err := r.git.Commit(commit)
	if err != nil {
		return "", "", "", err
	}
	if head = h.tree; head == "" {
		head, err = r.git.NewTree("", nil)
	}
	return head, c.Tree, commit, err
}

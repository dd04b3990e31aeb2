package node

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"fingerpost/api/platform"
	"fingerpost/configsrc/folder"
	"fingerpost/configsrc/gitrepo"
	"fingerpost/configsrc/hcledit"
	"fingerpost/configsrc/seal"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

// findClone returns where the config folder is in its repository: with --git it is never opened through a link below the
// top, since others may push one.
func (n *service) findClone() (folder.Clone, error) {
	if !n.o.Git.On {
		return folder.Clone{}, nil
	}
	c, err := folder.FindClone(n.o.Files.Config)
	if err != nil {
		return c, fmt.Errorf("--git: %w", err)
	}
	return c, nil
}

// openGit opens the repository of the config folder; nil without --git.
func (n *service) openGit(ctx context.Context) (err error) {
	if !n.o.Git.On {
		return nil
	}
	n.repo, err = gitrepo.Open(ctx, gitrepo.Options{
		Dir: n.o.Files.Config, Ledger: n.resolver.Records, Logger: n.o.Logger, Merge: hcledit.Merge, Trace: n.o.Trace,
		Answered:    func(w *catalog.FileWrite) bool { return audited(n.resolver, w) },
		OnOverruled: func(o gitrepo.Overruled) { noteOverruled(n.resolver, o) },
		Ack:         n.o.Git.Ack, Domain: n.addressDomain(), SignKey: n.o.Git.SignKey, Hooks: n.o.Git.Hooks,
		Push: n.o.Git.Push, Pull: n.o.Git.Pull,
	})
	return err
}

// addressDomain is the domain of the addresses of keys, and of people without a verified address.
func (n *service) addressDomain() string {
	host, _ := os.Hostname()
	return cmp.Or(n.o.Git.Domain, host, "localhost")
}

// audited reports whether the audit trail has an entry of a write.
func audited(r *resolver.Resolver, w *catalog.FileWrite) bool {
	page, err := r.Audit(catalog.AuditQuery{RequestID: w.Author.RequestID, Page: 1, Limit: 100})
	for i := range page.Entries {
		if err == nil && page.Entries[i].Key == w.Author.Key {
			return true
		}
	}
	return false
}

func noteOverruled(r *resolver.Resolver, o gitrepo.Overruled) {
	by := o.Author
	by.Commit = o.Commit
	r.Note(catalog.AuditOverruled, by, catalog.FieldChange{Field: "branch", After: o.Branch},
		catalog.FieldChange{Field: "reason", After: o.Reason},
		catalog.FieldChange{Field: "author", After: o.By})
}

// A commits tells the API what has become of writes.
type commits struct {
	repo  *gitrepo.Repo
	limit time.Duration
	push  bool
	held  func() bool // the brake holds a reload back
}

// Committed implements api.Git.
func (c commits) Committed(write int64) (commit string, pushed bool, overruled string) {
	ctx, cancel := context.WithTimeout(context.Background(), c.limit)
	defer cancel()
	r := c.repo.Wait(ctx, write)
	return r.Commit, r.Pushed, r.Overruled
}

// AwaitsPush implements api.Git.
func (c commits) AwaitsPush() bool { return c.push }

// Has implements api.Git. While the brake holds a reload back, a commit in the branch may not be live.
func (c commits) Has(commit string) (bool, error) {
	has, err := c.repo.Has(context.Background(), commit)
	return has && !c.held(), err
}

// runGit runs the repository, and returns a function that ends it, after the last commits. The files must still be
// watched then.
func (n *service) runGit() (end func()) {
	if n.repo == nil {
		return func() {}
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := n.run(func() error { return n.repo.Run(ctx) })
	dropped := n.run(func() error { return n.proposals.Expire(ctx, n.o.Git.ProposeMaxAge, n.o.Logger) })
	return func() {
		stop()
		<-ended
		<-dropped
		n.repo.Close()
	}
}

// gitHook returns the webhook of the main listener.
func (n *service) gitHook() (hook platform.Hook, err error) {
	if n.o.Git.HookSecret == "" {
		return hook, nil
	}
	b, err := os.ReadFile(n.o.Git.HookSecret)
	if err != nil {
		return hook, fmt.Errorf("--git-hook-secret: %w", err)
	}
	if hook.Secret = strings.TrimSpace(seal.Text(b)); len(hook.Secret) < 16 {
		return hook, fmt.Errorf("--git-hook-secret: %s must have a secret of at least 16 characters", n.o.Git.HookSecret)
	}
	hook.Fetch = n.repo.Sync
	return hook, nil
}

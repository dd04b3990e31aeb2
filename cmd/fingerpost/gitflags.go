package main

import (
	"cmp"
	"context"
	"fmt"
	"net/mail"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"fingerpost/configsrc/folder"
	"fingerpost/configsrc/gitrepo"
	"fingerpost/configsrc/hcledit"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

// gitFlags are the flags of serve about git.
type gitFlags struct {
	git, gitHooks, gitPush, gitFanout bool
	gitAck, gitDomain, gitSignKey     string
	gitHookSecret, gitWeb             string
	gitAckTimeout, gitPull            time.Duration
	proposeMaxAge                     time.Duration
}

// proposeMaxAge is the default of --propose-max-age.
const proposeMaxAge = 30 * 24 * time.Hour

func (f *gitFlags) add(fl *pflag.FlagSet) {
	fl.BoolVar(&f.git, "git", false, "commit each API write to the git repository of the config folder")
	fl.StringVar(&f.gitAck, "git-ack", "file",
		"what answers a write: file (it is safe), commit (it is made) or push (the remote has it)")
	fl.DurationVar(&f.gitAckTimeout, "git-ack-timeout", 15*time.Second, "time that a write waits for what --git-ack names")
	fl.StringVar(&f.gitDomain, "git-domain", "",
		"domain of the addresses of keys and of the service in commits (default the machine's name)")
	fl.StringVar(&f.gitSignKey, "git-sign-key", "", "file of the ssh key that signs the commits")
	fl.BoolVar(&f.gitHooks, "git-hooks", false,
		"run the repository's hooks reference-transaction, post-commit and pre-push")
	fl.BoolVar(&f.gitPush, "git-push", false, "push commits to the branch's upstream")
	fl.DurationVar(&f.gitPull, "git-pull", 0,
		"interval between two fetches from the upstream, such as 30s (default never)")
	fl.StringVar(&f.gitWeb, "git-web", "",
		"address of the repository's web page, for links to commits and to comparisons of proposals")
	fl.DurationVar(&f.proposeMaxAge, "propose-max-age", proposeMaxAge,
		"time without a write after which a proposal is dropped")
	fl.BoolVar(&f.gitFanout, "git-fanout", false,
		"put the file of a new project into a folder named after the slug's first two characters")
	fl.StringVar(&f.gitHookSecret, "git-hook-secret", "",
		"file with the secret of POST /hooks/git on the main listener, as GitHub, GitLab and Gitea sign it")
}

// parse checks the flags against each other, and reports all problems.
func (f *gitFlags) parse(s *serveFlags) error {
	var bad []string
	add := func(format string, args ...any) { bad = append(bad, fmt.Sprintf(format, args...)) }
	if !f.git {
		for flag, set := range map[string]bool{"--git-push": f.gitPush, "--git-pull": f.gitPull != 0,
			"--git-hooks":    f.gitHooks,
			"--git-sign-key": f.gitSignKey != "", "--git-ack": f.gitAck != "file", "--git-hook-secret": f.gitHookSecret != "",
			"--git-domain": f.gitDomain != "", "--git-web": f.gitWeb != "",
			"--propose-max-age": f.proposeMaxAge != proposeMaxAge} {
			if set {
				add("%s needs --git", flag)
			}
		}
	}
	switch gitrepo.Ack(f.gitAck) {
	case gitrepo.AckFile, gitrepo.AckCommit:
	case gitrepo.AckPush:
		if !f.gitPush {
			add("--git-ack push needs --git-push")
		}
	default:
		add("--git-ack must be file, commit or push")
	}
	if f.git && s.readOnly && f.gitPull == 0 {
		add("--git and --read-only: nothing would ever be committed; leave out one of them, or add --git-pull")
	}
	if f.proposeMaxAge < time.Minute {
		add("--propose-max-age must be at least 1m")
	}
	if f.gitAckTimeout <= 0 {
		add("--git-ack-timeout must be positive")
	}
	if f.gitPull < 0 || f.gitPull > 0 && f.gitPull < time.Second {
		add("--git-pull must be at least 1s")
	}
	if f.gitHookSecret != "" && f.gitPull == 0 {
		add("--git-hook-secret needs --git-pull: the hook asks for a fetch")
	}
	if f.gitDomain != "" {
		if a, err := mail.ParseAddress("key@" + f.gitDomain); err != nil || a.Address != "key@"+f.gitDomain {
			add("--git-domain %q must be a domain, such as config.example.com", f.gitDomain)
		}
	}
	if f.gitWeb != "" {
		if u, err := url.Parse(f.gitWeb); err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
			add("--git-web %q must be an http or https address", f.gitWeb)
		}
	}
	return usageAll(bad)
}

// clone returns where the config folder is in its repository: with --git it is never opened through a link below the
// top, since others may push one.
func (f *serveFlags) clone() (folder.Clone, error) {
	if !f.git {
		return folder.Clone{}, nil
	}
	c, err := folder.FindClone(f.config)
	if err != nil {
		return c, fmt.Errorf("--git: %w", err)
	}
	return c, nil
}

// openGit opens the repository of the config folder; nil without --git.
func (s *service) openGit(ctx context.Context) (err error) {
	if !s.f.git {
		return nil
	}
	domain := s.f.gitDomain
	if domain == "" {
		host, _ := os.Hostname()
		domain = cmp.Or(host, "localhost")
	}
	s.repo, err = gitrepo.Open(ctx, gitrepo.Options{
		Dir: s.f.config, Ledger: s.resolver, Logger: s.log, Merge: hcledit.Merge,
		Answered:    func(w *catalog.FileWrite) bool { return audited(s.resolver, w) },
		OnOverruled: func(o gitrepo.Overruled) { noteOverruled(s.resolver, o) },
		Ack:         gitrepo.Ack(s.f.gitAck), Domain: domain, SignKey: s.f.gitSignKey, Hooks: s.f.gitHooks, Push: s.f.gitPush,
		Pull: s.f.gitPull,
	})
	return err
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
func (s *service) runGit() (end func()) {
	if s.repo == nil {
		return func() {}
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := s.run(func() error { return s.repo.Run(ctx) })
	dropped := s.run(func() error { return s.proposals.Expire(ctx, s.f.proposeMaxAge, s.log) })
	return func() {
		stop()
		<-ended
		<-dropped
		s.repo.Close()
	}
}

// gitHook returns what a signed webhook does, and the secret; nil: there is no webhook on the main listener.
func (s *service) gitHook() (on func(), secret string, err error) {
	if s.f.gitHookSecret == "" {
		return nil, "", nil
	}
	b, err := os.ReadFile(s.f.gitHookSecret)
	if err != nil {
		return nil, "", fmt.Errorf("--git-hook-secret: %w", err)
	}
	if secret = strings.TrimSpace(string(b)); len(secret) < 16 {
		return nil, "", fmt.Errorf("--git-hook-secret: %s must have a secret of at least 16 characters", s.f.gitHookSecret)
	}
	return s.repo.Sync, secret, nil
}

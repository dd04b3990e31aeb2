package main

import (
	"fmt"
	"net/mail"
	"net/url"
	"time"

	"github.com/spf13/pflag"

	"fingerpost/configsrc/gitrepo"
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

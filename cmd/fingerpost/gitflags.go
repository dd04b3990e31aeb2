package main

import (
	"fmt"
	"net/mail"
	"net/url"
	"time"

	"github.com/spf13/pflag"

	"fingerpost/configsrc/gitrepo"
)

// proposeMaxAge is the default of --propose-max-age.
const proposeMaxAge = 30 * 24 * time.Hour

func (f *serveFlags) addGit(fl *pflag.FlagSet) {
	fl.BoolVar(&f.Git.On, "git", false, "commit each API write to the git repository of the config folder")
	fl.StringVar((*string)(&f.Git.Ack), "git-ack", "file",
		"what answers a write: file (it is safe), commit (it is made) or push (the remote has it)")
	fl.DurationVar(&f.Git.AckTimeout, "git-ack-timeout", 15*time.Second,
		"time that a write waits for what --git-ack names")
	fl.StringVar(&f.Git.Domain, "git-domain", "",
		"domain of the addresses of keys and of the service in commits (default the machine's name)")
	fl.StringVar(&f.Git.SignKey, "git-sign-key", "", "file of the ssh key that signs the commits")
	fl.BoolVar(&f.Git.Hooks, "git-hooks", false,
		"run the repository's hooks reference-transaction, post-commit and pre-push")
	fl.BoolVar(&f.Git.Push, "git-push", false, "push commits to the branch's upstream")
	fl.DurationVar(&f.Git.Pull, "git-pull", 0,
		"interval between two fetches from the upstream, such as 30s (default never)")
	fl.StringVar(&f.Git.Web, "git-web", "",
		"address of the repository's web page, for links to commits and to comparisons of proposals")
	fl.DurationVar(&f.Git.ProposeMaxAge, "propose-max-age", proposeMaxAge,
		"time without a write after which a proposal is dropped")
	fl.BoolVar(&f.Git.Fanout, "git-fanout", false,
		"put the file of a new project into a folder named after the slug's first two characters")
	fl.StringVar(&f.Git.HookSecret, "git-hook-secret", "",
		"file with the secret of POST /hooks/git on the main listener, as GitHub, GitLab and Gitea sign it")
}

// parse checks the flags against each other, and reports all problems.
func (f *serveFlags) checkGit() error {
	var bad []string
	add := func(format string, args ...any) { bad = append(bad, fmt.Sprintf(format, args...)) }
	if !f.Git.On {
		for flag, set := range map[string]bool{"--git-push": f.Git.Push, "--git-pull": f.Git.Pull != 0,
			"--git-hooks":    f.Git.Hooks,
			"--git-sign-key": f.Git.SignKey != "", "--git-ack": f.Git.Ack != gitrepo.AckFile,
			"--git-hook-secret": f.Git.HookSecret != "",
			"--git-domain":      f.Git.Domain != "", "--git-web": f.Git.Web != "",
			"--propose-max-age": f.Git.ProposeMaxAge != proposeMaxAge} {
			if set {
				add("%s needs --git", flag)
			}
		}
	}
	switch f.Git.Ack {
	case gitrepo.AckFile, gitrepo.AckCommit:
	case gitrepo.AckPush:
		if !f.Git.Push {
			add("--git-ack push needs --git-push")
		}
	default:
		add("--git-ack must be file, commit or push")
	}
	if f.Git.On && f.Files.ReadOnly && f.Git.Pull == 0 {
		add("--git and --read-only: nothing would ever be committed; leave out one of them, or add --git-pull")
	}
	if f.Git.ProposeMaxAge < time.Minute {
		add("--propose-max-age must be at least 1m")
	}
	if f.Git.AckTimeout <= 0 {
		add("--git-ack-timeout must be positive")
	}
	if f.Git.Pull < 0 || f.Git.Pull > 0 && f.Git.Pull < time.Second {
		add("--git-pull must be at least 1s")
	}
	if f.Git.HookSecret != "" && f.Git.Pull == 0 {
		add("--git-hook-secret needs --git-pull: the hook asks for a fetch")
	}
	if f.Git.Domain != "" {
		if a, err := mail.ParseAddress("key@" + f.Git.Domain); err != nil || a.Address != "key@"+f.Git.Domain {
			add("--git-domain %q must be a domain, such as config.example.com", f.Git.Domain)
		}
	}
	if f.Git.Web != "" {
		if u, err := url.Parse(f.Git.Web); err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
			add("--git-web %q must be an http or https address", f.Git.Web)
		}
	}
	return usageAll(bad)
}

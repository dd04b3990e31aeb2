package main

import (
	"time"

	"github.com/spf13/pflag"

	"fingerpost/cmd/fingerpost/node"
)

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
	fl.DurationVar(&f.Git.ProposeMaxAge, "propose-max-age", node.ProposeMaxAge,
		"time without a write after which a proposal is dropped")
	fl.IntVar(&f.Git.ProposeApprovals, "propose-approvals", 0,
		"number of people, each with a key that has write, who must approve of a proposal of others before it is applied")
	fl.BoolVar(&f.Git.Fanout, "git-fanout", false,
		"put the file of a new project into a folder named after the slug's first two characters")
	fl.StringVar(&f.Git.HookSecret, "git-hook-secret", "",
		"file with the secret of POST /hooks/git on the main listener, as GitHub, GitLab and Gitea sign it")
}

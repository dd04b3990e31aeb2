package platform

import (
	"fmt"
	"regexp"

	"fingerpost/api/web"
	"fingerpost/resolver/catalog"
)

const commitPath = "/api/platform/commits/{commit}"

var (
	commitID     = regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64})$`)
	refuseCommit = &catalog.Error{Code: catalog.CodeNotFound,
		Message: "the commit is not live: it is not in the branch that this server has, or the brake holds a reload back"}
	refuseHistory = &catalog.Error{Code: catalog.CodeGitOff, Message: "this server keeps no git history (serve --git)"}
)

// A History is the git history; *gitrepo.Repo is behind it.
type History interface {
	// Has reports whether the branch has a commit, by its full id, whose files are live.
	Has(commit string) (bool, error)
}

// getCommit answers GET /commits/{commit}: a position that has what the commit brought, once it is live.
func (a *API) getCommit(r *web.Request) error {
	commit, _ := r.Ctx.UserValue("commit").(string)
	if !commitID.MatchString(commit) {
		return web.InvalidField("commit", "must be the full id of a commit: 40 or 64 hexadecimal digits in lower case")
	}
	if err := r.Permit(); err != nil {
		return err
	}
	if a.History == nil {
		return refuseHistory
	}
	has, err := a.History.Has(commit)
	if err != nil {
		return err
	}
	if !has {
		return refuseCommit
	}
	at := a.Published() // only now: before, it might have been the position without the commit
	r.Succeed("commit found", fmt.Appendf(nil, `{"commit":"%s","position":"%s","generation":%d}`, commit, at.Text,
		at.Generation))
	return nil
}

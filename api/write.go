package api

import (
	"context"
	"strconv"
	"time"

	"fingerpost/api/web"
	"fingerpost/configsrc"
	"fingerpost/resolver/catalog"
)

// Every write has the same steps, and its handler shows them from top to bottom:
//
//  1. Check path, key and project (onProject, onPart, projectOf).
//  2. Read the body (readForm) and apply it to a copy of the resource that the resolver has, to report every problem.
//  3. Compare If-Match and If-None-Match with that resource.
//  4. Change the file (update, write). The change works on the file's current content, and runs again if the file is
//     saved during the write. So it checks the preconditions and applies the body itself. Once it returns, the file
//     is synced and the resolver answers from the new state.
//  5. Read the resource back and answer.

// Files is the config folder, which takes the writes; *configsrc.Source implements it, and *configsrc.Overlay for the
// state of a proposal.
type Files interface {
	Write(ctx context.Context, e *catalog.Edit) (configsrc.Outcome, error)
}

// writeTime is how long a write may wait for its turn at the file.
const writeTime = 10 * time.Second

var (
	refuseWriting  = &catalog.Error{Code: catalog.CodeReadOnly, Message: "this server has no config folder to write into"}
	refuseDegraded = &catalog.Error{Code: catalog.CodeUnavailable,
		Message: "the store has failed; writes are refused until it is back"}
)

// write makes an edit in the name of the request's key. A dry run that succeeds returns a *dryRun, with which the handler
// ends.
func (s *Server) write(r *web.Request, e *catalog.Edit) error {
	switch {
	case s.o.Files == nil:
		return refuseWriting
	case !s.resolver.Writable():
		return refuseDegraded
	case !s.resolver.Auditable():
		return catalog.ErrUnaudited
	}
	e.By, e.Message, e.Covers, e.DryRun = r.Author(), r.Message, coverageOf(r.Key), r.Dry
	ctx, cancel := context.WithTimeout(context.Background(), writeTime)
	defer cancel()
	out, err := s.o.Files.Write(ctx, e)
	switch {
	case err != nil:
		return err
	case e.DryRun:
		return &dryRun{out.Preview}
	case s.o.Git == nil || out.ID == 0:
		return nil
	}
	return s.tellCommit(r, out.ID)
}

// A Git tells what has become of a write in the git history; *gitrepo.Repo is behind it.
type Git interface {
	// Committed waits as long as the operator has asked for. commit is "" if it is not known by then. pushed reports
	// whether the remote has it, and overruled is the branch that keeps a write which a person's commit has set aside.
	Committed(write int64) (commit string, pushed bool, overruled string)
	// AwaitsPush reports whether Committed waits for the remote.
	AwaitsPush() bool
	// Has reports whether the branch has a commit, by its full id, whose files are live.
	Has(commit string) (bool, error)
}

const (
	headerCommit    = "X-Commit"
	headerGitPushed = "X-Git-Pushed"
)

// tellCommit adds to the answer what is known of the commit of a write.
func (s *Server) tellCommit(r *web.Request, write int64) error {
	commit, pushed, overruled := s.o.Git.Committed(write)
	h := &r.Ctx.Response.Header
	if commit != "" {
		h.Set(headerCommit, commit)
	}
	if s.o.Git.AwaitsPush() {
		h.Set(headerGitPushed, strconv.FormatBool(pushed))
	}
	if overruled != "" {
		return &catalog.Error{Code: catalog.CodeOverruled,
			Message: "a person's commit has changed the same at the same time, and wins; the branch " + overruled +
				" keeps this write"}
	}
	return nil
}

// update changes a project's block: change gets what the file says now. It may run more than once.
func (s *Server) update(r *web.Request, p *catalog.Project, change func(p *catalog.ProjectConfig) error) error {
	return s.write(r, &catalog.Edit{Project: &catalog.ProjectEdit{UUID: p.UUID, Change: change}})
}

func projectLocation(id int64) string { return "/api/platform/projects/" + strconv.FormatInt(id, 10) }

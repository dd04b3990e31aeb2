package web

import (
	"context"
	"strconv"
	"time"

	"fingerpost/configsrc/edits"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

// Every write has the same steps, and its handler shows them from top to bottom:
//
//  1. Check path, key and project (OnProject, OnPart).
//  2. Read the body (ReadForm) and apply it to a copy of the resource that the resolver has, to report every problem.
//  3. Compare If-Match and If-None-Match with that resource.
//  4. Change the file (Writer.Update, Writer.Write). The change works on the file's current content, and runs again if
//     the file is saved during the write. So it checks the preconditions and applies the body itself. Once it returns,
//     the file is synced and the resolver answers from the new state.
//  5. Read the resource back and answer.

// Files is the config folder, which takes the writes; *configsrc.Source implements it, and *edits.Overlay for the
// state of a proposal.
type Files interface {
	Write(ctx context.Context, e *catalog.Edit) (edits.Outcome, error)
}

// WriteTime is how long a write may wait for its turn at the file.
const WriteTime = 10 * time.Second

var (
	refuseWriting  = &catalog.Error{Code: catalog.CodeReadOnly, Message: "this server has no config folder to write into"}
	refuseDegraded = &catalog.Error{Code: catalog.CodeUnavailable,
		Message: "the store has failed; writes are refused until it is back"}
)

// A Store says whether a write can be applied and recorded; *resolver.Resolver implements it.
type Store interface {
	Writable() bool
	Auditable() bool
}

// A Writer makes the writes of handlers, on the files themselves or on the state of a proposal.
type Writer struct {
	Files Files // nil: every write is refused
	Store Store
	Git   Git // nil: nothing is committed
}

// Write makes an edit in the name of the request's key. A dry run that succeeds returns a *DryRun, with which the
// handler ends.
func (w *Writer) Write(r *Request, e *catalog.Edit) error {
	switch {
	case w.Files == nil:
		return refuseWriting
	case !w.Store.Writable():
		return refuseDegraded
	case !w.Store.Auditable():
		return catalog.ErrUnaudited
	}
	e.By, e.Message, e.Covers, e.DryRun = r.Author(), r.Message, CoverageOf(r.Key), r.Dry
	ctx, cancel := context.WithTimeout(r.Context(), WriteTime)
	defer cancel()
	out, err := w.Files.Write(ctx, e)
	switch {
	case err != nil:
		return err
	case e.DryRun:
		return &DryRun{out.Preview}
	case w.Git == nil || out.ID == 0:
		return nil
	}
	return w.tellCommit(r, out.ID)
}

// A Git tells what has become of a write in the git history; *gitrepo.Repo is behind it.
type Git interface {
	// Committed waits as long as the operator has asked for. commit is "" if it is not known by then. pushed reports
	// whether the remote has it, and overruled is the branch that keeps a write which a person's commit has set aside.
	Committed(write int64) (commit string, pushed bool, overruled string)
	// AwaitsPush reports whether Committed waits for the remote.
	AwaitsPush() bool
}

// HeaderCommit is the header field with the commit of a write.
const HeaderCommit = "X-Commit"

const headerGitPushed = "X-Git-Pushed"

// tellCommit adds to the answer what is known of the commit of a write.
func (w *Writer) tellCommit(r *Request, write int64) error {
	commit, pushed, overruled := w.Git.Committed(write)
	h := &r.Ctx.Response.Header
	if commit != "" {
		h.Set(HeaderCommit, commit)
	}
	if w.Git.AwaitsPush() {
		h.Set(headerGitPushed, strconv.FormatBool(pushed))
	}
	if overruled != "" {
		return &catalog.Error{Code: catalog.CodeOverruled,
			Message: "a person's commit has changed the same at the same time, and wins; the branch " + overruled +
				" keeps this write"}
	}
	return nil
}

// Update changes a project's block: change gets what the file says now. It may run more than once.
func (w *Writer) Update(r *Request, p *catalog.Project, change func(p *catalog.ProjectConfig) error) error {
	return w.Write(r, &catalog.Edit{Project: &catalog.ProjectEdit{UUID: p.UUID, Change: change}})
}

// A DryRun ends a handler at the point where a write would have been made. The caller of the handler answers with it.
type DryRun struct{ Preview *edits.Preview }

func (*DryRun) Error() string { return "dry run: nothing was changed" }

// CoverageOf returns which projects a key reaches.
func CoverageOf(k *resolver.Key) catalog.Coverage {
	if k.EveryProject() {
		return nil
	}
	return k.Covers
}

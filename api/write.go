package api

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

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
	headerLocation = []byte(fasthttp.HeaderLocation)

	refuseMatch = &catalog.Error{Code: catalog.CodePrecondition,
		Message: "the resource is not what If-Match names; read it again"}
	refuseNoneMatch = &catalog.Error{Code: catalog.CodePrecondition, Message: "there is what If-None-Match rules out"}
	refuseWriting   = &catalog.Error{Code: catalog.CodeReadOnly, Message: "this server has no config folder to write into"}
	refuseDegraded  = &catalog.Error{Code: catalog.CodeUnavailable,
		Message: "the store has failed; writes are refused until it is back"}
)

// write makes an edit in the name of the request's key. A dry run that succeeds returns a *dryRun, with which the handler
// ends.
func (s *Server) write(r *request, e *catalog.Edit) error {
	switch {
	case s.o.Files == nil:
		return refuseWriting
	case !s.resolver.Writable():
		return refuseDegraded
	case !s.resolver.Auditable():
		return catalog.ErrUnaudited
	}
	e.By, e.Message, e.Covers, e.DryRun = r.author(), r.message, coverageOf(r.key), r.dry
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

// author names the request's key, and whom it acts for, as the author of a change.
func (r *request) author() catalog.Author {
	return catalog.Author{Door: catalog.DoorAPI, Actor: cmp.Or(r.actor, r.key.Name), Key: r.key.Name,
		RequestID: requestID(r.ctx)}
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
func (s *Server) tellCommit(r *request, write int64) error {
	commit, pushed, overruled := s.o.Git.Committed(write)
	h := &r.ctx.Response.Header
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
func (s *Server) update(r *request, p *catalog.Project, change func(p *catalog.ProjectConfig) error) error {
	return s.write(r, &catalog.Edit{Project: &catalog.ProjectEdit{UUID: p.UUID, Change: change}})
}

// matches returns an error if the request has an If-Match that does not name etag, the resource's (RFC 9110, 13.1.1).
func (r *request) matches(etag string) error {
	lists := r.ctx.Request.Header.PeekAll(fasthttp.HeaderIfMatch)
	if len(lists) == 0 || slices.ContainsFunc(lists, func(list []byte) bool { return web.StrongMatch(list, etag) }) {
		return nil
	}
	return refuseMatch
}

// matchesSaved is matches for a call that creates or changes a resource that exists: If-None-Match may demand that it
// does not exist, or differs (RFC 9110, 13.1.2).
func (r *request) matchesSaved(etag string) error {
	if err := r.matches(etag); err != nil {
		return err
	}
	if web.NotModified(&r.ctx.Request.Header, etag) {
		return refuseNoneMatch
	}
	return nil
}

// matchesNone is matchesSaved for a resource that does not exist: any If-Match fails.
func (r *request) matchesNone() error {
	if len(r.ctx.Request.Header.PeekAll(fasthttp.HeaderIfMatch)) > 0 {
		return refuseMatch
	}
	return nil
}

// succeedSaved answers a call that has created or changed a resource of a kind.
func (r *request) succeedSaved(kind string, created bool, data []byte, etag, location string) {
	if !created {
		r.succeedWritten(kind+" updated", data, etag)
		return
	}
	r.succeedCreated(kind+" created", data, location)
	r.ctx.Response.Header.SetCanonical(headerETag, []byte(etag))
}

// succeedCreated answers 201 with the location of the new resource.
func (r *request) succeedCreated(message string, data []byte, location string) {
	r.succeed(message, data)
	r.ctx.Response.SetStatusCode(http.StatusCreated)
	r.ctx.Response.Header.SetCanonical(headerLocation, []byte(location))
}

// succeedWritten answers a PUT with the resource and its ETag.
func (r *request) succeedWritten(message string, data []byte, etag string) {
	r.ctx.Response.Header.SetCanonical(headerETag, []byte(etag))
	r.succeed(message, data)
}

func projectLocation(id int64) string { return "/api/platform/projects/" + strconv.FormatInt(id, 10) }

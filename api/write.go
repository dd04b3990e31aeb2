package api

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"fingerpost/configsrc"
	"fingerpost/resolver/catalog"
)

// Files is where writes go: the config folder. *configsrc.Source is one, and says what its methods promise.
type Files interface {
	CreateProject(ctx context.Context, p *catalog.Project) error
	UpdateProject(ctx context.Context, uuid catalog.UUID, change func(p *catalog.ProjectConfig) error) error
	DeleteProject(ctx context.Context, uuid catalog.UUID, check func(p *catalog.ProjectConfig) error) error
}

// writeTime is how long a write waits for its turn.
const writeTime = 10 * time.Second

var (
	ifMatch        = []byte(fasthttp.HeaderIfMatch)
	headerLocation = []byte(fasthttp.HeaderLocation)

	refuseMatch     = &refusal{Code: catalog.CodePrecondition, Message: "the resource is not what If-Match names; read it again"}
	refuseNoneMatch = &refusal{Code: catalog.CodePrecondition, Message: "there is what If-None-Match rules out"}
	refuseWriting   = &refusal{Code: catalog.CodeReadOnly, Message: "this server has no config folder to write into"}
	refuseDegraded  = &refusal{Code: catalog.CodeUnavailable, Message: "the store has failed; writes are refused until it is back"}
)

// write runs f, which changes the files on the request's behalf.
func (s *Server) write(r *request, f func(ctx context.Context, files Files) error) error {
	switch {
	case s.files == nil:
		return refuseWriting
	case !s.resolver.Writable():
		return refuseDegraded
	}
	ctx, cancel := context.WithTimeout(context.Background(), writeTime)
	defer cancel()
	ctx = configsrc.WithAuthor(ctx, configsrc.Author{Key: r.key.Name, RequestID: requestID(r.ctx)})
	ctx = configsrc.WithCoverage(ctx, r.covers())
	return f(ctx, s.files)
}

// covers is the request's key's Covers, nil where the key reaches every project.
func (r *request) covers() configsrc.Coverage {
	if r.key.EveryProject() {
		return nil
	}
	return r.key.Covers
}

// update changes a project's block.
func (s *Server) update(r *request, p *catalog.Project, change func(p *catalog.ProjectConfig) error) error {
	return s.write(r, func(ctx context.Context, files Files) error { return files.UpdateProject(ctx, p.UUID, change) })
}

// matches is nil where the request's If-Match, if it has one, names the resource's present ETag (RFC 9110, 13.1.1), which
// is asked for only then.
func (r *request) matches(etag func() string) error {
	h := &r.ctx.Request.Header
	if h.PeekCanonical(ifMatch) == nil {
		return nil
	}
	is := etag()
	for _, list := range h.PeekAll(fasthttp.HeaderIfMatch) {
		if strongMatch(list, is) {
			return nil
		}
	}
	return refuseMatch
}

// matchesSaved is matches for a call that makes or changes a resource, where there is one: If-None-Match may say that there
// must be none, or none like it (RFC 9110, 13.1.2).
func (r *request) matchesSaved(etag string) error {
	if err := r.matches(func() string { return etag }); err != nil {
		return err
	}
	if notModified(&r.ctx.Request.Header, etag) {
		return refuseNoneMatch
	}
	return nil
}

// matchesNone is matchesSaved where there is no resource yet: If-Match names nothing then.
func (r *request) matchesNone() error {
	if r.ctx.Request.Header.PeekCanonical(ifMatch) != nil {
		return refuseMatch
	}
	return nil
}

// succeedSaved answers a call that has made or changed a resource, of the kind that is named.
func (s *Server) succeedSaved(ctx *fasthttp.RequestCtx, kind string, created bool, data []byte, etag, location string) {
	if !created {
		s.succeedWritten(ctx, kind+" updated", data, etag)
		return
	}
	s.succeedCreated(ctx, kind+" created", data, location)
	ctx.Response.Header.SetCanonical(headerETag, []byte(etag))
}

// succeedCreated answers 201 with where the new resource is.
func (s *Server) succeedCreated(ctx *fasthttp.RequestCtx, message string, data []byte, location string) {
	s.succeed(ctx, message, data)
	ctx.Response.SetStatusCode(http.StatusCreated)
	ctx.Response.Header.SetCanonical(headerLocation, []byte(location))
}

// succeedWritten answers a PUT: the resource as it is now, and its ETag.
func (s *Server) succeedWritten(ctx *fasthttp.RequestCtx, message string, data []byte, etag string) {
	ctx.Response.Header.SetCanonical(headerETag, []byte(etag))
	s.succeed(ctx, message, data)
}

func (s *Server) succeedDeleted(ctx *fasthttp.RequestCtx, message string) {
	s.succeed(ctx, message, []byte("null"))
}

func projectLocation(id int64) string { return "/api/platform/projects/" + strconv.FormatInt(id, 10) }

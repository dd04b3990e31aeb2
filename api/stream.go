package api

import (
	"fmt"
	"io"
	"runtime/debug"
	"slices"
	"time"

	"github.com/valyala/fasthttp"

	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

// streamChunk is about how many bytes of a streamed list are in memory at once.
const streamChunk = 32 << 10

// A projectStream is the body of a list of all projects, made while it is read. It holds ids only, so that a slow
// reader and a long list hold neither rows nor the store.
type projectStream struct {
	server  *Server
	ids     []int64
	buf     []byte // generated and not yet read
	begun   bool
	hasRows bool
	ended   bool
}

// Read implements io.Reader. A failure cuts the connection in the middle of the body, so that no client takes a part of
// the list for the whole.
func (p *projectStream) Read(b []byte) (n int, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			p.server.log.Error("list of projects panicked", "cause", cause, "stack", string(debug.Stack()))
			err = fmt.Errorf("list projects: %v", cause)
		}
	}()
	if len(p.buf) == 0 {
		if p.ended {
			return 0, io.EOF
		}
		if err := p.fill(); err != nil {
			p.server.log.Error("list of projects failed", "error", err)
			return 0, err
		}
	}
	n = copy(b, p.buf)
	p.buf = p.buf[n:]
	return n, nil
}

func (p *projectStream) fill() error {
	p.buf = p.buf[:0]
	if !p.begun {
		p.begun = true
		p.buf = append(beginSuccess(p.buf, "projects found"), '[')
	}
	for len(p.buf) < streamChunk && len(p.ids) > 0 {
		id := p.ids[0]
		p.ids = p.ids[1:]
		project, err := p.server.resolver.ProjectByID(id)
		if isNotFound(err) {
			continue // deleted since ids was read
		}
		if err != nil {
			return err
		}
		if p.hasRows {
			p.buf = append(p.buf, ',')
		}
		p.hasRows = true
		p.buf = resolver.AppendProject(p.buf, project)
	}
	if len(p.ids) == 0 {
		p.ended = true
		p.buf = p.server.endEnvelope(append(p.buf, ']'), time.Now())
	}
	return nil
}

// headChunked answers HEAD for a GET whose body has no known length. With a body stream fasthttp would send the empty
// line that ends a chunked body, and the client would read it as part of the next answer.
func headChunked(ctx *fasthttp.RequestCtx) {
	if ctx.Request.Header.IsHTTP11() {
		ctx.Response.Header.SetContentLength(-1)
	}
}

// streamProjects answers with all projects in the order of their ids.
func (s *Server) streamProjects(r *request, descending bool) error {
	stream := &projectStream{server: s}
	err := s.resolver.EachProject(func(p *catalog.Project) bool {
		stream.ids = append(stream.ids, p.ID)
		return true
	})
	if err != nil {
		return err
	}
	if descending {
		slices.Reverse(stream.ids)
	}
	r.ctx.Response.Header.SetContentTypeBytes(contentJSON)
	if r.ctx.IsHead() {
		headChunked(r.ctx)
		return nil
	}
	if !r.ctx.Request.Header.IsHTTP11() {
		// HTTP/1.0 knows no chunked bodies.
		body, err := io.ReadAll(stream)
		if err != nil {
			return err
		}
		r.ctx.Response.SetBodyRaw(body)
		return nil
	}
	r.ctx.Response.SetBodyStream(stream, -1)
	return nil
}

package platform

import (
	"fmt"
	"io"
	"log/slog"
	"runtime/debug"
	"slices"
	"time"

	"fingerpost/api/web"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
	"fingerpost/resolver/rowjson"
)

// streamChunk is about how many bytes of a streamed list are in memory at once.
const streamChunk = 32 << 10

// A listStream is the body of a list, made while it is read. It holds ids only, so that a slow reader and a long list
// hold neither rows nor the store.
type listStream struct {
	log       *slog.Logger
	from      rows
	message   string
	rows      []resolver.Found // to come
	appendRow rowAppender
	buf       []byte // generated and not yet read
	begun     bool
	hasRows   bool
	ended     bool
}

// rows reads single rows.
type rows interface {
	web.Projects
	Domain(projectID, domainID int64) (*catalog.Domain, error)
}

// A rowAppender reads a row and appends it to dst as JSON.
type rowAppender func(dst []byte, from rows, row resolver.Found) ([]byte, error)

// Read implements io.Reader. A failure cuts the connection in the middle of the body, so that no client takes a part of
// the list for the whole.
func (p *listStream) Read(b []byte) (n int, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			p.log.Error("list panicked", "cause", cause, "stack", string(debug.Stack()))
			err = fmt.Errorf("list rows: %v", cause)
		}
	}()
	if len(p.buf) == 0 {
		if p.ended {
			return 0, io.EOF
		}
		if err := p.fill(); err != nil {
			p.log.Error("list failed", "error", err)
			return 0, err
		}
	}
	n = copy(b, p.buf)
	p.buf = p.buf[n:]
	return n, nil
}

func (p *listStream) fill() error {
	p.buf = p.buf[:0]
	if !p.begun {
		p.begun = true
		p.buf = append(p.buf, web.EnvelopeBegin+p.message+web.EnvelopeData+"["...)
	}
	for len(p.buf) < streamChunk && len(p.rows) > 0 {
		row := p.rows[0]
		p.rows = p.rows[1:]
		before := len(p.buf)
		if p.hasRows {
			p.buf = append(p.buf, ',')
		}
		buf, err := p.appendRow(p.buf, p.from, row)
		if catalog.IsNotFound(err) {
			p.buf = p.buf[:before] // deleted since the rows were listed
			continue
		}
		if err != nil {
			return err
		}
		p.buf, p.hasRows = buf, true
	}
	if len(p.rows) == 0 {
		p.ended = true
		p.buf = web.EndEnvelope(append(p.buf, ']'), time.Now())
	}
	return nil
}

// streamProjects answers with all projects in the order of their ids.
func (a *API) streamProjects(r *web.Request, descending bool) error {
	var rows []resolver.Found
	err := a.Lists.EachProject(func(p *catalog.Project) bool {
		rows = append(rows, resolver.Found{Project: p.ID, ID: p.ID})
		return true
	})
	if err != nil {
		return err
	}
	if descending {
		slices.Reverse(rows)
	}
	return a.stream(r, "projects found", rows, appendProject)
}

func appendProject(dst []byte, from rows, row resolver.Found) ([]byte, error) {
	p, err := from.ProjectByID(row.ID)
	if err != nil {
		return dst, err
	}
	return rowjson.AppendProject(dst, p), nil
}

func appendDomain(dst []byte, from rows, row resolver.Found) ([]byte, error) {
	d, err := from.Domain(row.Project, row.ID)
	if err != nil {
		return dst, err
	}
	return rowjson.AppendDomain(dst, d), nil
}

// stream answers with a list whose rows are read while it is sent.
func (a *API) stream(r *web.Request, message string, rows []resolver.Found, appendRow rowAppender) error {
	stream := &listStream{log: a.Logger, from: a.Lists, message: message, rows: rows, appendRow: appendRow}
	r.Ctx.Response.Header.SetContentTypeBytes(web.ContentJSON)
	if r.Ctx.IsHead() {
		web.HeadChunked(r.Ctx)
		return nil
	}
	// HTTP/1.0 knows no chunked bodies, and the state of a proposal ends with the call.
	if a.proposes || !r.Ctx.Request.Header.IsHTTP11() {
		body, err := io.ReadAll(stream)
		if err != nil {
			return err
		}
		r.Ctx.Response.SetBodyRaw(body)
		return nil
	}
	r.Ctx.Response.SetBodyStream(stream, -1)
	return nil
}

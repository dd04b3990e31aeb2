package api

import (
	"github.com/valyala/fasthttp"

	"fingerpost/api/web"
)

// succeedTagged is succeed for a single resource: it adds an ETag, and answers 304 if the client has the resource
// already.
func (r *request) succeedTagged(message string, data []byte, etag string) {
	r.ctx.Response.Header.SetCanonical(headerETag, []byte(etag))
	r.ctx.Response.Header.SetCanonical(headerCacheControl, cacheChecked)
	if web.NotModified(&r.ctx.Request.Header, etag) {
		writeNotModified(r.ctx)
		return
	}
	r.succeed(message, data)
}

// writeNotModified makes the answer a 304, which has neither a body nor a Content-Type.
func writeNotModified(ctx *fasthttp.RequestCtx) {
	ctx.Response.ResetBody()
	ctx.Response.Header.SetNoDefaultContentType(true)
	ctx.Response.SetStatusCode(fasthttp.StatusNotModified)
}

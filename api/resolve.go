package api

import (
	"net/http"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"fingerpost/api/gate"
	"fingerpost/api/web"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
	"fingerpost/resolver/rowjson"
)

const resolvePath = gate.ResolvePath

var (
	resolveBegin = []byte(web.EnvelopeBegin + "domain resolved" + web.EnvelopeData)
)

// resolve answers GET /projects/resolve (api/README.md, Resolve). A hit and a 304 allocate nothing; the fast path
// answers most of them before they reach this function (fastpath.go). It returns the request's key, nil if there is no
// good one.
func (s *Server) resolve(ctx *fasthttp.RequestCtx, c *conn, now time.Time) (*resolver.Key, error) {
	ctx.Response.Header.SetCanonical(web.HeaderVary, web.VaryPlatform)
	key, err := s.authorize(ctx, c, Platform, now)
	if err != nil {
		return nil, err
	}
	key = key.For(resolvePermissions)
	s.beginSpan(ctx, c, resolvePath, key)
	answer, shown := c.asked.answer, c.asked.shown
	if answer == nil {
		if err := s.awaitPosition(ctx); err != nil {
			return key, err
		}
		shown = s.resolver.Published()
		if answer, err = s.ask(ctx, key); err != nil {
			return key, err
		}
	}
	if key.Allow&resolvePermissions == 0 {
		return key, web.RefuseAllow(resolvePermissions)
	}
	if refused := web.RefusedAnswer(key, answer); refused != nil {
		return key, refused
	}
	s.writeAnswer(ctx, c, answer, shown, now)
	return key, nil
}

// ask returns the resolver's answer to the query string, or the query's problems as an error.
func (s *Server) ask(ctx *fasthttp.RequestCtx, key *resolver.Key) (*resolver.Answer, error) {
	q := parseResolveQuery(ctx.URI().QueryString())
	if q.domains != 1 || q.forms > 0 || q.labels > 0 || q.domainBad {
		if problems := q.problems(); len(problems) > 0 {
			return nil, web.Invalid(problems...)
		}
	}
	form := resolver.Nested
	if q.forms > 0 {
		form = flatForm(key)
	}
	if q.labels > 0 {
		form = form.WithLabels()
	}
	answer, err := traced{s.resolver}.Resolve(ctx, q.domain, form)
	if err == nil && form.OpenTo(key, answer.ProjectID) != form {
		return traced{s.resolver}.Resolve(ctx, q.domain, form.OpenTo(key, answer.ProjectID))
	}
	return answer, err
}

// flatForm returns the flat form that the key may see: with or without secrets. Form.OpenTo says of which projects.
func flatForm(key *resolver.Key) resolver.Form {
	if key.Anywhere()&catalog.MaySecrets != 0 {
		return resolver.FlatSecrets
	}
	return resolver.Flat
}

// writeAnswer answers 200, or 304 if the client has the answer already.
func (s *Server) writeAnswer(ctx *fasthttp.RequestCtx, c *conn, answer *resolver.Answer, shown *resolver.Published,
	now time.Time) {
	h := &ctx.Response.Header
	var buf [64]byte
	h.SetCanonical(web.HeaderETag, append(buf[:0], answer.ETag...))
	h.SetCanonical(web.HeaderCacheControl, s.cacheControl)
	s.showPosition(ctx, shown)
	if web.NotModified(&ctx.Request.Header, answer.ETag) {
		web.WriteNotModified(ctx)
		return
	}
	h.SetContentTypeBytes(web.ContentJSON)
	body := append(append(c.body[:0], resolveBegin...), answer.Data...)
	body = web.EndEnvelope(body, now)
	ctx.Response.SetBodyRaw(body)
	if cap(body) <= keptBody {
		c.body = body
	}
}

// maxBatch is the largest number of domains in a batch.
const maxBatch = 1000

// resolveBatch answers POST /projects/resolve, with which a gateway warms up in one round trip. Each domain has a
// status of its own; the batch as a whole fails only if it is malformed.
func (s *Server) resolveBatch(r *web.Request) error {
	form := resolver.Nested
	q := parseResolveQuery(r.Ctx.URI().QueryString())
	if problems := q.formProblems(); len(problems) > 0 {
		return web.Invalid(problems...)
	}
	if q.forms > 0 {
		form = flatForm(r.Key)
	}
	if q.labels > 0 {
		form = form.WithLabels()
	}
	if err := r.Permit(); err != nil {
		return err
	}
	body, unknown, err := r.ReadBody([]string{"domains"}, nil)
	if err != nil {
		return err
	}
	domains, problems := batchDomains(body)
	if problems = append(problems, unknown...); len(problems) > 0 {
		return web.Invalid(problems...)
	}
	data := make([]byte, 0, 1024*min(len(domains), 64))
	for i, domain := range domains {
		data = append(data, "[,"[min(i, 1)])
		data = s.appendBatchItem(data, r, domain, form)
	}
	r.Succeed("domains resolved", append(data, ']'))
	return nil
}

// batchDomains reads the field domains of the body.
func batchDomains(body *web.Object) (domains []string, problems catalog.Problems) {
	list, ok := body.Values["domains"].([]any)
	if !ok || len(list) == 0 || len(list) > maxBatch {
		problems.Addf("domains", "must be a list of 1 to %d host names", maxBatch)
		return nil, problems
	}
	for i, v := range list {
		domain, ok := v.(string)
		if !ok {
			problems.Addf("domains["+strconv.Itoa(i)+"]", "must be a string")
		}
		domains = append(domains, domain)
	}
	return domains, problems
}

func (s *Server) appendBatchItem(dst []byte, r *web.Request, domain string, form resolver.Form) []byte {
	dst = append(dst, `{"domain":`...)
	dst = rowjson.AppendString(dst, domain)
	answer, err := s.resolver.Resolve([]byte(domain), form)
	if err == nil && form.OpenTo(r.Key, answer.ProjectID) != form {
		answer, err = s.resolver.Resolve([]byte(domain), form.OpenTo(r.Key, answer.ProjectID))
	}
	var refused *catalog.Error
	if err == nil {
		refused = web.RefusedAnswer(r.Key, answer)
	} else {
		refused = s.shown(r.Ctx, err)
	}
	status := http.StatusOK
	if refused != nil {
		status = web.StatusOf(refused.Code)
	}
	dst = append(dst, `,"status":`...)
	dst = strconv.AppendInt(dst, int64(status), 10)
	if refused != nil {
		dst = append(dst, `,"code":"`...)
		dst = append(dst, refused.Code...)
		return append(dst, `","result":null,"etag":null}`...)
	}
	dst = append(dst, `,"code":null,"result":`...)
	dst = append(dst, answer.Data...)
	dst = append(dst, `,"etag":`...)
	dst = rowjson.AppendString(dst, answer.ETag)
	return append(dst, '}')
}

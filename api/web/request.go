package web

import (
	"cmp"
	"context"
	"strconv"
	"strings"

	"github.com/valyala/fasthttp"

	"fingerpost/api/gate"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
	"fingerpost/resolver/trace"
)

// A Request is what a handler works on. It is valid until the handler returns.
type Request struct {
	Ctx      *fasthttp.RequestCtx
	Conn     *gate.Conn
	Charge   *BodyCharge
	Path     string             // the route's, with parameters in braces
	Allow    catalog.Permission // the route's
	Key      *resolver.Key      // for what the request Needs, see resolver.Key.For; nil if the route needs none
	Payer    string             // whose share the body and the forwarding take, where no key pays; see Route.Admit
	Admitted any                // what Route.Admit has found
	Door     catalog.Door       // through which it came
	Actor    string             // of a write: the X-Actor header field, or ""
	Message  string             // of a write: the X-Change-Message header field, or ""
	Propose  string             // the X-Propose header field: the proposal that it is about, or ""
	Dry      bool               // of a write: it only shows what it would change
	Span     *trace.Span        // nil: the request is not traced
	body     *[]byte            // see BodyText; nil: not read yet
	ignored  string             // the fields of the body, if the call takes none of them
}

// Context returns a context with the request's span. It does not end with the request.
func (r *Request) Context() context.Context { return trace.Into(context.Background(), r.Span) }

// Permit returns an error if the key does not allow the operation. Handlers call it after checking path and query.
func (r *Request) Permit() error {
	if may := r.Needs(); r.Key.Allow&may == 0 {
		return RefuseAllow(may)
	}
	return nil
}

// Needs returns the permissions of which the operation needs one. Who may propose a change may also see what it would
// change.
func (r *Request) Needs() catalog.Permission {
	if (r.Propose != "" || r.Dry) && r.Allow == catalog.MayWrite {
		return catalog.MayWrite | catalog.MayPropose
	}
	return r.Allow
}

// IDBits is the size of ids (api/README.md, Answers).
const IDBits = 53

// ID reads a path parameter that is a positive decimal integer below 2^53 (api/README.md, Requests).
func (r *Request) ID(name string) (id int64, problems catalog.Problems) {
	text, _ := r.Ctx.UserValue(name).(string)
	n, err := strconv.ParseUint(text, 10, IDBits)
	if err != nil || n == 0 {
		problems.Addf(name, "must be a positive decimal integer")
	}
	return int64(n), problems
}

// PaidBy names whose share the request takes: the key's id, or what Route.Admit has set.
func (r *Request) PaidBy() string {
	if r.Key != nil {
		return r.Key.ID
	}
	return r.Payer
}

// Author names the request's key, and whom it acts for, as the author of a change.
func (r *Request) Author() catalog.Author {
	return catalog.Author{Door: r.Door, Actor: cmp.Or(r.Actor, r.Key.Name), Key: r.Key.Name, Subject: r.Key.Who(),
		RequestID: RequestID(r.Ctx)}
}

// DryRunParam is the query parameter that makes a write a dry run (api/README.md, Dry run).
const DryRunParam = "dryRun"

// ReadDryRun reads the parameter. A call that changes no file has no dry run: somebody who asks for one must not get
// the real thing, such as a mail that is sent.
func (r *Request) ReadDryRun() error {
	q := ParseQuery(r.Ctx.URI().QueryString(), DryRunParam)
	value, given := q.Values[DryRunParam]
	switch {
	case len(q.Problems) > 0:
		return Invalid(q.Problems...)
	case given && r.Allow != catalog.MayWrite:
		return InvalidField(DryRunParam, "is not for this call: it changes no file")
	case given && value != "1" && value != "0":
		return InvalidField(DryRunParam, "must be 1 (check and show the change) or 0 (make it)")
	}
	r.Dry = value == "1"
	return nil
}

// IsMailPath reports whether errors on the path have the mail service's form.
func IsMailPath(path string) bool {
	rest, ok := strings.CutPrefix(path, "/api/mail")
	return ok && (rest == "" || rest[0] == '/')
}

// HeaderServiceName is the header field in which a caller of the mail API names itself.
const HeaderServiceName = "X-Internal-Service-Name"

// ServiceName returns the name of the calling service. It is well formed if the request's key was good.
func ServiceName(ctx *fasthttp.RequestCtx) string {
	return string(ctx.Request.Header.Peek(HeaderServiceName))
}

package web

import (
	"errors"
	"slices"

	"fingerpost/api/gate"
	"fingerpost/resolver/catalog"
)

const headerIgnored = "X-Ignored-Fields"

// ReadBody reads and decodes a request's body, which must be a JSON object. Call it last: everything that can be
// checked without the body is checked first, and the body stays unread until then. The object holds no memory of the
// request. fields are those that the call takes, and readOnly others that an answer may have. All fields but the former
// are ignored, and named in the answer's X-Ignored-Fields. With "Prefer: handling=strict" a field that is neither is a
// problem.
func (r *Request) ReadBody(fields, readOnly []string) (body *Object, problems catalog.Problems, err error) {
	h := &r.Ctx.Request.Header
	if err := CheckMediaType(h); err != nil {
		return nil, nil, err
	}
	text, err := r.BodyText()
	if err != nil {
		return nil, nil, err
	}
	if body, err = DecodeBody(text); err != nil {
		return nil, nil, err
	}
	var ignored []string
	strict := PrefersStrict(h)
	for _, name := range body.Names {
		switch {
		case slices.Contains(fields, name):
		case strict && !slices.Contains(readOnly, name):
			problems.Addf(name, "is not a field of this request")
		default:
			ignored = append(ignored, name)
		}
	}
	if len(ignored) > 0 {
		all := IgnoredText(ignored)
		r.Ctx.Response.Header.Set(headerIgnored, all)
		if len(ignored) == len(body.Names) {
			r.ignored = all
		}
	}
	return body, problems, nil
}

// BodyText reads a request's body. It may be called again.
func (r *Request) BodyText() (text []byte, err error) {
	if r.body != nil {
		return *r.body, nil
	}
	text, err = r.Conn.ReadBody(func(n int64) error { return r.Charge.Take(r.PaidBy(), n) })
	if refused := (*gate.Refusal)(nil); errors.As(err, &refused) {
		return nil, RefusedByGate(refused)
	}
	if err == nil {
		r.body = &text
	}
	return text, err
}

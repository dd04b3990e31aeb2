package mailapi

import (
	"context"
	"errors"
	"time"

	"fingerpost/api/web"
	"fingerpost/mailer/inbound"
	"fingerpost/resolver/catalog"
)

// A Desk takes the outcomes that providers of mail tell; *inbound.Desk is one.
type Desk interface {
	Admit(name string, authorization [][]byte) (*inbound.Block, error)
	Take(ctx context.Context, b *inbound.Block, message []byte, by catalog.Author) (inbound.Result, error)
}

const inboundPath = "/api/mail/inbound/{name}"

var (
	refuseSecrets = &catalog.Error{Code: catalog.CodeRateLimited,
		Message: "too many wrong secrets came from this address; try again later"}
	refuseNoDesk  = catalog.Unavailable("this node takes no outcomes")
	refuseInbound = catalog.Unavailable("this server runs with --read-only: nothing can be changed here")
)

// takeTime is how long a message may take: some have to ask the provider.
const takeTime = 15 * time.Second

// inboundRoute is the call of providers: it wants no key, and takes any content type.
func (a *API) inboundRoute() web.Route {
	rt := web.Call("POST", inboundPath, 0, web.ByAuthority, a.takeInbound)
	rt.Admit = a.admitInbound
	return rt
}

// admitInbound checks the secret, before anything of the body is read. A wrong one and an unknown name are answered alike.
// A caller without a secret is asked for it, as Amazon SNS expects, and has guessed nothing.
func (a *API) admitInbound(r *web.Request) error {
	r.Ctx.Response.Header.SetCanonical(web.HeaderCacheControl, web.CacheNever)
	if a.Inbound == nil {
		return refuseNoDesk
	}
	name, _ := r.Ctx.UserValue("name").(string)
	b, err := a.Inbound.Admit(name, r.Ctx.Request.Header.PeekAll("Authorization"))
	switch {
	case err == nil:
		r.Payer, r.Admitted = "inbound "+b.Name, b
		return nil
	case errors.Is(err, inbound.ErrWrongSecret):
		if wait := a.Throttle(r.Conn.Peer()); wait > 0 {
			web.RetryAfter(r.Ctx, wait)
			return refuseSecrets
		}
	case !errors.Is(err, inbound.ErrNoSecret):
		return err
	}
	return web.RefuseSecret
}

// takeInbound answers POST /inbound/{name}.
func (a *API) takeInbound(r *web.Request) error {
	if a.ReadOnly {
		return refuseInbound
	}
	b, is := r.Admitted.(*inbound.Block)
	if !is {
		panic("mailapi: a provider's message without its block: impossible, admitInbound came before")
	}
	message, err := r.BodyText()
	if err != nil {
		return err
	}
	if _, err := web.DecodeBody(message); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), takeTime)
	defer cancel()
	result, err := a.Inbound.Take(ctx, b, message,
		catalog.Author{Door: catalog.DoorInbound, RequestID: web.RequestID(r.Ctx)})
	if err != nil {
		if e, is := errors.AsType[*catalog.Error](err); is && e.Code == catalog.CodeRateLimited {
			web.RetryAfter(r.Ctx, time.Hour)
		}
		return err
	}
	return r.SucceedJSON("outcomes taken", &result)
}

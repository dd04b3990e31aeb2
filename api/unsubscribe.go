package api

import (
	"bufio"
	"bytes"
	"context"
	"embed"
	"errors"
	"html/template"
	"net/http"
	"time"

	"github.com/valyala/fasthttp"

	"fingerpost/api/web"
	"fingerpost/resolver/catalog"
	"fingerpost/resolver/signedlink"
)

// The links with which recipients leave the mail of a category (RFC 8058). A POST, with any body, leaves, and is answered
// with nothing. A GET shows a page with a button and never acts, because scanners of mail open every link. People get
// pages and no envelopes, and no answer names an address.

//go:embed unsubscribe.html
var unsubscribeFiles embed.FS

var unsubscribePages = template.Must(template.ParseFS(unsubscribeFiles, "unsubscribe.html"))

// An unsubscribePage is what a person sees.
type unsubscribePage struct {
	Title, Text string
	Button      bool
}

// unsubscribePolicy is the Content-Security-Policy of the pages.
const unsubscribePolicy = "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'; " +
	"frame-ancestors 'none'"

// toUnsubscribe reports whether a request is that of a recipient's link.
func toUnsubscribe(c *conn, path []byte) bool {
	return c.services&(Platform|Mail|Console) != 0 && bytes.HasPrefix(path, []byte(signedlink.RecipientPath))
}

// answerUnsubscribe answers a recipient's link. The body of a request is never read.
func (s *Server) answerUnsubscribe(ctx *fasthttp.RequestCtx) {
	h := &ctx.Response.Header
	h.SetCanonical(web.HeaderCacheControl, web.CacheNever)
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Robots-Tag", "noindex")
	var err error
	switch post, refused := ctx.IsPost(), s.ready.refusal(); {
	case !post && !ctx.IsGet() && !ctx.IsHead():
		h.Set(fasthttp.HeaderAllow, "GET, HEAD, POST")
		s.showUnsubscribe(ctx, http.StatusMethodNotAllowed, unsubscribePage{Title: "This link can only be opened"})
	case refused != nil:
		err = refused
	case s.o.Cluster.Edge != nil:
		err = s.forwardUnsubscribe(ctx)
	case post:
		err = s.unsubscribe(ctx)
	default:
		err = s.offerUnsubscribe(ctx)
	}
	if err != nil {
		s.failUnsubscribe(ctx, err)
	}
	s.finish(ctx, signedlink.RecipientPath, nil, nil)
}

// failUnsubscribe tells a person that nothing has happened. What is wrong with a link is not told.
func (s *Server) failUnsubscribe(ctx *fasthttp.RequestCtx, err error) {
	if errors.Is(err, signedlink.ErrUnknown) || catalog.IsNotFound(err) {
		s.showUnsubscribe(ctx, http.StatusNotFound, unsubscribePage{Title: "This link is not known here",
			Text: "Perhaps it was cut: copy all of it."})
		return
	}
	status := web.StatusOf(s.shown(ctx, err).Code) // logs the cause
	if status == http.StatusServiceUnavailable {
		web.RetryAfter(ctx, 5*time.Second)
	}
	s.showUnsubscribe(ctx, status, unsubscribePage{Title: "This does not work at the moment",
		Text: "Nothing was changed. Please try again later."})
}

// opened returns what the link of a request ends, and the project that it is of.
func (s *Server) opened(ctx *fasthttp.RequestCtx) (of signedlink.Subscription, p *catalog.Project, err error) {
	link := string(bytes.TrimPrefix(ctx.URI().PathOriginal(), []byte(signedlink.RecipientPath)))
	if of, err = s.rooms.links.Open(link); err != nil {
		return of, nil, err
	}
	p, err = s.resolver.ProjectByID(of.ProjectID)
	return of, p, err
}

// listed reports whether the list of a project has what a link puts on it.
func (s *Server) listed(of *signedlink.Subscription) (bool, error) {
	there, err := s.resolver.Suppressions(of.ProjectID, of.Address)
	entry := of.Entry()
	for i := range there {
		if there[i].Key() == entry.Key() {
			return true, err
		}
	}
	return false, err
}

// offerUnsubscribe shows the page of a link.
func (s *Server) offerUnsubscribe(ctx *fasthttp.RequestCtx) error {
	of, p, err := s.opened(ctx)
	if err != nil {
		return err
	}
	done, err := s.listed(&of)
	switch {
	case err != nil:
		return err
	case done:
		s.showUnsubscribe(ctx, http.StatusOK, unsubscribePage{Title: p.Name,
			Text: "You get no more mail of this kind (" + of.Category + ") from " + p.Name + "."})
	default:
		s.showUnsubscribe(ctx, http.StatusOK, unsubscribePage{Title: p.Name, Button: true,
			Text: "Do you want no more mail of this kind (" + of.Category + ") from " + p.Name + "?"})
	}
	return nil
}

var refuseUnsubscribe = catalog.Unavailable("this server runs with --read-only: nothing can be changed here")

// unsubscribe puts the address of a link onto the list. A repeat changes nothing.
func (s *Server) unsubscribe(ctx *fasthttp.RequestCtx) error {
	of, _, err := s.opened(ctx)
	if err != nil {
		return err
	}
	if s.o.Config.ReadOnly {
		return refuseUnsubscribe
	}
	done, err := s.listed(&of)
	if err == nil && !done {
		entry := of.Entry()
		entry.CreatedAt = time.Now().UTC().Truncate(time.Microsecond)
		_, err = s.resolver.Suppress(of.ProjectID, []catalog.Suppression{entry},
			catalog.Author{Door: catalog.DoorLink, RequestID: web.RequestID(ctx)}, false)
	}
	if err != nil {
		return err
	}
	// A browser that has posted the button's form shows the page again, which says what happened. It is not a redirect:
	// RFC 8058 forbids that, and receivers do not look at the field.
	ctx.Response.Header.Set("Refresh", "0; url="+string(ctx.URI().PathOriginal()))
	ctx.Response.Header.SetNoDefaultContentType(true)
	return nil
}

// showUnsubscribe answers with a page.
func (s *Server) showUnsubscribe(ctx *fasthttp.RequestCtx, status int, page unsubscribePage) {
	var b bytes.Buffer
	if err := unsubscribePages.Execute(&b, page); err != nil {
		panic("api: the page of a link cannot be made: impossible, it has texts only: " + err.Error())
	}
	h := &ctx.Response.Header
	h.SetContentType("text/html; charset=utf-8")
	h.Set("Content-Security-Policy", unsubscribePolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	ctx.Response.SetStatusCode(status)
	ctx.Response.SetBodyRaw(b.Bytes())
}

// forwardUnsubscribe has the authority answer. It gets the method and the path alone.
func (s *Server) forwardUnsubscribe(ctx *fasthttp.RequestCtx) error {
	var to fasthttp.Request
	to.Header.SetMethodBytes(ctx.Method())
	to.SetRequestURIBytes(ctx.URI().PathOriginal())
	to.Header.SetHost("authority")
	to.Header.SetCanonical(web.HeaderRequestID, []byte(web.RequestID(ctx)))
	to.SetConnectionClose()
	var wire bytes.Buffer
	w := bufio.NewWriter(&wire)
	if err := errors.Join(to.Write(w), w.Flush()); err != nil {
		return err
	}
	answer, err := s.o.Cluster.Edge.Forward(context.Background(), signedlink.RecipientPath, wire.Bytes())
	if err != nil {
		return err
	}
	return s.takeAnswer(ctx, answer)
}

package console

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"time"

	"fingerpost/api/client"
	"fingerpost/resolver/catalog"
	"fingerpost/resolver/signedlink"
)

// Customers is what customers see by a link, without a key: one domain each. Its errors for a domain that is not the
// project's any more are NOT_FOUND.
type Customers interface {
	signedlink.Store
	// Note appends an entry to the audit trail.
	Note(action string, by catalog.Author, changes ...catalog.FieldChange)
	View(ctx context.Context, project catalog.UUID, domain string) (catalog.VerificationView, error)
	Check(ctx context.Context, project catalog.UUID, domain string) (v catalog.VerificationView,
		retryAfter time.Duration, err error)
}

// sharedEvery is the interval between two checks of a domain that customers make.
const sharedEvery = 30 * time.Second

// sharedDomains are the links, and when domains were last checked by one.
type sharedDomains struct {
	links   *signedlink.Customers
	mu      sync.Mutex // guards what follows
	checked map[signedlink.Domain]time.Time
}

// maxShared bounds how many domains are remembered.
const maxShared = 10_000

// takeCheck lets a domain be checked, or returns how long that has to wait.
func (d *sharedDomains) takeCheck(of signedlink.Domain, now time.Time) (wait time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if wait = sharedEvery - now.Sub(d.checked[of]); wait > 0 {
		return wait
	}
	if d.checked == nil {
		d.checked = map[signedlink.Domain]time.Time{}
	}
	for old, at := range d.checked {
		if len(d.checked) < maxShared && now.Sub(at) < sharedEvery {
			break
		}
		delete(d.checked, old)
	}
	d.checked[of] = now
	return 0
}

// A sharedView is a customer's page, or with a Message why there is none.
type sharedView struct {
	Name string
	verificationView
	Title, Message string
	Back           string // the path of the domain's page, where there is one
}

// offerLink adds a link for the customer to the page of a domain.
func (c *Console) offerLink(r *http.Request, s *session, v *domainView) {
	if c.o.Customers == nil || !v.Check {
		return
	}
	made, err := c.shared.links.Make(signedlink.Domain{Project: v.Project.UUID, Name: v.Domain.Name}, time.Now())
	if err != nil {
		c.o.Logger.Warn("a link for a customer cannot be made", "error", err)
		return
	}
	v.Link, v.Origin, v.EndLinks = Prefix+"domain/"+made, origin(r), s.Key().mayEverywhere(catalog.MayWrite)
}

// endLinks ends the links of all customers.
func (c *Console) endLinks(w http.ResponseWriter, r *http.Request, s *session) error {
	if c.o.Customers == nil {
		return noPage
	}
	if k := s.Key(); !k.mayEverywhere(catalog.MayWrite) {
		return k.refuse("Ending the links of all customers", catalog.MayWrite, true)
	}
	if err := c.shared.links.EndAll(); err != nil {
		return failureFrom(err)
	}
	key := s.Key().Name
	c.o.Customers.Note(catalog.AuditEndLinks, catalog.Author{Door: catalog.DoorConsole, Actor: cmp.Or(s.actor, key),
		Key: key, Subject: s.Key().Subject})
	c.o.Logger.Info("all links of customers have ended", "key", key, "person", s.actor)
	s.say("All links of customers have ended. New ones can be made.")
	return seeOther(w, r, ownPath(r.PostFormValue("to")))
}

// showShared answers a customer's page.
func (c *Console) showShared(w http.ResponseWriter, r *http.Request) {
	of, found := c.openShared(w, r)
	if !found {
		return
	}
	view, err := c.o.Customers.View(r.Context(), of.Project, of.Name)
	if err != nil {
		c.refuseShared(w, r, err)
		return
	}
	c.answerShared(w, r, http.StatusOK, sharedView{Name: of.Name, verificationView: verificationOf(&view)})
}

// checkShared has the domain of a customer's page checked.
func (c *Console) checkShared(w http.ResponseWriter, r *http.Request) {
	of, found := c.openShared(w, r)
	if !found {
		return
	}
	if _, err := c.o.Customers.View(r.Context(), of.Project, of.Name); err != nil { // it takes no turn if it is gone
		c.refuseShared(w, r, err)
		return
	}
	if wait := c.shared.takeCheck(of, time.Now()); wait > 0 {
		c.later(w, r, wait, sharedView{Message: "This domain was checked a moment ago.", Back: r.URL.EscapedPath()})
		return
	}
	if _, _, err := c.o.Customers.Check(r.Context(), of.Project, of.Name); err != nil {
		c.refuseShared(w, r, err)
		return
	}
	http.Redirect(w, r, r.URL.EscapedPath(), http.StatusSeeOther)
}

// openShared opens the link of a request, or answers why it does not.
func (c *Console) openShared(w http.ResponseWriter, r *http.Request) (of signedlink.Domain, found bool) {
	h := w.Header()
	h.Set("Referrer-Policy", "no-referrer") // the address is the credential
	h.Set("X-Robots-Tag", "noindex, nofollow")
	of, err := c.shared.links.Open(r.PathValue("link"), time.Now())
	switch {
	case err == nil:
		return of, true
	case errors.Is(err, signedlink.ErrEnded):
		c.answerShared(w, r, http.StatusNotFound, sharedView{Title: "This link has ended",
			Message: "It was good for 7 days. Ask for a new one where you got it."})
	case !errors.Is(err, signedlink.ErrUnknown):
		c.refuseShared(w, r, err)
	default:
		if wait := c.o.Keys.Fail(peerOf(r)); wait > 0 {
			c.later(w, r, wait, sharedView{Message: "Too many links that are not good came from your address."})
			break
		}
		c.refuseShared(w, r, catalog.NotFound("domain"))
	}
	return of, false
}

// later tells a customer to wait, and why.
func (c *Console) later(w http.ResponseWriter, r *http.Request, wait time.Duration, v sharedView) {
	seconds := strconv.Itoa(int((wait + time.Second - 1) / time.Second))
	w.Header().Set("Retry-After", seconds)
	v.Title, v.Message = "Not so fast", v.Message+" Try again in "+seconds+" seconds."
	c.answerShared(w, r, http.StatusTooManyRequests, v)
}

// refuseShared tells a customer why nothing is shown, without a word about what is behind it.
func (c *Console) refuseShared(w http.ResponseWriter, r *http.Request, err error) {
	if catalog.IsNotFound(err) {
		c.answerShared(w, r, http.StatusNotFound, sharedView{Title: "Not found",
			Message: "This link is not good, or not any more. Ask for a new one where you got it."})
		return
	}
	c.o.Logger.Warn("the page of a customer cannot be shown", "error", err)
	w.Header().Set("Retry-After", "5")
	c.answerShared(w, r, http.StatusServiceUnavailable, sharedView{Title: "Not now",
		Message: "What is known of the domain cannot be shown at the moment. Try again soon."})
}

func (c *Console) answerShared(w http.ResponseWriter, r *http.Request, status int, v sharedView) {
	title := v.Title
	if title == "" {
		title = v.Name
	}
	r.Header.Del("Hx-Request") // always the whole page
	if c.render(w, r, nil, status, "shared", title, v) != nil {
		http.Error(w, defect.Message, http.StatusInternalServerError)
	}
}

// failureFrom shows an error of this process as one of the API.
func failureFrom(err error) error {
	if e, is := errors.AsType[*catalog.Error](err); is && e.Code == catalog.CodeUnavailable {
		return &client.Error{Status: http.StatusServiceUnavailable, Code: e.Code, Message: e.Message}
	}
	return err
}

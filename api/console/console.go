package console

import (
	"context"
	"errors"
	"html/template"
	"log/slog"
	"net/http"
	"net/netip"
	"path"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"fingerpost/api/conditions"
	"fingerpost/api/ops/history"
	"fingerpost/configsrc"
	"fingerpost/mailer"
	"fingerpost/resolver/catalog"
	"fingerpost/resolver/signedlink"
)

// Prefix is the path below which all pages stand.
const Prefix = "/console/"

// A Key is what the console knows of a key that is good at this moment.
type Key struct {
	ID, Name   string
	Allow      catalog.Permission
	Everything bool      // it covers every project: it reads them all
	Creates    bool      // it may create projects, which get its owner
	ExpiresAt  time.Time // zero: never
	// Reach says on which projects a person who has signed in at a login has which permission of Allow. Nil: all of Allow
	// holds for all that the key covers.
	Reach Reach
	// Subject is issuer|sub of that person, "" for a key.
	Subject string
}

// A Reach are pairs of permission and project.
type Reach interface {
	At(project int64) catalog.Permission     // on a project
	AllOf(slugs []string) catalog.Permission // on each of several
	Everywhere() catalog.Permission          // on every project
}

// May reports whether the key has one of the permissions, perhaps on some projects alone.
func (k Key) May(p catalog.Permission) bool { return k.Allow&p != 0 }

// at returns the permissions on a project; 0: on some project at least.
func (k Key) at(project int64) catalog.Permission {
	if k.Reach == nil || project == 0 {
		return k.Allow
	}
	return k.Reach.At(project)
}

// everywhere returns the permissions on every project.
func (k Key) everywhere() catalog.Permission {
	switch {
	case k.Reach != nil:
		return k.Reach.Everywhere()
	case k.Everything:
		return k.Allow
	}
	return 0
}

// mayEverywhere reports whether the key has one of the permissions on every project.
func (k Key) mayEverywhere(p catalog.Permission) bool { return k.everywhere()&p != 0 }

// Keys checks keys.
type Keys interface {
	// Check returns the key with the text, if it is good.
	Check(text string) (Key, bool)
	// Fail counts a bad key of a peer. It returns how long the peer has to wait, 0 if it need not.
	Fail(peer netip.Addr) (wait time.Duration)
}

// Config is the state of the config files; *configsrc.Source has it.
type Config interface {
	Status() configsrc.Status
	Confirm(ctx context.Context, by catalog.Author) error
}

// Mail is the state of the mail queue; *mailer.Mailer has it.
type Mail interface {
	Counts() mailer.Counts
	Stopped() []mailer.Stopped
	SecretProblem(project int64) *mailer.SecretProblem
}

// History is the last hour of this node; *history.Recorder has it.
type History interface {
	View() *history.View
	Progress() (steps, noted int)
}

// Figures are counts since the start of this node, and its present state.
type Figures struct {
	Resolves, Hits, Misses uint64
	Durations              []history.Bucket // of resolve, ascending
	Connections            int
	CacheBytes, CacheLimit int64
	Generation             uint64
	Degraded               string // why the store on disk is not in use; "" if it is
}

// A GitState is what people have to know of the git repository.
type GitState struct {
	Branch                 string // "": HEAD names none
	Head                   string
	Ahead, Behind, Pending int      // commits that the upstream lacks, that are not here, and writes without a commit
	Errors                 []string // why commits, fetches and pushes fail at the moment
	Conflict               string   // what a person has to do before anything is pulled or pushed again
	Overruled              []string // branches with writes that a person's commit has set aside
}

// Options say what a Console shows. API and Keys are required.
type Options struct {
	// API reaches the HTTP API of this process.
	API  http.RoundTripper
	Keys Keys
	Node
	// Git says that changes can be proposed.
	Git bool
	// GitWeb is the address of the repository's web page, for links to commits. "": commits are no links.
	GitWeb string
	// DemoKey signs in with one click from this machine. "": there is no such button.
	DemoKey func() string
	// Guest makes a key for a session that a sign-in link begins, and end ends it. Nil: there are no such links.
	Guest func() (text string, end func())
	// SignIn is how people sign in at providers.
	SignIn SignIn
	// Customers is what customers see by a link. Nil: there are no such links.
	Customers Customers
	Version   string
	Logger    *slog.Logger     // nil: slog.Default()
	Now       func() time.Time // nil: time.Now
}

// A Node is what the process tells that the API does not. All of it may be left out.
type Node struct {
	// Config, Mail and Figures may be nil: their parts are left out.
	Config  Config
	Mail    Mail
	Figures func() Figures
	// History is what the node did in the last hour. Nil: it is not shown.
	History History
	// Cached reports whether the answer for a domain is in the cache. Nil: not shown.
	Cached func(domain string) bool
	// WatchTest has the steps of a test of SMTP settings told while it runs, by the request id of the call; from any
	// goroutine. stop ends that. Nil: they are shown at the end.
	WatchTest func(requestID string, tell func(name string, took time.Duration)) (stop func())
	// Loading reports whether the files are still being loaded: until then nobody's key is known. Nil: never.
	Loading func() bool
	// APIURL returns the address of the API for a browser that reaches the console by a host name. Nil: it is that of
	// the console.
	APIURL func(host string) string
	// Unproven reports whether domains of any project may be in a state of ownership. Nil: they may.
	Unproven func(ownership string) bool
	// MailKept says that every mail is kept instead of being sent.
	MailKept bool
	// State is what is known of this node. Keys for some projects see CutOff alone. Nil: nothing is known.
	State func() *conditions.State
	// GitState returns the state of the git repository of the files. Nil: there is none.
	GitState func() GitState
	// Webhooks delivers events to webhooks. Nil: this node does not.
	Webhooks Webhooks
	// Cluster says that there are edges, and Edge that this node is one.
	Cluster, Edge bool
}

// A Console answers everything below Prefix. Safe for concurrent use.
type Console struct {
	o        Options
	mux      *http.ServeMux
	guard    http.Handler                         // mux behind the check against requests of other sites
	pages    func() map[string]*template.Template // made for the first page that is opened
	files    func() map[string]*asset             // as pages
	sessions sessions
	link     signInLink
	shared   sharedDomains
	hours    hours
	stop     context.CancelFunc // ends the streams
	stopped  context.Context
}

// New makes a Console.
func New(o Options) (*Console, error) {
	if o.API == nil || o.Keys == nil {
		return nil, errors.New("console: Options.API or Keys is missing")
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	c := &Console{o: o, mux: http.NewServeMux()}
	c.stopped, c.stop = context.WithCancel(context.Background())
	c.sessions.all, c.sessions.now, c.link.now = map[string]*session{}, o.Now, o.Now
	c.sessions.ended = map[string]string{}
	c.files, c.pages = sync.OnceValue(loadAssets), sync.OnceValue(c.parsePages)
	if o.Customers != nil {
		c.shared.links = signedlink.NewCustomers(o.Customers)
	}
	c.routes()
	cross := http.NewCrossOriginProtection()
	cross.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.failed(w, r, &failure{Status: http.StatusForbidden,
			Message: "This form was sent by another site. Nothing was done."})
	}))
	c.guard = cross.Handler(c.mux)
	return c, nil
}

// Close ends the live streams. Pages are answered as before.
func (c *Console) Close() { c.stop() }

// MaxForm is the largest form of a session in bytes, MaxSignIn that of somebody who has none. The server that the
// console is mounted in keeps larger ones away.
const (
	MaxForm   = 1 << 20
	MaxSignIn = 4 << 10
)

// MayPost reports how large a form of the request's sender may be.
func (c *Console) MayPost(cookie string, secure bool) int {
	if c.sessions.find(cookie, secure) == nil && c.sessions.find(cookie, true) == nil {
		return MaxSignIn
	}
	return MaxForm
}

// A handler answers a request of a session. With an error it has written nothing.
type handler func(w http.ResponseWriter, r *http.Request, s *session) error

// writes makes a handler of one that writes its answer bit by bit.
func writes(h func(w http.ResponseWriter, r *http.Request, s *session)) handler {
	return func(w http.ResponseWriter, r *http.Request, s *session) error {
		h(w, r, s)
		return nil
	}
}

func (c *Console) routes() {
	c.mux.HandleFunc("GET /console/assets/{name}", c.serveAsset)
	c.mux.Handle("GET /console/sign-in", c.page(c.signInPage))
	c.mux.Handle("POST /console/sign-in", c.page(c.signIn))
	c.mux.Handle("POST /console/sign-out", c.page(c.signOut))
	c.mux.Handle("GET /console/login/{name}", c.page(c.startLogin))
	c.mux.Handle("GET /console/login/{name}/callback", c.page(c.finishLogin))
	if c.o.Customers != nil {
		c.mux.HandleFunc("GET /console/domain/{link}", c.showShared)
		c.mux.HandleFunc("POST /console/domain/{link}", c.checkShared)
	}
	for pattern, h := range map[string]handler{
		"GET /console/{$}":                             c.now,
		"GET /console/lookup":                          c.lookUp,
		"GET /console/projects":                        c.listProjects,
		"POST /console/bulk":                           c.bulk,
		"GET /console/find-projects":                   c.findProjects,
		"GET /console/projects/{id}":                   c.showProject,
		"GET /console/projects/{id}/domains/{domain}":  c.showDomain,
		"POST /console/projects/{id}/domains/{domain}": c.checkDomain,
		"POST /console/domain-links":                   c.endLinks,
		"GET /console/edit":                            c.editPage,
		"POST /console/edit":                           c.edit,
		"GET /console/drafts/{id}":                     c.showDraft,
		"POST /console/drafts/{id}":                    c.saveDraft,
		"GET /console/problems":                        c.problems,
		"POST /console/confirm":                        c.confirm,
		"GET /console/mail":                            c.mail,
		"GET /console/mail/{project}/{id}":             c.mailEntry,
		"POST /console/mail/{project}/{id}/again":      c.sendAgain,
		"GET /console/kept/{project}/{id}":             c.keptMail,
		"GET /console/suppressions/{project}":          c.suppressions,
		"POST /console/suppressions/{project}":         c.changeSuppressions,
		"GET /console/smtp-test":                       c.smtpTestPage,
		"GET /console/projects/{id}/sender":            c.senderPage,
		"POST /console/projects/{id}/sender":           c.checkSender,
		"POST /console/smtp-test":                      c.smtpTest,
		"GET /console/smtp-test/{id}":                  writes(c.smtpTestSteps),
		"GET /console/template":                        c.templatePage,
		"POST /console/template":                       c.templatePage,
		"POST /console/preview":                        c.preview,
		"GET /console/frames/{id}":                     writes(c.frame),
		"POST /console/send-test":                      c.sendTest,
		"GET /console/changes":                         c.changes,
		"GET /console/proposals":                       c.proposals,
		"POST /console/proposals/{name}":               c.proposal,
		"GET /console/now/stream":                      writes(c.nowStream),
		"GET /console/proposals/{name}": func(w http.ResponseWriter, r *http.Request, s *session) error {
			return c.showProposal(w, r, s, nil)
		},
		"GET /console/live":                            c.live,
		"GET /console/live/stream":                     writes(c.stream),
		"GET /console/keys":                            c.keys,
		"POST /console/keys/{name}":                    c.keyAction,
		"GET /console/webhooks":                        c.webhooks,
		"GET /console/webhooks/{name}":                 c.showWebhook,
		"POST /console/webhooks/{name}":                c.webhookAction,
		"GET /console/webhooks/{name}/deliveries/{id}": c.showDelivery,
		"GET /console/sessions":                        c.listSessions,
		"POST /console/sessions/others":                c.endOthers,
		"POST /console/sessions/person":                c.endPerson,
		"POST /console/sessions/{id}":                  c.endSession,
	} {
		c.mux.Handle(pattern, c.signedIn(h))
	}
	c.mux.Handle("/", c.signedIn(func(http.ResponseWriter, *http.Request, *session) error { return noPage }))
}

var noPage = &failure{Status: http.StatusNotFound, Message: "There is no such page."}

// policy is the Content-Security-Policy of all pages but the frames of mail previews.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// A Visit is what an access log says of a request. It is filled in before the answer begins.
type Visit struct {
	Page   string // the pattern of the page's path, such as /console/projects/{id}; "" if there is no such page
	Key    Key    // of the session; zero: none
	Person string // "Name <address>", or ""
}

// visitKey is the context key of a request's *Visit.
type visitKey struct{}

// visit returns the Visit of a request.
func visit(r *http.Request) *Visit { return r.Context().Value(visitKey{}).(*Visit) }

// ServeHTTP implements http.Handler.
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) { c.Serve(w, r, new(Visit)) }

// Serve answers a request, and tells v who has asked for which page.
func (c *Console) Serve(w http.ResponseWriter, r *http.Request, v *Visit) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	h.Set("Vary", "Cookie, HX-Request")
	if r.TLS != nil {
		h.Set("Strict-Transport-Security", "max-age=31536000")
	}
	defer func() {
		if cause := recover(); cause != nil {
			c.o.Logger.Error("console page panicked", "page", v.Page, "cause", cause, "stack", string(debug.Stack()))
			c.failed(w, r, defect)
		}
	}()
	// Not the server's context: it ends when a shutdown begins, and a save that has begun is made and answered then, too.
	r = r.WithContext(context.WithValue(context.Background(), visitKey{}, v))
	_, pattern := c.mux.Handler(r)
	_, v.Page, _ = strings.Cut(strings.TrimSuffix(pattern, "{$}"), " ")
	if r.URL.Path+"/" == Prefix {
		http.Redirect(w, r, Prefix, http.StatusMovedPermanently)
		return
	}
	// The mux would lead to the clean path, which may be outside the console.
	if as := r.URL.EscapedPath(); path.Clean(as) != as && path.Clean(as)+"/" != as {
		c.failed(w, r, noPage)
		return
	}
	if c.o.Loading != nil && c.o.Loading() && !strings.HasPrefix(r.URL.Path, Prefix+"assets/") {
		h.Set("Retry-After", "1")
		c.failed(w, r, &failure{Status: http.StatusServiceUnavailable,
			Message: "The files are being loaded. Open this page again in a moment."})
		return
	}
	c.guard.ServeHTTP(w, r)
}

// isFragment reports whether htmx asks for the changed part of a page only.
func isFragment(r *http.Request) bool { return r.Header.Get("HX-Request") == "true" }

// page shows the error of a handler, which has then written nothing.
func (c *Console) page(h func(w http.ResponseWriter, r *http.Request) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := h(w, r); err != nil {
			c.failed(w, r, err)
		}
	})
}

// signedIn wraps the handlers of pages that need a session. A form must carry the session's token.
func (c *Console) signedIn(h handler) http.Handler {
	return c.page(func(w http.ResponseWriter, r *http.Request) error {
		s, why := c.session(r)
		if s == nil {
			to := Prefix + "sign-in"
			if r.Method == http.MethodGet {
				to = link(to, "to", r.URL.RequestURI(), "why", why)
			} else if why == "" {
				to += "?why=ended"
			}
			if isFragment(r) {
				w.Header().Set("HX-Redirect", to)
				w.WriteHeader(http.StatusUnauthorized)
				return nil
			}
			return seeOther(w, r, to)
		}
		visit(r).Key, visit(r).Person = s.Key(), s.actor
		if err := mayPost(r, s); err != nil {
			return err
		}
		err := h(w, r, s)
		if err != nil && c.leaveGone(r, s, err) {
			to := Prefix + "projects"
			if r.Method == http.MethodGet {
				to = r.URL.RequestURI()
			}
			return seeOther(w, r, to)
		}
		return err
	})
}

// mayPost reads the form of a request, if it has one, and returns why it is refused.
func mayPost(r *http.Request, s *session) error {
	if r.Method != http.MethodPost {
		return nil
	}
	err := r.ParseMultipartForm(MaxForm) //nolint:gosec // the body is bounded before
	if err != nil && !errors.Is(err, http.ErrNotMultipart) {
		return &failure{Status: http.StatusBadRequest, Message: "The form cannot be read: " + err.Error() + "."}
	}
	if !s.hasToken(r.PostFormValue("token")) {
		return &failure{Status: http.StatusForbidden,
			Message: "This form is not of your session: nothing was done. Open the page again, and send it from there."}
	}
	return nil
}

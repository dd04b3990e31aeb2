package client

import (
	"cmp"
	"crypto/tls"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"
)

// MaxParallel is how many idle connections are kept, so that this many parallel calls reuse theirs.
const MaxParallel = 64

// Options say which service a Client calls. URL, Key and Timeout are required.
type Options struct {
	URL     string // as CleanURL returns it
	Key     string // a platform key
	Timeout time.Duration
	TLS     *tls.Config // nil: the system's

	MailURL string // the mail API, as CleanURL returns it; "" is URL
	MailKey string // its service token; "" is Key
	NoMail  bool   // do not use the mail API

	Transport http.RoundTripper // nil: connections of its own, with TLS
	Service   string            // the name under which the mail API knows the client; "" is fingerpost-cli
	Actor     string            // the person that changes are made for, "Name <address>"; "": nobody is named
	Proposal  string            // reads of a project show it as this proposal has it; "": as it is live
	Once      bool              // no call is repeated
}

// A Client makes the calls of the API. Its methods may be called from any number of goroutines.
type Client struct {
	platform *service
	mail     *service // nil: not used

	nestedOnly  atomic.Bool  // the service lacks the flat form of resolve
	plainOnly   atomic.Bool  // the service lacks the full view of a project
	mailAnswers atomic.Bool  // the mail API has answered for a project
	mailMisses  atomic.Int32 // the projects for which it has not
}

// New makes a Client. It opens no connection yet.
func New(o Options) *Client {
	if o.Transport == nil {
		transport := http.DefaultTransport.(*http.Transport).Clone()
		transport.MaxIdleConnsPerHost = MaxParallel
		if o.TLS != nil {
			transport.TLSClientConfig = o.TLS
		}
		o.Transport = transport
	}
	hide := new(veil)
	hide.add(o.Key)
	hide.add(o.MailKey)
	httpClient := &http.Client{
		Transport: o.Transport, Timeout: o.Timeout,
		// A followed redirect would carry the key to its target.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	c := &Client{platform: &service{http: httpClient, base: o.URL, veil: hide, once: o.Once, actor: o.Actor,
		proposal: o.Proposal, headers: map[string]string{"X-PLATFORM-KEY": o.Key}}}
	if o.NoMail {
		return c
	}
	c.mail = &service{http: httpClient, base: cmp.Or(o.MailURL, o.URL), veil: hide, once: o.Once, actor: o.Actor,
		proposal: o.Proposal, headers: map[string]string{"X-Internal-Service-Token": cmp.Or(o.MailKey, o.Key),
			"X-Internal-Service-Name": cmp.Or(o.Service, "fingerpost-cli")}}
	return c
}

// URL is the service's address without a path.
func (c *Client) URL() string { return c.platform.base }

// Hide replaces a secret in the texts of all later errors, because a server may repeat what it was sent.
func (c *Client) Hide(secret string) { c.platform.veil.add(secret) }

// MailAsked reports whether the mail API is used.
func (c *Client) MailAsked() bool { return c.mail != nil }

// MailAnswers reports whether the mail API has answered for any project so far.
func (c *Client) MailAnswers() bool { return c.mailAnswers.Load() }

// CleanURL checks a service's address and cuts off the parts that people copy along. The error's text follows the name
// of what holds the address.
func CleanURL(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return "", errors.New("must be an address such as https://config.example")
	}
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return "", errors.New("must not hold a user, a query or a fragment")
	}
	base := strings.TrimSuffix(text, "/")
	for _, service := range []string{"/api/platform", "/api/mail"} {
		base = strings.TrimSuffix(base, service)
	}
	return base, nil
}

package console

import (
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"
)

// LinkTime is how long a sign-in link is good.
const LinkTime = 10 * time.Minute

// A signInLink signs one person in, once. Safe for concurrent use.
type signInLink struct {
	now func() time.Time

	mu     sync.Mutex // guards what follows
	secret string     // "": there is none, or it was used
	remote bool       // it works from other machines, too
	until  time.Time
}

// NewLink returns the path of a link that signs in one person, once, within LinkTime, on this machine, with a key of
// Options.Guest. An earlier link ends. It returns "" where nobody can sign in like this.
func (c *Console) NewLink() (path string) { return c.newLink(false) }

// NewRemoteLink is NewLink for a person whose browser is on another machine, or outside of the service's container.
func (c *Console) NewRemoteLink() (path string) { return c.newLink(true) }

func (c *Console) newLink(remote bool) (path string) {
	if c.o.Guest == nil {
		return ""
	}
	c.link.mu.Lock()
	defer c.link.mu.Unlock()
	c.link.secret, c.link.remote, c.link.until = random(), remote, c.o.Now().Add(LinkTime)
	return link(Prefix+"sign-in", "link", c.link.secret)
}

// useUp uses the link up, if it has this secret and is still good. local: the request comes from this machine.
func (l *signInLink) useUp(secret string, local bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.secret == "" || !local && !l.remote || l.now().After(l.until) ||
		subtle.ConstantTimeCompare([]byte(secret), []byte(l.secret)) != 1 {
		return false
	}
	l.secret = ""
	return true
}

// localOnly reports whether this is the secret of a link that works on this machine alone.
func (l *signInLink) localOnly(secret string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.remote && l.secret != "" && subtle.ConstantTimeCompare([]byte(secret), []byte(l.secret)) == 1
}

// forwarded are headers that proxies add. A request with one of them may come from anywhere, although its peer is this
// machine.
var forwarded = []string{"Forwarded", "Via", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-Ip"}

// isLocal reports whether a request comes from this machine, by a name that only this machine has: a web page that
// rebinds a name of its own does not get in, nor does a visitor who comes through a proxy.
func isLocal(r *http.Request) bool {
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = r.Host
	}
	for _, name := range forwarded {
		if r.Header.Get(name) != "" {
			return false
		}
	}
	addr, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return peerOf(r).IsLoopback() && (host == "localhost" || err == nil && addr.IsLoopback())
}

package gateway

import (
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"fingerpost/api/gate"
	"fingerpost/api/gateway/jwks"
	"fingerpost/api/web"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

// The paths of the main listener.
const (
	pathPrefix = "/api/gate/"
	checkPath  = pathPrefix + "check"
	askPath    = pathPrefix + "ask"
	MePath     = gate.MePath
)

// DefaultIssuer is the default of Options.Issuer.
const DefaultIssuer = "auth-service"

// Options are the operator's rules for gateways.
type Options struct {
	// Issuer is the iss claim that tokens must have. "": DefaultIssuer.
	Issuer string
	// Allow are the networks beyond this machine whose peers may ask on a gateway listener.
	Allow []netip.Prefix
	// Wildcards lets gateways fetch certificates for names that only a wildcard covers, unless its record says
	// certificates = false.
	Wildcards bool
}

// MayAsk reports whether a peer of a gateway listener gets answers: this machine, and the networks of the operator.
func (o *Options) MayAsk(peer net.Addr) bool {
	tcp, ok := peer.(*net.TCPAddr)
	if !ok {
		return true // a Unix socket has permissions
	}
	addr, _ := netip.AddrFromSlice(tcp.IP)
	addr = addr.Unmap()
	for _, network := range o.Allow {
		if network.Contains(addr) {
			return true
		}
	}
	return addr.IsLoopback()
}

// Live finds the project of a domain, and what verifies the tokens of its users, as *resolver.Resolver does.
type Live interface {
	// Resolve is for a request, whose trace shows what the cache did.
	Resolve(ctx *fasthttp.RequestCtx, host []byte, form resolver.Form) (*resolver.Answer, error)
	TokenKeys(answer *resolver.Answer) (*resolver.TokenKeys, error)
}

// KeySets are the key sets that projects name, see package jwks.
type KeySets interface {
	// KeySet returns the last good set at an address; nil: there was none yet. It does not wait.
	KeySet(url string) *jwks.Set
	// NoteUnknown notes that a token names a key that is not in the set of its project.
	NoteUnknown(project int64, url string)
}

// An API answers gateways. Safe for concurrent use.
type API struct {
	Options
	Live    Live
	KeySets KeySets // nil: there are none
	// Throttle counts a failed token of me against the peer's address, and returns how long it has to wait, 0 while it
	// need not.
	Throttle     func(peer netip.Addr) time.Duration
	CacheControl []byte // of a check without a token

	failures [failures]atomic.Uint64
	verified verifiedTokens
}

// Routes lists the calls of the main listener.
func (a *API) Routes() []web.Route {
	const ask = catalog.MayResolve | catalog.MayRead
	return []web.Route{
		web.Call("GET", MePath, 0, 0, a.me),
		web.Call("GET", checkPath, ask, 0, a.checkWithKey),
		web.Call("GET", askPath, ask, 0, a.askWithKey),
	}
}

// EachFailure yields how often tokens were refused, by reason.
func (a *API) EachFailure(yield func(reason string, count uint64)) {
	for f := good + 1; f < failures; f++ {
		yield(failureNames[f], a.failures[f].Load())
	}
}

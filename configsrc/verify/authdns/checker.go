package authdns

import (
	"context"
	"crypto/x509"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"fingerpost/configsrc/verify/dcv"
	"fingerpost/resolver/publicnet"
	"fingerpost/resolver/share"
)

// Options are the settings of a Checker. The zero Options are those of a service without flags.
type Options struct {
	// Resolver is the address of a recursive resolver, with or without a port. "": those of /etc/resolv.conf, which is read
	// for each check.
	Resolver string
	// Allow lists networks that may be asked and connected to although their addresses are not public.
	Allow []netip.Prefix
	Rate  int           // questions a second; 0: 20
	Open  int           // questions and TLS connections at a time; 0: 50
	Limit time.Duration // of a question to one server, with its second attempt, and of a TLS connection; 0: 4 s
	// CheckLimit is the time of a check, also if a zone's servers answer slowly, after which what was not asked is
	// a time-out; 0: 40 s.
	CheckLimit time.Duration
	Logger     *slog.Logger   // gets addresses that are not asked; nil: no log
	Roots      *x509.CertPool // of certificates; nil: as Go takes them (SSL_CERT_FILE)
	// Ports of authoritative servers and of TLS; 0: 53 and 443. Tests have others.
	DNSPort, TLSPort uint16
}

// A Checker checks domains. All checks of a process share one, because it owns the limits. It is safe for concurrent
// use.
type Checker struct {
	o        Options
	resolver netip.AddrPort // zero: those of /etc/resolv.conf
	guard    publicnet.Guard
	// Questions a second, and those that are open; shared by project.
	turns *share.Turns
	open  *share.Places

	cached  sync.Mutex // guards the caches
	starts  cache[zone]
	hosts   cache[[]netip.Addr] // of name servers
	targets cache[addresses]
	told    cache[netip.Addr] // hosts whose address the log has
}

// New returns a Checker. The error says what is wrong with Options.Resolver.
func New(o Options) (*Checker, error) {
	setDefault(&o.Rate, 20)
	setDefault(&o.Open, 50)
	setDefault(&o.Limit, 4*time.Second)
	setDefault(&o.CheckLimit, 40*time.Second)
	setDefault(&o.DNSPort, 53)
	setDefault(&o.TLSPort, 443)
	setDefault(&o.Logger, slog.New(slog.DiscardHandler))
	c := &Checker{o: o, guard: publicnet.New(o.Allow), turns: share.NewTurns(o.Rate), open: share.New(o.Open)}
	var err error
	if o.Resolver != "" {
		c.resolver, err = parseResolver(o.Resolver)
	}
	return c, err
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Check finds out everything about a subject that ways, the records that prove it, and the policy ask for. After a hit
// the other ways are not asked. The error is that of the context; everything else that goes wrong is part of the facts.
func (c *Checker) Check(
	ctx context.Context, subject dcv.Subject, policy dcv.Policy, ways []dcv.Way,
) (dcv.Facts, error) {
	limited, cancel := context.WithTimeout(ctx, c.o.CheckLimit)
	defer cancel()
	s := c.newSession(limited, subject.Project.String())
	facts := dcv.Facts{At: time.Now()}
	if !dcv.NeedsProof(subject, policy) {
		ways = nil
	}
	var hit bool
	facts.Proofs, hit = s.proofs(ways)
	facts.Pointing = s.pointing(subject, policy)
	facts.TLS = s.tls(facts.Pointing, policy)
	facts.Zone = s.extras(subject, policy, ways, &facts, hit)
	facts.Limited = limited.Err() != nil || s.asked > maxQuestions
	return facts, ctx.Err()
}

func (c *Checker) newSession(ctx context.Context, tenant string) *session {
	return &session{Checker: c, ctx: ctx, tenant: tenant, resolvers: c.resolverAddresses(),
		zones: map[string]zone{}, within: map[string]string{}, inner: map[string]bool{}, lost: map[string]string{},
		found: map[string]addresses{}, silent: map[string]string{}}
}

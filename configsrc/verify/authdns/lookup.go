package authdns

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"time"

	"github.com/miekg/dns"
)

// A Lookup asks the resolver alone, for what receivers of mail ask theirs, in the bounds of a check and with the share of
// a project. It is for one goroutine.
type Lookup struct{ s *session }

// Lookup begins one, which ends after limit, or with ctx. end releases it.
func (c *Checker) Lookup(ctx context.Context, project string, limit time.Duration) (l *Lookup, end func()) {
	ctx, end = context.WithTimeout(ctx, limit)
	return &Lookup{c.newSession(ctx, project)}, end
}

// Ask returns the records of a name, at the end of its CNAMEs, and whether there is such a name. Of MX a value is
// "10 mx.acme.example"; names are in lower case without the last dot. Addresses that are not public are left out: receivers
// do not reach them. The error is the word for an answer that is not definite.
func (l *Lookup) Ask(kind, name string) (values []string, exists bool, err error) {
	r := l.s.resolve(question{name: dns.CanonicalName(name), kind: dns.StringToType[kind]})
	if r.err != "" {
		return nil, false, errors.New(r.err)
	}
	if kind == "A" || kind == "AAAA" {
		r.values = slices.DeleteFunc(r.values, func(v string) bool {
			addr, err := netip.ParseAddr(v)
			return err != nil || !l.s.guard.Allows(addr)
		})
	}
	return r.values, !r.absent, nil
}

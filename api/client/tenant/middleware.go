package tenant

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
)

type contextKey struct{}

// FromContext returns the tenant of a request that has passed Middleware, else nil.
func FromContext(ctx context.Context) *Tenant {
	t, _ := ctx.Value(contextKey{}).(*Tenant)
	return t
}

// Middleware lets requests pass whose host has a tenant, which FromContext returns. The host is that of the request, or
// with Options.TrustForwardedHost the first one in X-Forwarded-Host where that header is set. Others are answered by
// Options.OnError, or
//
//	404  ErrUnknown, ErrInvalid
//	403  ErrNotVerified, ErrSuspended, ErrForbidden
//	503  otherwise, with Retry-After
func (c *Cache) Middleware(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t, err := c.Lookup(r.Context(), c.hostOf(r))
		switch {
		case err == nil:
			next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), contextKey{}, t)))
		case c.o.OnError != nil:
			c.o.OnError(w, r, err)
		default:
			c.refuse(w, err)
		}
	})
}

func (c *Cache) hostOf(r *http.Request) string {
	if c.o.TrustForwardedHost {
		first, _, _ := strings.Cut(r.Header.Get("X-Forwarded-Host"), ",")
		if first = strings.TrimSpace(first); first != "" {
			return first
		}
	}
	return r.Host
}

// refuse answers with a status for the error. The text does not say why there is no answer: that is for operators.
func (c *Cache) refuse(w http.ResponseWriter, err error) {
	w.Header().Set("Cache-Control", "no-store")
	is := func(targets ...error) bool {
		for _, target := range targets {
			if errors.Is(err, target) {
				return true
			}
		}
		return false
	}
	switch {
	case is(ErrUnknown, ErrInvalid):
		http.Error(w, "unknown host", http.StatusNotFound)
	case is(ErrNotVerified, ErrSuspended, ErrForbidden):
		http.Error(w, "this host is not served", http.StatusForbidden)
	default:
		w.Header().Set("Retry-After", strconv.Itoa(c.nextQuestion()))
		http.Error(w, "temporarily unavailable", http.StatusServiceUnavailable)
	}
}

// nextQuestion returns after how many seconds a name that is not in memory can have an answer.
func (c *Cache) nextQuestion() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	wait := c.away.until.Sub(c.clock.Now())
	return max(1, int((wait+time.Second-1)/time.Second))
}

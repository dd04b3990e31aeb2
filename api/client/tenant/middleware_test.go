package tenant_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"fingerpost/api/client/tenant"
)

func TestMiddleware(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.refusals["off.example"] = "403 DOMAIN_NOT_VERIFIED"
	f.refusals["gone.example"] = "403 PROJECT_SUSPENDED"
	f.refusals["theirs.example"] = "403 FORBIDDEN"
	d := open(t, f, nil)
	trusting := open(t, f, func(o *tenant.Options) { o.TrustForwardedHost = true })
	own := open(t, f, func(o *tenant.Options) {
		o.OnError = func(w http.ResponseWriter, _ *http.Request, err error) {
			if !errors.Is(err, tenant.ErrUnknown) {
				t.Error(err)
			}
			w.WriteHeader(http.StatusTeapot)
		}
	})
	if tenant.FromContext(t.Context()) != nil {
		t.Error("a context without a request has a tenant")
	}
	ask := func(d *desk, host, forwarded string) *httptest.ResponseRecorder {
		h := d.Middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, tenant.FromContext(r.Context()).Name)
		}))
		r := httptest.NewRequest("GET", "http://"+host+"/", nil)
		if forwarded != "" {
			r.Header.Set("X-Forwarded-Host", forwarded)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	check := func(d *desk, host, forwarded string, status int, body string) {
		t.Helper()
		w := ask(d, host, forwarded)
		if w.Code != status || strings.TrimSpace(w.Body.String()) != body {
			t.Errorf("%s (%s): %d %s", host, forwarded, w.Code, w.Body)
		}
		if retry := w.Header().Get("Retry-After"); (retry != "") != (status == 503) {
			t.Errorf("%s: Retry-After %q", host, retry)
		}
	}
	check(d, "Shop.example:8000", "", 200, "Shop")
	check(d, "shop.example", "a.x.example", 200, "Shop")
	check(trusting, "shop.example", "a.x.example , b.x.example", 200, "A")
	check(trusting, "shop.example", "", 200, "Shop")
	check(own, "nobody.example", "", http.StatusTeapot, "")
	check(d, "nobody.example", "", 404, "unknown host")
	check(d, "127.0.0.1", "", 404, "unknown host")
	for _, host := range []string{"off.example", "gone.example", "theirs.example"} {
		check(d, host, "", 403, "this host is not served")
	}
	f.away()
	d.connected(false)
	check(d, "new.example", "", 503, "temporarily unavailable")
	f.set(func() {
		f.mangle = func(w http.ResponseWriter, _ *http.Request) bool { refuse(w, 401, "UNAUTHORIZED"); return true }
	})
	d.pass()
	check(d, "new.example", "", 503, "temporarily unavailable")
}

package api_test

import (
	"net/http"
	"testing"
)

// TestLoading: before the first load has ended, no answer says that a key or a domain is unknown.
func TestLoading(t *testing.T) {
	h := start(t)
	ask := func(path, key string) (status int, retry string) {
		t.Helper()
		req, err := http.NewRequest(http.MethodGet, "http://"+h.addr+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-PLATFORM-KEY", key)
		res, err := conforming(t).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		return res.StatusCode, res.Header.Get("Retry-After")
	}
	h.server.SetLoading(true)
	for _, path := range []string{resolveURL + "?domain=shop.acme.example", "/api/platform/projects", "/nowhere"} {
		for _, key := range []string{h.all, h.revoked} {
			if status, retry := ask(path, key); status != http.StatusServiceUnavailable || retry == "" {
				t.Errorf("%s: %d, Retry-After %q", path, status, retry)
			}
		}
	}
	for _, path := range []string{healthURL, "/api/mail/health"} {
		if status, _ := ask(path, ""); status != http.StatusOK {
			t.Errorf("%s: %d", path, status)
		}
	}
	h.server.SetLoading(false)
	if status, _ := ask(resolveURL+"?domain=shop.acme.example", h.all); status != http.StatusOK {
		t.Errorf("after the load: %d", status)
	}
}

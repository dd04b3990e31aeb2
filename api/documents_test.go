package api_test

import (
	"io"
	"net/http"
	"testing"

	"fingerpost/api"
)

// TestDocs: the documents are on every listener but those of gateways, without a key, and while the node is loading or has
// not heard its authority.
func TestDocs(t *testing.T) {
	t.Parallel()
	h := start(t, func(o *api.Options) {
		o.Docs = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "at "+r.URL.Path) })
	})
	h.server.SetLoading(true)
	h.server.SetStale(true)
	for services, known := range map[api.Services]bool{api.Platform: true, api.Mail: true, api.Platform | api.Mail: true,
		api.Console: true, api.Gateway: false} {
		addr := h.listen(services)
		for _, path := range []string{"/docs/", "/docs/one", "/docs"} {
			res, err := http.Get("http://" + addr + path)
			if err != nil {
				t.Fatal(err)
			}
			body, _ := io.ReadAll(res.Body)
			res.Body.Close()
			if known != (res.StatusCode == http.StatusOK && string(body) == "at "+path) {
				t.Errorf("services %d: %s: %d %s", services, path, res.StatusCode, body)
			}
		}
		if res, err := http.Get("http://" + addr + "/docsx"); err != nil || res.StatusCode == http.StatusOK {
			t.Errorf("services %d: /docsx: %v %v", services, res, err)
		}
	}
}

package login_test

import (
	"net/http"
	"strings"
	"testing"

	"fingerpost/api/login"
)

// TestCheck: each step of a sign-in that works without a person is told, up to one that the following ones need.
func TestCheck(t *testing.T) {
	t.Parallel()
	elsewhere, wrong := "https://other.acme.example", "wrong"
	sendOn := func(to string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, to, http.StatusFound) }
	}
	path := func(path string, f http.HandlerFunc) func(r *rig) { return func(r *rig) { r.p.handlers[path] = f } }
	const discovery = "/.well-known/openid-configuration"
	for name, c := range map[string]struct {
		public string
		change func(r *rig)
		steps  int
		bad    string // in the message or what to do of the only step that fails; "": none fails
	}{
		"all is well":          {publicURL, func(*rig) {}, 4, ""},
		"a page that sends on": {publicURL, path("/authorize", sendOn("/page")), 4, ""},
		"no secret":            {publicURL, func(r *rig) { r.secret.Store(nil) }, 1, "client_secret of the block cannot be opened"},
		"away":                 {publicURL, path(discovery, say(503, "")), 1, "answered 503"},
		"no keys":              {publicURL, path("/keys", say(200, `{"keys":[{"kty":"oct"}]}`)), 4, "no public key"},
		"keys away":            {publicURL, path("/keys", say(404, "")), 4, "answered 404"},
		"no key set":           {publicURL, path("/keys", say(200, "<html>")), 4, "not JSON"},
		"page away":            {publicURL, path("/authorize", say(503, "")), 4, "answered 503"},
		"redirect URI":         {elsewhere, func(*rig) {}, 4, "register exactly " + elsewhere + "/console/login/company/callback"},
		"page of Google":       {publicURL, path("/authorize", sendOn("/signin/oauth/error?authError=x")), 4, "register exactly"},
		"scope":                {publicURL, path("/authorize", sendOn(callback+"?error=invalid_scope")), 4, "no scope groups"},
		"no public URL":        {"", func(*rig) {}, 3, "--public-url"},
		"wrong secret":         {publicURL, func(r *rig) { r.secret.Store(&wrong) }, 4, "client_id and client_secret"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRigWith(t, newHostile(t), func(o *login.Options) { o.PublicURL = c.public })
			c.change(r)
			l := company(r.p.URL)
			found := r.Check(t.Context(), &l)
			var bad []login.Finding
			for _, f := range found {
				noSecrets(t, f.Message+f.Todo)
				if f.Todo != "" {
					bad = append(bad, f)
				}
			}
			if len(found) != c.steps || (len(bad) == 1) != (c.bad != "") ||
				len(bad) == 1 && !strings.Contains(bad[0].Message+bad[0].Todo, c.bad) {
				t.Errorf("%+v, want %d steps, %q", found, c.steps, c.bad)
			}
		})
	}
}

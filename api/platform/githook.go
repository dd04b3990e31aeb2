package platform

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"strings"

	"fingerpost/api/gate"
	"fingerpost/api/web"
)

const gitHookPath = "/hooks/git"

// A Hook is the webhook of the git repository's remote.
type Hook struct {
	Fetch  func() // is called for a POST that has the secret; nil: there is no such path
	Secret string
}

// gitHook answers POST /hooks/git: the next fetch of the git repository begins at once. The signature is the
// credential; the body is read for it alone, since the fetch asks the remote what is new.
func (a *API) gitHook(r *web.Request) error {
	if a.Hook.Fetch == nil {
		return web.RefusePath
	}
	body, err := r.Conn.ReadBody(func(n int64) error { return r.Charge.Take(gitHookPath, n) })
	if refused := (*gate.Refusal)(nil); errors.As(err, &refused) {
		return web.RefusedByGate(refused)
	}
	if err != nil {
		return err
	}
	if !signed(func(name string) string { return string(r.Ctx.Request.Header.Peek(name)) }, body, a.Hook.Secret) {
		return web.RefuseKey
	}
	a.Hook.Fetch()
	r.Succeed("fetching", []byte("null"))
	return nil
}

// signed reports whether a webhook has the secret: as the HMAC of its body (GitHub, Gitea), or as it is (GitLab).
func signed(header func(name string) string, body []byte, secret string) bool {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	want := hex.EncodeToString(mac.Sum(nil))
	same := func(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }
	if hub, ok := strings.CutPrefix(header("X-Hub-Signature-256"), "sha256="); ok && same(hub, want) {
		return true
	}
	return same(header("X-Gitea-Signature"), want) || same(header("X-Gitlab-Token"), secret)
}

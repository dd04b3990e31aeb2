package login

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"fingerpost/resolver/catalog"
)

// A Finding is what Check says about one step of a sign-in, as the commands print it: no capital, no full stop. Todo is
// "" if and only if the step works.
type Finding struct{ Message, Todo string }

// Check goes through what a sign-in needs, as far as it goes without a person: the secret, discovery, the keys, and
// whether the provider shows its page for the redirect URI, and knows the client.
func (d *Desk) Check(ctx context.Context, l *catalog.Login) (found []Finding) {
	secret, failed := d.secret(l)
	if failed != nil {
		return []Finding{finding(failed, "see that the service's user has the secret, and the key that opens it")}
	}
	p, failed := d.provider(ctx, l)
	if failed != nil {
		return []Finding{finding(failed, "compare issuer with the provider's configuration, and try to reach it from here")}
	}
	found = []Finding{{Message: "discovery of " + l.Issuer + " names every endpoint"}, p.checkKeys(ctx)}
	if d.o.PublicURL == "" {
		return append(found, finding(NoPublicURL(), ""))
	}
	config := p.config(l, secret, RedirectURI(d.o.PublicURL, l.Name))
	return append(found, p.checkPage(ctx, config), p.checkClient(ctx, config))
}

// finding is a step that fails. The error's own hint is better than todo.
func finding(e *Error, todo string) Finding {
	return Finding{Message: phrase(e.Message), Todo: cmp.Or(phrase(e.Hint), todo)}
}

// phrase takes the capital and the full stop from a sentence whose first word is not a name.
func phrase(sentence string) string {
	if sentence == "" {
		return ""
	}
	first, size := utf8.DecodeRuneInString(sentence)
	return strings.TrimSuffix(string(unicode.ToLower(first))+sentence[size:], ".")
}

// checkKeys fetches the keys.
func (p *provider) checkKeys(ctx context.Context) Finding {
	const todo = "see what the provider answers at the jwks_uri of its discovery"
	answer, err := p.get(ctx, p.document.Keys)
	if err == nil && answer.status != http.StatusOK {
		err = notOK(answer.status)
	}
	if err != nil {
		return finding(asking("keys", err), todo)
	}
	var set struct {
		Keys []struct{ Kty, Use string }
	}
	if err := json.Unmarshal(answer.text, &set); err != nil {
		return finding(asking("keys", errors.New("the answer is not JSON")), todo)
	}
	n := 0
	for _, k := range set.Keys {
		if k.Kty != "oct" && k.Use != "enc" {
			n++
		}
	}
	if n == 0 {
		return finding(asking("keys", errors.New("the set has no public key for signatures")), todo)
	}
	return Finding{Message: fmt.Sprintf("the provider has %s for the signatures of ID tokens", catalog.Count(n, "key"))}
}

// checkPage asks for the page to which people are sent. Most providers answer 4xx if they do not know the redirect URI,
// and send the browser back with an error if they do, and dislike something else.
func (p *provider) checkPage(ctx context.Context, config *oauth2.Config) Finding {
	address := config.AuthCodeURL(random(), oidc.Nonce(random()), oauth2.S256ChallengeOption(oauth2.GenerateVerifier()))
	register := fmt.Sprintf("register exactly %s as redirect URI of client %q at the provider", config.RedirectURL,
		config.ClientID)
	answer, err := p.get(ctx, address)
	if err != nil {
		return finding(asking("page of sign-in", err), "try to reach the provider from here")
	}
	query := answer.to.Query()
	switch {
	case answer.status >= http.StatusBadRequest:
		return Finding{fmt.Sprintf("the provider answers %d to the redirect URI %s", answer.status, config.RedirectURL),
			register}
	case query.Get("error") != "":
		return finding(refusal(query.Get("error"), query.Get("error_description"), nil), "see what the provider's log says")
	case strings.HasSuffix(answer.to.Path, "/error"): // Google
		return Finding{"the provider shows an error for the redirect URI " + config.RedirectURL, register}
	}
	return Finding{Message: fmt.Sprintf("the provider shows a page for the redirect URI %s, which must be registered "+
		"there exactly", config.RedirectURL)}
}

// checkClient offers a code that does not exist. Most providers look at the client before the code: one that knows the
// client refuses the code alone.
func (p *provider) checkClient(ctx context.Context, config *oauth2.Config) Finding {
	_, err := config.Exchange(p.with(ctx), random(), oauth2.VerifierOption(oauth2.GenerateVerifier()))
	var answer *oauth2.RetrieveError
	unknown := []string{"invalid_client", "unauthorized_client"}
	if err == nil || errors.As(err, &answer) && !slices.Contains(unknown, answer.ErrorCode) {
		return Finding{Message: fmt.Sprintf("the provider does not refuse client %q; a few judge client_secret at a sign-in "+
			"alone", config.ClientID)}
	}
	return finding(asking("tokens", err, config.ClientSecret),
		"compare client_id and client_secret with those at the provider")
}

// A page is an answer with a status below 500.
type page struct {
	status int
	to     *url.URL // of a redirect; empty
	text   []byte
}

// get asks an address.
func (p *provider) get(ctx context.Context, address string) (*page, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	res, err := p.transport.ask(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	answer := &page{status: res.StatusCode, to: new(url.URL)}
	if to, err := res.Location(); err == nil {
		answer.to = to
	}
	answer.text, err = io.ReadAll(res.Body)
	return answer, err
}

package login

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"fingerpost/resolver/catalog"
)

// An Error is why a sign-in failed. The desk has logged it, with its cause, unless the status is 400 or 404.
type Error struct {
	Status        int    // 400 the flow, 403 refused by the provider, 404 no such block, 502 a bad answer, 503 no answer
	Message, Hint string // sentences for people; Hint may be ""

	cause error // for the log alone; may be nil
}

func (e *Error) Error() string { return e.Message }

// Unwrap returns the cause, which may name what only the inside knows.
func (e *Error) Unwrap() error { return e.cause }

// asking explains why the provider did not give what it was asked for. Its texts do not quote secrets.
func asking(what string, err error, secrets ...string) *Error {
	e := &Error{Status: http.StatusBadGateway}
	var own *Error
	var answer *oauth2.RetrieveError
	var expired *oidc.TokenExpiredError
	var other *oidc.IssuerMismatchError
	switch {
	case errors.As(err, &own):
		*e = *own
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		e.Status, e.Message = http.StatusServiceUnavailable, "no answer came in time"
	case errors.As(err, &answer):
		e.Message, e.Hint = refused(answer.ErrorCode, answer.ErrorDescription, secrets)
		if answer.ErrorCode == "" {
			e.Message = fmt.Sprintf("it answered %d without an error that OAuth knows", answer.Response.StatusCode)
		}
	case errors.As(err, &expired):
		e.Message = fmt.Sprintf("it expired at %s", expired.Expiry.UTC().Format("2006-01-02 15:04:05 UTC"))
		e.Hint = "Compare the clock of this service with that of the provider."
	case errors.As(err, &other):
		e.Message = fmt.Sprintf("it is of the issuer %s, and the block names another one", quoted(other.Discovered, secrets))
		e.Hint = otherIssuer(other.Discovered)
	default:
		e.Message = clean(err.Error(), secrets)
		e.Hint = verifyHint(e.Message)
	}
	e.Message = fmt.Sprintf("The provider gave no %s: %s.", what, strings.TrimSuffix(e.Message, "."))
	return e
}

// refused is the message of an error of OAuth, and what helps against it.
func refused(code, description string, secrets []string) (message, hint string) {
	message = "it answered " + quoted(code, secrets)
	if description != "" {
		message += " (" + clean(description, secrets) + ")"
	}
	for _, known := range knownRefusals {
		if code == known.sign || strings.Contains(description, known.sign) {
			return message, known.hint
		}
	}
	return message, ""
}

const (
	registerAsWeb = "Register the redirect URI as one of the platform Web, not as single-page or desktop application."
	newValue      = "Make a new client secret at Entra, and put its value, not its id, into client_secret."
)

// knownRefusals has the errors of OAuth, and numbers of Entra ID, that one change at a known place ends. The first that
// fits counts.
var knownRefusals = []struct{ sign, hint string }{
	{"AADSTS9002326", registerAsWeb}, // only a single-page application may redeem across origins
	{"AADSTS9002325", registerAsWeb},
	{"AADSTS700025", registerAsWeb}, // the client is public, and sends a secret
	{"AADSTS7000218", "The application at Entra is not public: it needs client_secret."},
	{"AADSTS7000215", newValue}, // invalid
	{"AADSTS7000222", newValue}, // expired
	{"AADSTS50011", "Register the redirect URI of this service at Entra, exactly."},
	{"AADSTS50105", "Assign the person, or one of their groups, to the application at Entra."},
	{"invalid_client", "client_id and client_secret of the block must be those that the provider has for this service."},
	{"unauthorized_client", "Allow the authorization code flow for this client at the provider."},
	{"invalid_scope", "The provider does not know one of the scopes: Google and Entra, for one, have no scope groups."},
	{"invalid_grant", "Begin again. If it happens each time, compare the redirect URI at the provider, and the clocks."},
	{"redirect_uri_mismatch", "Register the redirect URI of this service at the provider, exactly."},
	{"access_denied", "The provider, or the person there, has refused: see at the provider who may use this client."},
}

// otherIssuer is what helps if discovery is of another issuer.
func otherIssuer(discovered string) string {
	if strings.Contains(discovered, "{tenantid}") {
		return "The issuers common, organizations and consumers of Entra are templates, which no token matches: " +
			"issuer needs the id of your tenant, https://login.microsoftonline.com/<tenant id>/v2.0"
	}
	return "If that is your provider, write issuer = " + quoted(discovered, nil) + ", with every slash."
}

// verifyHint is what helps against an error of go-oidc that has no type.
func verifyHint(text string) string {
	switch {
	case strings.Contains(text, "unexpected signature algorithm"):
		return "Let the provider sign the ID tokens of this client with RS256 or ES256, and name that in its discovery."
	case strings.Contains(text, "issued by a different provider"):
		return "issuer in the block must be what the provider writes into its tokens, with every slash."
	case strings.Contains(text, "before the nbf"):
		return "Compare the clock of this service with that of the provider."
	}
	return ""
}

// maxQuoted bounds what a message quotes of a provider, in bytes.
const maxQuoted = 300

// clean makes one line of what a provider has said, without the secrets.
func clean(text string, secrets []string) string {
	for _, secret := range secrets {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "…")
		}
	}
	text = strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if catalog.BreaksLine(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))), " ")
	if len(text) > maxQuoted {
		text = strings.ToValidUTF8(text[:maxQuoted], "") + "…"
	}
	return text
}

func quoted(text string, secrets []string) string { return fmt.Sprintf("%q", clean(text, secrets)) }

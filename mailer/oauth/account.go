package oauth

import (
	"fmt"
	"io"
	"log/slog"
)

// An Account is a client of a token server, with its secret opened. Equal values share a token.
type Account struct {
	TokenURL string // https
	ClientID string
	Secret   string
	Scope    string // "": none is named
}

// String names the account without its secret.
func (a Account) String() string { return "client " + a.ClientID + " at " + a.TokenURL }

// Format writes String for every verb: %d and %x would print the secret.
func (a Account) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, a.String()) }

// GoString is String.
func (a Account) GoString() string { return a.String() }

// LogValue is String.
func (a Account) LogValue() slog.Value { return slog.StringValue(a.String()) }

// MarshalText is String, for encoders that would write the fields.
func (a Account) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// An Error says why there is no token.
type Error struct {
	Temporary bool   // it may work later, with the same account
	Code      string // what the token server calls the error, such as invalid_client; "": it gave none
	Reason    string // a clause about the token server, for people, such as "answered 503"
	// Description is what the token server says, as it came: it may repeat what it was sent.
	Description string
}

func (e *Error) Error() string {
	if e.Code != "" {
		return "ask for an access token: the token server refuses with " + e.Code
	}
	return "ask for an access token: the token server " + e.Reason
}

package smtp

import (
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"strconv"

	"fingerpost/resolver/catalog"
	"fingerpost/resolver/hostname"
)

// A tlsMode says when a connection has to be secure.
type tlsMode uint8

const (
	tlsNone     tlsMode = iota // clear text; credentials to loopback only
	tlsImplicit                // from the first byte
	tlsStart                   // STARTTLS is required
)

// mode combines SSL and TLS. Both set means implicit TLS on port 465, which allows nothing else, and STARTTLS
// elsewhere; it never means clear text.
func (s Server) mode() tlsMode {
	switch {
	case s.SSL && (!s.TLS || s.port() == 465):
		return tlsImplicit
	case s.TLS:
		return tlsStart
	}
	return tlsNone
}

// port returns Port, or its default.
func (s Server) port() int {
	c := catalog.SMTPConfig{Port: s.Port, SSLEnabled: s.SSL}
	return c.EffectivePort()
}

// name returns Host as look-ups and certificates use it: an address, or a name in A-labels.
func (s Server) name() (string, error) {
	if _, err := netip.ParseAddr(s.Host); err == nil {
		return s.Host, nil
	}
	return hostname.Parse(s.Host)
}

// String names the server and the kind of connection, without credentials.
func (s Server) String() string {
	how := [...]string{tlsNone: "clear text", tlsImplicit: "TLS", tlsStart: "STARTTLS"}[s.mode()]
	if s.Username != "" {
		how += ", with a login"
	}
	return s.Host + ":" + strconv.Itoa(s.port()) + " (" + how + ")"
}

// Format writes String for every verb: %d and %x would print the password.
func (s Server) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// GoString is String.
func (s Server) GoString() string { return s.String() }

// LogValue is String.
func (s Server) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText is String, for encoders that would write the fields.
func (s Server) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

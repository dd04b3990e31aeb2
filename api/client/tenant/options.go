package tenant

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

// Options say what a Cache asks and what it keeps. URL is required; zero values of the other fields have the defaults
// that stand here.
type Options struct {
	// URL is the address of fingerpost, such as https://fingerpost.internal:8080. The key is sent there only.
	URL string
	// Key is a key with the permission resolve. Default: the variable FINGERPOST_KEY of the environment.
	Key string
	// File keeps the last good answers for a restart while the server is away. It belongs to one process at a time; a
	// second one with the same file reads it, and writes it once the first has ended. Its folder must exist. Windows has
	// no such lock: there the file is read and not written. Default: no file.
	File string
	// Warm are names to ask in one batch at the start.
	Warm []string

	// Fresh is how long an answer is good without the change feed. Default: 5 s.
	Fresh time.Duration
	// MaxStale is the age after which an answer is no longer given while the server is away. Default: no limit.
	MaxStale time.Duration
	// MaxEntries bounds the names with a tenant, 10,000 by default. One that was not looked up lately goes first.
	MaxEntries int
	// MaxNegative bounds the names without one, 1,000 by default.
	MaxNegative int

	// TrustForwardedHost lets Middleware take the host from X-Forwarded-Host. Set it behind a proxy that sets the header.
	TrustForwardedHost bool
	// OnError answers a request of Middleware whose host has no tenant. Default: see Middleware.
	OnError func(w http.ResponseWriter, r *http.Request, err error)
	// OnChange is called with the names whose answers were dropped, or marked to be confirmed before the next use, in the
	// order of the changes. OnChange, Observe and Logger are called by one goroutine, for which nothing waits: they may use
	// the Cache. Where they are 10,000 calls behind, further calls are left out. A panic in them is logged.
	OnChange func(hosts []string)
	// Observe is called after each lookup. The example Options (Observe) takes it to Prometheus and OpenTelemetry.
	Observe func(Event)

	// Transport sends the requests, for a CA or a proxy of your own. Default: one that uses the environment's proxy.
	Transport http.RoundTripper
	// Logger gets a line when the change feed is lost or open again, and for trouble with File. Default: slog.Default().
	Logger *slog.Logger
}

const (
	defaultFresh       = 5 * time.Second
	defaultMaxEntries  = 10_000
	defaultMaxNegative = 1_000
)

// complete puts the defaults in and reports every wrong field.
func (o *Options) complete() error {
	var problems []error
	wrong := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	if o.Key == "" {
		o.Key = os.Getenv("FINGERPOST_KEY")
	}
	o.URL = strings.TrimRight(o.URL, "/")
	switch u, err := url.Parse(o.URL); {
	case o.URL == "":
		wrong("URL is missing: the address of fingerpost, such as http://127.0.0.1:8080")
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		wrong("URL must be an address such as http://127.0.0.1:8080") // not quoted: it may hold a password
	case u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		wrong("URL must have no user, query or fragment")
	}
	switch {
	case o.Key == "":
		wrong("Key is missing: give it here or in FINGERPOST_KEY")
	case strings.ContainsFunc(o.Key, func(c rune) bool { return c <= ' ' || c >= 0x7f }):
		wrong("Key holds a blank or another character that no key has")
	}
	if o.Fresh < 0 || o.MaxStale < 0 {
		wrong("Fresh and MaxStale must not be negative")
	}
	if o.MaxEntries < 0 || o.MaxNegative < 0 {
		wrong("MaxEntries and MaxNegative must not be negative")
	}
	if o.Fresh == 0 {
		o.Fresh = defaultFresh
	}
	if o.MaxEntries == 0 {
		o.MaxEntries = defaultMaxEntries
	}
	if o.MaxNegative == 0 {
		o.MaxNegative = defaultMaxNegative
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if err := errors.Join(problems...); err != nil {
		return fmt.Errorf("tenant options: %w", err)
	}
	return nil
}

package login

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"fingerpost/resolver/catalog"
	"fingerpost/resolver/publicnet"
)

// providerTime is how long a discovery counts.
const providerTime = time.Hour

// A provider is what discovery says. It is not changed.
type provider struct {
	issuer    string
	ca        []byte
	fetched   time.Time
	transport *transport
	client    *http.Client
	oidc      *oidc.Provider
	keys      oidc.KeySet
	document  document
}

// A document is the part of discovery that go-oidc does not show.
type document struct {
	Authorization string   `json:"authorization_endpoint"`
	Token         string   `json:"token_endpoint"`
	Keys          string   `json:"jwks_uri"`
	Userinfo      string   `json:"userinfo_endpoint"`
	EndSession    string   `json:"end_session_endpoint"`
	AuthMethods   []string `json:"token_endpoint_auth_methods_supported"`
	Algorithms    []string `json:"id_token_signing_alg_values_supported"`
	SendsIssuer   bool     `json:"authorization_response_iss_parameter_supported"` // RFC 9207
}

// check says what is wrong with endpoints. Browsers are sent to two of them, and the service asks the others.
func (doc *document) check(allow *catalog.HTTPAllow) error {
	var problems []string
	for _, e := range []struct {
		name, address string
		required      bool
	}{
		{"authorization_endpoint", doc.Authorization, true},
		{"token_endpoint", doc.Token, true},
		{"jwks_uri", doc.Keys, true},
		{"userinfo_endpoint", doc.Userinfo, false},
		{"end_session_endpoint", doc.EndSession, false},
	} {
		switch {
		case e.address != "":
			if problem := catalog.CheckLoginAddress(e.address, allow); problem != "" {
				problems = append(problems, fmt.Sprintf("its %s %s", e.name, problem))
			}
		case e.required:
			problems = append(problems, "it has no "+e.name)
		}
	}
	if len(problems) > 0 {
		return errors.New(strings.Join(problems, "; "))
	}
	return nil
}

// provider returns the provider of a login. It asks it if that is an hour ago, once for all callers.
func (d *Desk) provider(ctx context.Context, l *catalog.Login) (*provider, *Error) {
	ca, err := d.o.ReadCA(l)
	if err != nil {
		failed := &Error{Status: http.StatusServiceUnavailable, Message: "The file of ca_file cannot be read.", cause: err}
		d.note(l, nil, failed)
		return nil, failed
	}
	if p := d.known(l, ca); p != nil {
		return p, nil
	}
	hash := sha256.Sum256(ca)
	flight := d.flights.DoChan(l.Name+"\n"+l.Issuer+"\n"+string(hash[:]), func() (any, error) {
		// One caller's context must not end what others wait for.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), d.o.Timeout)
		defer cancel()
		if p := d.known(l, ca); p != nil { // a flight has ended since this caller looked
			return p, nil
		}
		p, failed := d.discover(ctx, l, ca)
		d.note(l, p, failed)
		if failed != nil {
			return nil, failed
		}
		return p, nil
	})
	select {
	case result := <-flight:
		var failed *Error
		if errors.As(result.Err, &failed) {
			return nil, failed
		}
		return result.Val.(*provider), nil
	case <-ctx.Done():
		return nil, &Error{Status: http.StatusServiceUnavailable,
			Message: "The provider gave no discovery document: the wait has ended.", cause: ctx.Err()}
	}
}

// known returns what is known of a login's provider, unless it is too old, or of another issuer or certificate.
func (d *Desk) known(l *catalog.Login, ca []byte) *provider {
	d.mu.Lock()
	defer d.mu.Unlock()
	p := d.providers[l.Name].provider
	if p == nil || p.issuer != l.Issuer || !bytes.Equal(p.ca, ca) || d.o.Now().Sub(p.fetched) >= providerTime {
		return nil
	}
	return p
}

// note keeps whether a sign-in could begin at last. A failure leaves what was known before, and is logged when it is a new
// one.
func (d *Desk) note(l *catalog.Login, p *provider, failed *Error) {
	live := d.o.Logins()
	d.mu.Lock()
	defer d.mu.Unlock()
	for name := range d.providers {
		if !slices.ContainsFunc(live, func(l catalog.Login) bool { return l.Name == name }) {
			delete(d.providers, name)
		}
	}
	was := d.providers[l.Name]
	if failed == nil {
		d.providers[l.Name] = outcome{provider: p, issuer: l.Issuer}
		return
	}
	if was.problem != failed.Message || was.issuer != l.Issuer {
		d.warn("a provider cannot be used for sign-in", l.Name, failed)
	}
	d.providers[l.Name] = outcome{provider: was.provider, issuer: l.Issuer, problem: failed.Message}
}

// An outcome is how the last begin of a sign-in ended.
type outcome struct {
	provider *provider // the last good one; nil: there was none
	issuer   string    // that was asked last
	problem  string    // "": it was good
}

// discover asks the provider.
func (d *Desk) discover(ctx context.Context, l *catalog.Login, ca []byte) (*provider, *Error) {
	if problem := catalog.CheckLoginAddress(l.Issuer, d.o.Allow); problem != "" {
		return nil, &Error{Status: http.StatusServiceUnavailable, Message: "The issuer of the block " + problem + "."}
	}
	options := publicnet.ClientOptions{Guard: publicnet.New(d.o.Allow.List()), Resolver: d.o.Resolver,
		HeaderBytes: headerBytes}
	if len(ca) > 0 {
		options.Roots = x509.NewCertPool()
		if !options.Roots.AppendCertsFromPEM(ca) {
			return nil, &Error{Status: http.StatusServiceUnavailable, Message: "The file of ca_file has no certificate in PEM."}
		}
	}
	p := &provider{issuer: l.Issuer, ca: ca, fetched: d.o.Now(),
		transport: &transport{client: publicnet.NewClient(options), timeout: d.o.Timeout,
			agent: publicnet.UserAgent(d.o.Version)}}
	p.client = &http.Client{Transport: p.transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	var err error
	if p.oidc, err = oidc.NewProvider(p.with(ctx), l.Issuer); err == nil {
		if err = p.oidc.Claims(&p.document); err == nil {
			err = p.document.check(d.o.Allow)
		}
	}
	if err != nil {
		return nil, asking("discovery document", err)
	}
	p.keys = oidc.NewRemoteKeySet(p.with(context.Background()), p.document.Keys)
	return p, nil
}

// with returns a context in which go-oidc and x/oauth2 use the provider's client.
func (p *provider) with(ctx context.Context) context.Context {
	return oidc.ClientContext(ctx, p.client)
}

// algorithms are those of ID tokens: what discovery names, without those that a holder of the public key, or anybody,
// can make. RS256 is the one that OpenID Connect asks for.
func (p *provider) algorithms() []string {
	good := []string{oidc.RS256, oidc.RS384, oidc.RS512, oidc.PS256, oidc.PS384, oidc.PS512, oidc.ES256, oidc.ES384,
		oidc.ES512, oidc.EdDSA}
	good = slices.DeleteFunc(good, func(a string) bool { return !slices.Contains(p.document.Algorithms, a) })
	if len(good) == 0 {
		return []string{oidc.RS256}
	}
	return good
}

// config is the client at the provider.
func (p *provider) config(l *catalog.Login, secret, redirect string) *oauth2.Config {
	endpoint := oauth2.Endpoint{AuthURL: p.document.Authorization, TokenURL: p.document.Token,
		AuthStyle: oauth2.AuthStyleInHeader}
	methods := p.document.AuthMethods
	if secret == "" || len(methods) > 0 && !slices.Contains(methods, "client_secret_basic") {
		endpoint.AuthStyle = oauth2.AuthStyleInParams // a guess that fails could cost the code, which is good once
	}
	scopes := l.Scopes
	if len(scopes) == 0 {
		scopes = catalog.DefaultLoginScopes
	}
	return &oauth2.Config{ClientID: l.ClientID, ClientSecret: secret, Endpoint: endpoint, RedirectURL: redirect,
		Scopes: scopes}
}

// keysOnce is the key set for one token. It keeps the error, of which the verifier passes on the text alone.
type keysOnce struct {
	oidc.KeySet
	err error
}

// VerifySignature is for oidc.KeySet.
func (k *keysOnce) VerifySignature(ctx context.Context, jwt string) (payload []byte, err error) {
	payload, k.err = k.KeySet.VerifySignature(ctx, jwt)
	return payload, k.err
}

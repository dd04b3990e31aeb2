package inbound

import (
	"context"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"sync"
	"time"

	"fingerpost/resolver/catalog"
	"fingerpost/resolver/publicnet"
)

// Bounds of what is fetched from the provider.
const (
	fetchTime   = 10 * time.Second
	fetchBytes  = 64 << 10
	failedFor   = 10 * time.Second // a certificate that could not be fetched is not asked for again
	maxKept     = 4                // certificates of a block
	minKeyBits  = 2048
	keptCertFor = 24 * time.Hour
)

// A Provider is where messages are signed. Its fields are for tests, in which another server is the provider.
type Provider struct {
	Host   *regexp.Regexp // of its addresses, with their port
	Client *publicnet.Client
}

// amazonHost is the form of the hosts of Amazon SNS: sns, a region, and their domain. A region begins with letters alone,
// so that sns.s3-us-west-2.amazonaws.com, which shows files of a customer, is none.
var amazonHost = regexp.MustCompile(`^sns\.[a-z]{2,4}(-[a-z]{2,12}){1,3}-[0-9]{1,2}\.amazonaws\.com(\.cn)?$`)

func amazon() *Provider {
	return &Provider{Host: amazonHost, Client: publicnet.NewClient(publicnet.ClientOptions{HeaderBytes: fetchBytes})}
}

// own reports whether an address is the provider's.
func (p *Provider) own(u *url.URL) bool {
	return u.Scheme == "https" && u.User == nil && u.Opaque == "" && u.Fragment == "" && p.Host.MatchString(u.Host)
}

// certificatePath is the only path at which certificates are: others of the provider's answer what a caller has written.
var certificatePath = regexp.MustCompile(`^/SimpleNotificationService-[0-9A-Za-z]{1,64}\.pem$`)

// signs reports whether an address can be that of a certificate.
func (p *Provider) signs(text string) bool {
	u, err := url.Parse(text)
	return err == nil && p.own(u) && u.RawQuery == "" && !u.ForceQuery && certificatePath.MatchString(u.EscapedPath())
}

// get fetches an address of the provider. Redirects are not followed.
func (p *Provider) get(ctx context.Context, address string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	res, none := p.Client.Do(req)
	if none != nil {
		return nil, fmt.Errorf("%s: %w", none.Sentence(fetchTime), none.Cause)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, fetchBytes+1))
	switch {
	case err != nil:
		return nil, err
	case res.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("the provider answered %d", res.StatusCode)
	case len(text) > fetchBytes:
		return nil, fmt.Errorf("the provider answered with more than %d bytes", fetchBytes)
	}
	return text, nil
}

// confirm confirms a subscription.
func (p *Provider) confirm(ctx context.Context, address string) error {
	_, err := p.get(ctx, address)
	return err
}

// certificates keeps the last keys of a provider, by address. One fetch runs at a time.
type certificates struct {
	fetching sync.Mutex // held while one is fetched, so that a block waits for its own fetches alone
	mu       sync.Mutex // guards kept
	kept     map[string]certificate
}

// A certificate is what an address had.
type certificate struct {
	key   *rsa.PublicKey
	err   error
	until time.Time
}

var errNoCertificate = catalog.Unavailable("the provider's certificate cannot be fetched at the moment")

// key returns the key of the certificate at an address. The error is for clients.
func (c *certificates) key(ctx context.Context, p *Provider, address string, now time.Time) (*rsa.PublicKey, error) {
	if kept, found := c.get(address, now); found {
		return kept.key, kept.err
	}
	c.fetching.Lock()
	defer c.fetching.Unlock()
	if kept, found := c.get(address, now); found { // fetched meanwhile
		return kept.key, kept.err
	}
	got := fetchCertificate(ctx, p, address, now)
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.kept) >= maxKept {
		oldest := ""
		for a, kept := range c.kept {
			if oldest == "" || kept.until.Before(c.kept[oldest].until) {
				oldest = a
			}
		}
		delete(c.kept, oldest)
	}
	if c.kept == nil {
		c.kept = map[string]certificate{}
	}
	c.kept[address] = got
	return got.key, got.err
}

func (c *certificates) get(address string, now time.Time) (kept certificate, found bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	kept, found = c.kept[address]
	return kept, found && now.Before(kept.until)
}

func fetchCertificate(ctx context.Context, p *Provider, address string, now time.Time) certificate {
	failed := certificate{until: now.Add(failedFor)}
	text, err := p.get(ctx, address)
	if err != nil {
		failed.err = errNoCertificate
		return failed
	}
	cert, err := parseCertificate(text, now)
	if err != nil {
		failed.err = invalid(catalog.Problem{Path: "SigningCertURL", Message: err.Error()})
		return failed
	}
	until := now.Add(keptCertFor)
	if cert.NotAfter.Before(until) {
		until = cert.NotAfter
	}
	return certificate{key: cert.PublicKey.(*rsa.PublicKey), until: until} //nolint:forcetypeassert // parseCertificate
}

// parseCertificate reads a certificate with a key of RSA that is good now.
func parseCertificate(text []byte, now time.Time) (*x509.Certificate, error) {
	block, _ := pem.Decode(text)
	if block == nil || block.Type != "CERTIFICATE" {
		return nil, errors.New("has no certificate")
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, errors.New("has a certificate that cannot be read")
	}
	key, is := cert.PublicKey.(*rsa.PublicKey)
	switch {
	case !is || key.N.BitLen() < minKeyBits:
		return nil, fmt.Errorf("has a certificate without a key of RSA of at least %d bits", minKeyBits)
	case now.Before(cert.NotBefore) || now.After(cert.NotAfter):
		return nil, errors.New("has a certificate that is not good now")
	}
	return cert, nil
}

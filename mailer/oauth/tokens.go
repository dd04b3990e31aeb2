package oauth

import (
	"cmp"
	"context"
	"crypto/x509"
	"net"
	"net/netip"
	"sync"
	"time"

	"fingerpost/resolver/publicnet"
)

const (
	askTime     = 10 * time.Second
	answerBytes = 64 << 10
	// A token is longer than a line of an AUTH command may be (RFC 4954 4: 12,288 bytes, in base64) if it has more.
	tokenBytes = 8 << 10
	// maxUse is the longest use of a token: what was granted to the account since is in the next one only.
	maxUse = time.Hour
	// unsaidLife is the use of a token whose end the server does not tell.
	unsaidLife = 5 * time.Minute
	// defaultMost tokens have 80 MiB at most: an account is whatever a tenant writes into its config.
	defaultMost = 10_000
)

// Options are what Tokens need. The zero value is ready for use.
type Options struct {
	Allow    []netip.Prefix   // networks that may be connected to although they are private
	Resolver *net.Resolver    // nil: the system's
	Roots    *x509.CertPool   // nil: the system's
	Now      func() time.Time // nil: time.Now
	Timeout  time.Duration    // of a question; 0: ten seconds
	Most     int              // tokens that are kept; 0: 10,000
}

// Tokens are the access tokens in use. Safe for concurrent use.
type Tokens struct {
	client  *publicnet.Client
	now     func() time.Time
	timeout time.Duration
	most    int

	mu     sync.Mutex // guards what follows
	kept   map[Account]*token
	asking map[Account]*question
}

// A token is one in use.
type token struct {
	text   string
	ends   time.Time
	forget *time.Timer // drops it at its end
}

// A question is one to a token server, for all callers that wait for the account.
type question struct {
	done chan struct{} // closed at the end; the fields below are set then
	text string
	err  *Error
}

// New returns an empty Tokens.
func New(o Options) *Tokens {
	now := o.Now
	if now == nil {
		now = time.Now
	}
	return &Tokens{now: now, timeout: cmp.Or(o.Timeout, askTime), most: cmp.Or(o.Most, defaultMost),
		kept: map[Account]*token{}, asking: map[Account]*question{},
		client: publicnet.NewClient(publicnet.ClientOptions{Guard: publicnet.New(o.Allow), Resolver: o.Resolver,
			Roots: o.Roots, HeaderBytes: answerBytes})}
}

// Token returns a token of an account, and whether the token server has just given it: otherwise it is from memory. The
// context ends the wait, but not a question that others may wait for. The error is an *Error.
func (t *Tokens) Token(ctx context.Context, a Account) (text string, fresh bool, err error) {
	t.mu.Lock()
	if k := t.kept[a]; k != nil && t.now().Before(k.ends) {
		t.mu.Unlock()
		return k.text, false, nil
	}
	q := t.asking[a]
	if q == nil {
		q = &question{done: make(chan struct{})}
		t.asking[a] = q
		go t.answer(a, q) //nolint:gosec // other callers may wait for it when this one gives up
	}
	t.mu.Unlock()
	select {
	case <-q.done:
	case <-ctx.Done():
		return "", false, &Error{Temporary: true, Reason: "did not answer in time"}
	}
	if q.err != nil {
		return "", false, q.err
	}
	return q.text, true, nil
}

// answer asks for the callers that wait.
func (t *Tokens) answer(a Account, q *question) {
	text, life, err := t.Ask(context.Background(), a)
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.asking, a)
	if q.text, q.err = text, err; err == nil && life > 0 {
		t.keep(a, text, life)
	}
	close(q.done)
}

// keep keeps a token in the place of the account's last one. Where there are too many, any other one goes: its account asks
// once more. The caller holds mu.
func (t *Tokens) keep(a Account, text string, life time.Duration) {
	t.remove(a)
	for other := range t.kept {
		if len(t.kept) < t.most {
			break
		}
		t.remove(other)
	}
	t.kept[a] = &token{text, t.now().Add(life), time.AfterFunc(life, func() { t.drop(a, text) })}
}

// remove forgets the token of an account, and ends its timer, which would keep the text. The caller holds mu.
func (t *Tokens) remove(a Account) {
	if k := t.kept[a]; k != nil {
		k.forget.Stop()
		delete(t.kept, a)
	}
}

// Forget has the next caller ask for another token: the SMTP server refused this one. A token that has followed it stays.
func (t *Tokens) Forget(a Account, text string) { t.drop(a, text) }

func (t *Tokens) drop(a Account, text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if k := t.kept[a]; k != nil && k.text == text {
		t.remove(a)
	}
}

// useOf returns how long a token is used: less than it lives, so that it does not end on the way.
func useOf(expiry time.Time) time.Duration {
	if expiry.IsZero() {
		return unsaidLife
	}
	life := time.Until(expiry)
	return min(life-min(life/10, time.Minute), maxUse)
}

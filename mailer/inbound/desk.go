package inbound

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"fingerpost/resolver/catalog"
)

// A Ledger has the suppression lists, the mail log and the marks of outcomes; *resolver.Resolver is one.
type Ledger interface {
	SuppressOnce(project int64, s catalog.Suppression, mark string, value []byte, by catalog.Author) (catalog.Once, error)
	MailLog(project, id int64) (catalog.MailLog, bool, error)
	MailAcross(projects []int64, q catalog.MailQuery) (catalog.MailFound, error)
	EachNamed(prefix string, f func(name string, value []byte) error) error
	SetNamed(values map[string][]byte) error
}

// Projects are what is served; *resolver.Resolver is one.
type Projects interface {
	ProjectByID(id int64) (*catalog.Project, error)
	ProjectBySlug(slug string) (*catalog.Project, error)
}

// Options are what a Desk needs. Blocks, Secrets, Ledger and Projects are required.
type Options struct {
	Blocks func() []catalog.Inbound // the same slice until they change
	// Secrets opens those of a block, as far as that is possible; the error says why some stay closed.
	Secrets  func(b *catalog.Inbound) ([]string, error)
	Ledger   Ledger
	Projects Projects
	Logger   *slog.Logger     // nil: slog.Default
	Now      func() time.Time // nil: time.Now
	Provider *Provider        // nil: Amazon SNS; another one is for tests
}

// The errors of Admit for a caller who is not let in. They look the same to the caller.
var (
	ErrNoSecret    = errors.New("no secret was given")
	ErrWrongSecret = errors.New("the secret is wrong, or there is no such block")
)

var errClosed = catalog.Unavailable("the secret of an inbound block cannot be opened at the moment")

// atOnce is how many messages of a block are taken at a time: each may wait for the provider.
const atOnce = 8

// A Desk takes outcomes. Safe for concurrent use.
type Desk struct {
	o        Options
	provider *Provider
	marks    marks

	mu     sync.Mutex // guards the fields below
	of     []catalog.Inbound
	known  *known            // nil: the secrets are to be opened again
	states map[string]*state // by name
}

// known are the declared blocks with their secrets.
type known struct {
	blocks map[string]*Block
	nobody Block // for unknown names: its secrets are random
	closed bool  // some secret cannot be opened
}

// A Block is a declared block whose secret a caller has given.
type Block struct {
	*catalog.Inbound
	secrets [catalog.MaxInboundSecrets][sha256.Size]byte // random where there is none
	closed  string                                       // why some cannot be opened; "": all are open
	*state
}

// A state is what a block has besides its declaration.
type state struct {
	places       chan struct{}
	certificates certificates
	counts       [results]atomic.Uint64
	overflowed   atomic.Int64 // when an outcome last found a full list, Unix nanoseconds; 0: never
	dropped      atomic.Int64 // when an outcome was last dropped for want of a project, Unix nanoseconds; 0: never
}

// New returns a Desk.
func New(o Options) *Desk {
	o.Logger = cmp.Or(o.Logger, slog.Default())
	if o.Now == nil {
		o.Now = time.Now
	}
	d := &Desk{o: o, provider: o.Provider, states: map[string]*state{}}
	if d.provider == nil {
		d.provider = amazon()
	}
	return d
}

// Forget has the secrets opened again: the content of their files may have changed.
func (d *Desk) Forget() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.known = nil
}

// declared returns the blocks as they are declared now.
func (d *Desk) declared() *known {
	list := d.o.Blocks()
	d.mu.Lock()
	defer d.mu.Unlock()
	same := len(list) == len(d.of) && (len(list) == 0 || &list[0] == &d.of[0])
	if same && d.known != nil {
		return d.known
	}
	k := &known{blocks: map[string]*Block{}, nobody: Block{secrets: noSecrets()}}
	states := map[string]*state{}
	for i := range list {
		b := &Block{Inbound: &list[i], secrets: noSecrets(), state: d.states[list[i].Name]}
		if b.state == nil {
			b.state = &state{places: make(chan struct{}, atOnce)}
		}
		secrets, err := d.o.Secrets(b.Inbound)
		for j, secret := range secrets {
			b.secrets[j%len(b.secrets)] = sha256.Sum256([]byte(secret))
		}
		if err != nil {
			k.closed, b.closed = true, err.Error()
			d.o.Logger.Warn("a secret of an inbound block cannot be used", "inbound", b.Name, "error", err)
		}
		k.blocks[b.Name], states[b.Name] = b, b.state
	}
	d.of, d.known, d.states = list, k, states
	return k
}

// noSecrets returns hashes that no text has.
func noSecrets() (hashes [catalog.MaxInboundSecrets][sha256.Size]byte) {
	for i := range hashes {
		rand.Read(hashes[i][:]) // never fails, see crypto/rand
	}
	return hashes
}

// Admit returns the block with a name, if one of its secrets is the password of Basic, or the token of Bearer, in the
// values of the header field Authorization. Otherwise the error is ErrNoSecret or ErrWrongSecret. While a secret of any
// block cannot be opened, a caller with a wrong one is told to try again, whatever the name: providers do, and the answer
// tells no names.
func (d *Desk) Admit(name string, authorization [][]byte) (*Block, error) {
	k := d.declared()
	given, ok := secretIn(authorization)
	if !ok {
		return nil, ErrNoSecret
	}
	b := k.blocks[name]
	of := &k.nobody
	if b != nil {
		of = b
	}
	sum, same := sha256.Sum256([]byte(given)), 0
	for i := range of.secrets {
		same |= subtle.ConstantTimeCompare(sum[:], of.secrets[i][:])
	}
	switch {
	case b != nil && same == 1:
		return b, nil
	case k.closed:
		return nil, errClosed
	}
	return nil, ErrWrongSecret
}

// secretIn returns the password or token in the values of the header field Authorization, of which there must be one.
func secretIn(values [][]byte) (secret string, ok bool) {
	if len(values) != 1 {
		return "", false
	}
	scheme, rest, _ := strings.Cut(strings.TrimSpace(string(values[0])), " ")
	rest = strings.TrimSpace(rest)
	switch strings.ToLower(scheme) {
	case "bearer":
		return rest, rest != ""
	case "basic":
		text, err := base64.StdEncoding.DecodeString(rest)
		_, password, found := strings.Cut(string(text), ":")
		return password, err == nil && found
	}
	return "", false
}

// A Result counts what has become of the outcomes of a message.
type Result struct {
	Listed    int `json:"listed"`    // new on a list
	Present   int `json:"present"`   // on the list already
	Repeated  int `json:"repeated"`  // applied before
	Ignored   int `json:"ignored"`   // those that list nobody, and those older than 30 days
	Unmatched int `json:"unmatched"` // of no project that the block may touch
}

var errBusy = catalog.Unavailable("too many messages for this block are being taken at the moment")

// Take applies a message for the block. by has the door, and the id of the request. Errors are those for clients.
func (d *Desk) Take(ctx context.Context, b *Block, message []byte, by catalog.Author) (r Result, err error) {
	select {
	case b.places <- struct{}{}:
		defer func() { <-b.places }()
	default:
		return r, errBusy
	}
	now := d.o.Now()
	list, ignored, err := d.read(ctx, b, message, now)
	if err != nil {
		if e, is := errors.AsType[*catalog.Error](err); is && e.Code == catalog.CodeValidation {
			b.counts[refused].Add(1)
			d.o.Logger.Warn("a message of a provider is refused", "inbound", b.Name,
				"problems", saysProblems(e.Problems))
		}
		return r, err
	}
	r.Ignored += ignored
	b.counts[ignoredResult].Add(uint64(ignored))
	for i := range list {
		if err := d.apply(b, &list[i], now, by, &r); err != nil {
			return r, err
		}
	}
	return r, nil
}

// read reads the outcomes of a message that list somebody, and counts the others.
func (d *Desk) read(ctx context.Context, b *Block, message []byte, now time.Time) (list []outcome, ignored int,
	err error) {
	switch b.Format {
	case catalog.InboundSES:
		return d.readSES(ctx, b, message, now)
	case catalog.InboundPostmark:
		return readPostmark(message)
	case catalog.InboundJSON:
		return readJSON(message, now)
	}
	return nil, 0, catalog.Unavailable("the format of the block is not known")
}

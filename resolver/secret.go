package resolver

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"fingerpost/resolver/catalog"
	"fingerpost/resolver/store"
)

// A tokenSource is how a project's tokens are verified, as the files declare it.
type tokenSource struct {
	tokenDeclaration
	rules *catalog.TokenRules
}

// A tokenDeclaration tells tokenSources apart.
type tokenDeclaration struct {
	projectID   int64
	slug        string
	uuid        catalog.UUID
	authEnabled bool // service_settings
	jwtEnabled  bool
	ownRules    bool // see AuthSettings.OwnRules
	fromFiles   bool // a part of it is in files
	secret      catalog.Secret
	rules       [sha256.Size]byte // of the rules
}

const tokenSourceBytes = int64(unsafe.Sizeof(tokenSource{}))

// tokenSourceOf keeps no reference to m, which is reused.
func tokenSourceOf(m *match) *tokenSource {
	service, auth := m.defaults.InForce(&m.project)
	rules := builtInRules
	if !slices.Equal(auth.Rules.Algorithms, rules.Algorithms) || auth.Rules.Issuer != nil || auth.Rules.Audience != nil {
		own := auth.Rules.Clone()
		rules = &own
	}
	return &tokenSource{tokenDeclaration: tokenDeclaration{
		projectID: m.project.Project.ID, slug: m.project.Project.Slug, uuid: m.project.Project.UUID,
		authEnabled: service.AuthEnabled, jwtEnabled: auth.Token.JWTEnabled, secret: auth.Token.JWTSecret,
		ownRules:  rules != builtInRules && auth.OwnRules(),
		fromFiles: auth.Token.JWTSecret.Source == catalog.SecretFile || slices.ContainsFunc(rules.Keys, isFile),
		rules:     sumOfRules(rules, rules.Keys),
	}, rules: rules}
}

var builtInRules = func() *catalog.TokenRules { r := catalog.NewTokenRules(); return &r }()

func isFile(key string) bool { _, is := catalog.FilePath(key); return is }

// sumOfRules identifies rules with these texts of their keys.
func sumOfRules(r *catalog.TokenRules, keys []string) (sum [sha256.Size]byte) {
	if r == builtInRules {
		return sum
	}
	h := sha256.New()
	add := func(text string) {
		_ = binary.Write(h, binary.BigEndian, int64(len(text))) // a hash takes everything
		_, _ = io.WriteString(h, text)
	}
	addOptional := func(text *string) {
		if add(strconv.FormatBool(text != nil)); text != nil {
			add(*text)
		}
	}
	for _, list := range [][]string{r.Algorithms, keys} {
		add(strconv.Itoa(len(list)))
		for _, text := range list {
			add(text)
		}
	}
	addOptional(r.Issuer)
	addOptional(r.Audience)
	addOptional(r.KeySetURL)
	h.Sum(sum[:0])
	return sum
}

// TokenKeys are what the tokens of a project are verified with. They are shared and must not be changed.
type TokenKeys struct {
	ProjectID int64
	Rules     *catalog.TokenRules
	OwnRules  bool                 // see catalog.AuthSettings.OwnRules
	Secret    []byte               // of HS256; nil: HS256 is not allowed, or the secret cannot be opened
	Public    []*catalog.PublicKey // those of the project that can be read; not those of a key set
	// Identity changes with everything above.
	Identity [sha256.Size]byte
}

// usable reports whether there is anything to verify a token with.
func (k *TokenKeys) usable() bool {
	return len(k.Secret) > 0 || len(k.Public) > 0 || k.Rules.KeySetURL != nil
}

// minSecretBytes is the minimum for HS256: the size of its hash (RFC 7518, 3.2).
const minSecretBytes = 32

// rereadEvery is the age at which a secret or key from a file is read again: a file can be replaced without a change of its
// declaration. Environment variables and sealed values cannot change while the process runs.
const rereadEvery = 5 * time.Second

// secrets caches opened jwtSecrets and keys, in memory only. An entry is valid only for the declaration that it was opened from.
// Safe for concurrent use.
type secrets struct {
	opener func(s catalog.Secret, context string) (string, error) // nil: no secret can be opened
	log    *slog.Logger
	now    func() time.Time
	slots  sync.Map // project id to *secretSlot
}

// A secretSlot belongs to one project.
type secretSlot struct {
	opening sync.Mutex // held while the secret is opened, so that concurrent requests open it once
	opened  atomic.Pointer[openedSecret]
}

type openedSecret struct {
	from  *tokenSource
	at    time.Time
	plain string // the secret, also where no algorithm uses it: the flat form shows it
	keys  *TokenKeys
	// problem and keysProblem say why the secret, or a key, is missing; "" if nothing is.
	problem, keysProblem string
	flat                 atomic.Bool // the flat form has requested it
}

// open returns the cached secret, or opens it.
func (s *secrets) open(from *tokenSource) *openedSecret {
	v, ok := s.slots.Load(from.projectID)
	if !ok {
		v, _ = s.slots.LoadOrStore(from.projectID, new(secretSlot))
	}
	slot := v.(*secretSlot)
	now := s.now()
	if o := slot.opened.Load(); o.serves(from, now) {
		return o
	}
	slot.opening.Lock()
	defer slot.opening.Unlock()
	before := slot.opened.Load()
	if before.serves(from, now) {
		return before
	}
	o := s.read(from, before)
	o.at = now
	if before == nil {
		before = new(openedSecret)
	}
	o.flat.Store(before.flat.Load())
	if from.secret.Source != catalog.SecretNone && o.problem != "" && before.problem != o.problem {
		s.log.Warn("the jwt_secret of a project cannot be opened: its tokens cannot be verified", "project", from.slug,
			"error", o.problem)
	}
	if o.keysProblem != "" && before.keysProblem != o.keysProblem {
		s.log.Warn("a key in jwt_keys of a project cannot be used", "project", from.slug, "error", o.keysProblem)
	}
	slot.opened.Store(o)
	return o
}

// serves reports whether o is what opening from would return. o may be nil.
func (o *openedSecret) serves(from *tokenSource, now time.Time) bool {
	return o != nil && (o.from == from || o.from.tokenDeclaration == from.tokenDeclaration) &&
		(!from.fromFiles || now.Sub(o.at) < rereadEvery && !now.Before(o.at))
}

// read opens the secret and the keys. before is what was opened last, nil if nothing was.
func (s *secrets) read(from *tokenSource, before *openedSecret) *openedSecret {
	o := &openedSecret{from: from}
	symmetric := slices.Contains(from.rules.Algorithms, catalog.AlgorithmHS256)
	if symmetric || from.secret.Source != catalog.SecretNone {
		o.plain, o.problem = s.readSecret(from)
	}
	keys := &TokenKeys{ProjectID: from.projectID, Rules: from.rules, OwnRules: from.ownRules}
	if symmetric && o.plain != "" {
		keys.Secret = []byte(o.plain)
	}
	texts, problems := s.readKeys(from)
	rules := sumOfRules(from.rules, texts)
	keys.Identity = sha256.Sum256(slices.Concat([]byte(strconv.FormatBool(from.ownRules)), rules[:], keys.Secret))
	keys.Public, problems = parseKeys(from.rules, texts, problems)
	if o.keys = keys; before != nil && before.keys.Identity == keys.Identity {
		o.keys = before.keys
	}
	o.keysProblem = strings.Join(problems, "; ")
	return o
}

func (s *secrets) readSecret(from *tokenSource) (plain, problem string) {
	if from.secret.Source == catalog.SecretNone {
		return "", "no jwt_secret is given"
	}
	if s.opener == nil {
		return "", "secrets cannot be opened on this node"
	}
	text, err := s.opener(from.secret, from.uuid.String()+"/jwt_secret")
	switch {
	case err != nil:
		return "", err.Error()
	case text == "":
		return "", "the jwt_secret is empty"
	}
	return text, ""
}

// readKeys returns the texts of the keys, "" for one that cannot be read.
func (s *secrets) readKeys(from *tokenSource) (texts, problems []string) {
	texts = make([]string, len(from.rules.Keys))
	for i, text := range from.rules.Keys {
		file, is := catalog.FilePath(text)
		if !is {
			texts[i] = text
			continue
		}
		if s.opener == nil {
			return texts, []string{"files of keys cannot be read on this node"}
		}
		text, err := s.opener(catalog.Secret{Source: catalog.SecretFile, Ref: file}, from.uuid.String()+"/jwt_keys")
		switch {
		case err != nil:
			problems = append(problems, fmt.Sprintf("entry %d: %v", i+1, err))
		case text == "":
			problems = append(problems, fmt.Sprintf("entry %d: the file is empty", i+1))
		default:
			texts[i] = text
		}
	}
	return texts, problems
}

// parseKeys returns the keys that are fit, and adds why the others are not.
func parseKeys(r *catalog.TokenRules, texts, problems []string) ([]*catalog.PublicKey, []string) {
	var keys []*catalog.PublicKey
	for i, text := range texts {
		if text == "" { // readKeys has told why
			continue
		}
		k, err := r.Key(text)
		if err != nil {
			problems = append(problems, fmt.Sprintf("entry %d %v", i+1, err))
			continue
		}
		keys = append(keys, k)
	}
	return keys, problems
}

// forFlat returns the secret for the flat form: nil if the project has none or it cannot be opened.
func (s *secrets) forFlat(m *match) *string {
	from := tokenSourceOf(m)
	if from.secret.Source == catalog.SecretNone {
		return nil
	}
	o := s.open(from)
	if o.problem != "" {
		o.flat.Store(true)
		return nil
	}
	return &o.plain
}

// dropChangedSecrets drops the secrets whose declaration e has changed or removed.
func (r *Resolver) dropChangedSecrets(e *store.Effect) {
	if e.Many || e.Defaults {
		r.ForgetSecrets()
		return
	}
	for i := range e.Projects {
		id := e.Projects[i].ID
		slot, ok := r.secrets.slots.Load(id)
		if !ok {
			continue
		}
		opened := slot.(*secretSlot).opened.Load()
		p, defaults, err := r.ProjectConfig(id)
		if err != nil || opened == nil ||
			tokenSourceOf(&match{project: *p, defaults: defaults}).tokenDeclaration != opened.from.tokenDeclaration {
			r.secrets.slots.Delete(id)
		}
	}
}

// ForgetSecrets drops all opened secrets; each is opened again when needed.
func (r *Resolver) ForgetSecrets() { r.secrets.slots.Clear() }

// ErrNoTokenKeys is UNAVAILABLE: there is nothing to verify a token with.
var ErrNoTokenKeys = &catalog.Error{Code: catalog.CodeUnavailable,
	Message: "the project's tokens cannot be verified at the moment"}

// TokenKeys returns what verifies the tokens of the project that a belongs to. a must have the form Tokens or Gateway, and
// no Code. The error is a *catalog.Error: AUTH_DISABLED if the project's jwt_enabled is false, ErrNoTokenKeys if there
// is nothing to verify with here; SecretProblems then says why.
func (r *Resolver) TokenKeys(a *Answer) (*TokenKeys, error) {
	if !a.tokens.jwtEnabled {
		return nil, &catalog.Error{Code: catalog.CodeAuthDisabled, Message: "the project does not use tokens"}
	}
	o := r.secrets.open(a.tokens)
	if !o.keys.usable() {
		return nil, ErrNoTokenKeys
	}
	return o.keys, nil
}

// A SecretProblem is a jwt_secret that cannot be opened, or that is too short, or keys that cannot be used.
type SecretProblem struct {
	ProjectID int64
	Slug      string
	Field     string // of the auth settings
	Message   string // does not reveal the secret
	Warning   bool   // it works despite the problem
}

// SecretProblems lists the problems of the jwt_secrets and jwt_keys that were needed so far, by slug. One that cannot be
// opened is a problem if auth_enabled is true or the flat form has requested it. Short secrets in clear text are not
// listed: the files' diagnostics report them.
func (r *Resolver) SecretProblems() (problems []SecretProblem) {
	r.secrets.slots.Range(func(_, slot any) bool {
		if o := slot.(*secretSlot).opened.Load(); o != nil {
			problems = append(problems, o.problems()...)
		}
		return true
	})
	slices.SortStableFunc(problems, func(a, b SecretProblem) int { return strings.Compare(a.Slug, b.Slug) })
	return problems
}

func (o *openedSecret) problems() (list []SecretProblem) {
	add := func(field, message string, warning bool) {
		list = append(list, SecretProblem{ProjectID: o.from.projectID, Slug: o.from.slug, Field: field, Message: message,
			Warning: warning})
	}
	switch {
	case o.problem != "" && (o.from.authEnabled || o.flat.Load()):
		add("jwtSecret", o.problem, false)
	case o.problem == "" && o.plain != "" && len(o.plain) < minSecretBytes && o.from.secret.Source != catalog.SecretPlain:
		add("jwtSecret", "is shorter than 32 bytes: one token is enough to try out short secrets; use 32 random bytes", true)
	}
	if o.keysProblem != "" && o.from.authEnabled {
		add("jwtKeys", o.keysProblem, false)
	}
	return list
}

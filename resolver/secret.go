package resolver

import (
	"log/slog"
	"slices"
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
	projectID   int64
	slug        string
	uuid        catalog.UUID
	authEnabled bool // service_settings
	jwtEnabled  bool
	secret      catalog.Secret
}

const tokenSourceBytes = int64(unsafe.Sizeof(tokenSource{}))

// tokenSourceOf keeps no reference to m, which is reused.
func tokenSourceOf(m *match) *tokenSource {
	service, auth := m.defaults.InForce(&m.project)
	return &tokenSource{
		projectID: m.project.Project.ID, slug: m.project.Project.Slug, uuid: m.project.Project.UUID,
		authEnabled: service.AuthEnabled, jwtEnabled: auth.Token.JWTEnabled, secret: auth.Token.JWTSecret,
	}
}

// minSecretBytes is the minimum for HS256: the size of its hash (RFC 7518, 3.2).
const minSecretBytes = 32

// rereadEvery is the age at which a secret from a file is read again: a file can be replaced without a change of its
// declaration. Environment variables and sealed values cannot change while the process runs.
const rereadEvery = 5 * time.Second

// secrets caches opened jwtSecrets, in memory only. An entry is valid only for the declaration that it was opened from.
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
	from    tokenSource
	at      time.Time
	plain   []byte
	problem string      // why plain is missing; "" if it is there
	flat    atomic.Bool // the flat form has requested it
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
	o := &openedSecret{from: *from, at: now}
	o.plain, o.problem = s.read(from)
	if before != nil {
		o.flat.Store(before.flat.Load())
	}
	if o.problem != "" && from.secret.Source != catalog.SecretNone && (before == nil || before.problem != o.problem) {
		s.log.Warn("the jwt_secret of a project cannot be opened: its tokens cannot be verified", "project", from.slug,
			"error", o.problem)
	}
	slot.opened.Store(o)
	return o
}

// serves reports whether o is what opening from would return. o may be nil.
func (o *openedSecret) serves(from *tokenSource, now time.Time) bool {
	return o != nil && o.from == *from && (from.secret.Source != catalog.SecretFile || now.Sub(o.at) < rereadEvery)
}

func (s *secrets) read(from *tokenSource) (plain []byte, problem string) {
	if from.secret.Source == catalog.SecretNone {
		return nil, "no jwt_secret is given"
	}
	if s.opener == nil {
		return nil, "secrets cannot be opened on this node"
	}
	text, err := s.opener(from.secret, from.uuid.String()+"/jwt_secret")
	switch {
	case err != nil:
		return nil, err.Error()
	case text == "":
		return nil, "the jwt_secret is empty"
	}
	return []byte(text), ""
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
	text := string(o.plain)
	return &text
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
		if err != nil || opened == nil || *tokenSourceOf(&match{project: *p, defaults: defaults}) != opened.from {
			r.secrets.slots.Delete(id)
		}
	}
}

// ForgetSecrets drops all opened secrets; each is opened again when needed.
func (r *Resolver) ForgetSecrets() { r.secrets.slots.Clear() }

// TokenSecret returns the secret that signs the tokens of the project that a belongs to. a must have the form Tokens or
// Gateway, and no Code. The secret is shared and must not be changed. The error is a *catalog.Error: AUTH_DISABLED if
// the project's jwt_enabled is false, UNAVAILABLE if it has no secret or one that cannot be opened here; SecretProblems
// then says why.
func (r *Resolver) TokenSecret(a *Answer) ([]byte, error) {
	if !a.tokens.jwtEnabled {
		return nil, &catalog.Error{Code: catalog.CodeAuthDisabled, Message: "the project does not use tokens"}
	}
	o := r.secrets.open(a.tokens)
	if o.problem != "" {
		return nil, &catalog.Error{Code: catalog.CodeUnavailable,
			Message: "the project's tokens cannot be verified at the moment"}
	}
	return o.plain, nil
}

// A SecretProblem is a jwt_secret that cannot be opened, or that is too short.
type SecretProblem struct {
	ProjectID int64
	Slug      string
	Message   string // does not reveal the secret
	Warning   bool   // it works despite the problem
}

// SecretProblems lists the problems of the jwt_secrets that were needed so far, by slug. A secret that cannot be opened
// is a problem if auth_enabled is true or the flat form has requested it. Short secrets in clear text are not listed:
// the files' diagnostics report them.
func (r *Resolver) SecretProblems() (problems []SecretProblem) {
	r.secrets.slots.Range(func(_, slot any) bool {
		o := slot.(*secretSlot).opened.Load()
		if o == nil {
			return true
		}
		p := SecretProblem{ProjectID: o.from.projectID, Slug: o.from.slug, Message: o.problem}
		switch {
		case o.problem != "" && (o.from.authEnabled || o.flat.Load()):
			problems = append(problems, p)
		case o.problem == "" && len(o.plain) < minSecretBytes && o.from.secret.Source != catalog.SecretPlain:
			p.Message, p.Warning = "is shorter than 32 bytes: one token is enough to try out short secrets; use 32 random bytes",
				true
			problems = append(problems, p)
		}
		return true
	})
	slices.SortFunc(problems, func(a, b SecretProblem) int { return strings.Compare(a.Slug, b.Slug) })
	return problems
}

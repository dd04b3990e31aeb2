package mailer

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"fingerpost/mailer/smtp"
	"fingerpost/resolver/catalog"
)

// A destination is where a project's mail goes according to the current config.
type destination struct {
	server      smtp.Server
	fingerprint fingerprint
	from        string // the config's fromEmail
}

// A fingerprint identifies an SMTP config, secrets included. It is a salted hash, so it reveals nothing of them.
type fingerprint [sha256.Size]byte

// salt is new in each process.
var salt = sync.OnceValue(func() [16]byte {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails, see crypto/rand
	return b
})

func fingerprintOf(s *smtp.Server, from string) (f fingerprint) {
	seed := salt()
	h := sha256.New()
	h.Write(seed[:])
	for _, text := range []string{s.Host, s.Username, s.Password, s.CA, from} {
		var length [8]byte
		binary.BigEndian.PutUint64(length[:], uint64(len(text)))
		h.Write(length[:])
		h.Write([]byte(text))
	}
	fmt.Fprint(h, s.Port, s.SSL, s.TLS)
	h.Sum(f[:0])
	return f
}

// destination reads where queued mail goes. wait says why it cannot go anywhere; err means that the store cannot be
// read.
func (m *Mailer) destination(project int64) (d destination, wait *hold, err error) {
	p, err := m.options.Projects.MailProject(project)
	var e *catalog.Error
	switch {
	case errors.As(err, &e) && e.Code == catalog.CodeNotFound:
		return d, &hold{code: e.Code, message: "the project was deleted"}, nil
	case err != nil:
		return d, nil, err
	case p.Project.Status == catalog.StatusSuspended:
		return d, &hold{code: catalog.CodeProjectSuspended, message: "the project is suspended"}, nil
	case p.SMTP == nil || !p.SMTP.Active:
		return d, &hold{code: catalog.CodeSMTPNotConfigured, message: "the project has no active SMTP config"}, nil
	}
	if d, err = m.open(p); err != nil {
		return d, &hold{code: catalog.CodeUnavailable, message: err.Error()}, nil
	}
	return d, nil, nil
}

// open opens the secrets of a project's SMTP config. Its error goes to callers and hides the cause, which is logged for
// the operator.
func (m *Mailer) open(p *catalog.ProjectConfig) (d destination, err error) {
	c := p.SMTP
	d.server = smtp.Server{Host: c.Host, Port: c.EffectivePort(), Username: c.Username, SSL: c.SSLEnabled, TLS: c.TLSEnabled}
	if c.Password.Source != catalog.SecretNone {
		if d.server.Password, err = m.openSecret(c.Password, p.Project.UUID.String()+"/password"); err != nil {
			return d, m.unopened.note(m.log, &p.Project, "SMTP password", err)
		}
	}
	if c.CAFile != "" {
		ca := catalog.Secret{Source: catalog.SecretFile, Ref: c.CAFile}
		if d.server.CA, err = m.openSecret(ca, p.Project.UUID.String()+"/ca_file"); err != nil {
			return d, m.unopened.note(m.log, &p.Project, "ca_file", err)
		}
	}
	m.unopened.forget(p.Project.ID)
	d.from = c.FromEmail
	d.fingerprint = fingerprintOf(&d.server, c.FromEmail)
	return d, nil
}

// unopened lists the projects with a secret that cannot be opened, and why. It keeps the log to one line per cause
// instead of one per send.
type unopened struct {
	mu  sync.Mutex
	why map[int64]string
}

// note logs which secret cannot be opened, and why, unless the last line about the project said the same. It returns
// the error for callers.
func (u *unopened) note(log *slog.Logger, p *catalog.Project, what string, err error) error {
	why := what + ": " + err.Error()
	u.mu.Lock()
	known := u.why[p.ID] == why
	if u.why == nil {
		u.why = map[int64]string{}
	}
	u.why[p.ID] = why
	u.mu.Unlock()
	if !known {
		log.Warn("a project's mail cannot be sent from this node, since a secret cannot be opened", "project", p.Slug, "secret", what, "error", err)
	}
	return fmt.Errorf("the %s of project %s cannot be opened on this node, whose log says why", what, p.Slug)
}

// forget lets note log again.
func (u *unopened) forget(project int64) {
	u.mu.Lock()
	delete(u.why, project)
	u.mu.Unlock()
}

var errNoOpener = errors.New("secrets cannot be opened here")

func (m *Mailer) openSecret(s catalog.Secret, context string) (string, error) {
	if m.options.OpenSecret == nil {
		return "", errNoOpener
	}
	return m.options.OpenSecret(s, context)
}

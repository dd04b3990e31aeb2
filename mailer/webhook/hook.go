package webhook

import (
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"time"

	"fingerpost/resolver/catalog"
	"fingerpost/resolver/records"
)

// A Hook is a webhook as it is declared.
type Hook struct {
	Name    string // a slug
	URL     string
	Secrets [][]byte // newest first; without one its events wait
	// Wants reports whether its list has an event. It may be called from any goroutine, as Covers.
	Wants func(event string) bool
	// Covers reports whether its list has a project. slug is that of the project before the change, "" with the end of a
	// mail: then the id decides. The id of a project that was deleted, or renamed since, is that of no listed slug any
	// more or of another one, so either may match; a deleted one is judged by the list before.
	Covers       func(projectID int64, slug string) bool
	EveryProject bool // it has no list: Covers is not asked, and events of no project are for it, too
	Active       bool
	Version      string // changes with each change of its declaration
}

// Hooks gives the webhooks.
type Hooks interface {
	// Webhooks returns the present webhooks, and a channel that is closed when they change. known is false as long as the
	// files have not been read: what is known of webhooks is kept then.
	Webhooks() (hooks []Hook, changed <-chan struct{}, known bool)
}

// A Trail is the audit trail, see records.Records.
type Trail interface {
	EntriesSince(id int64, f func(e *catalog.AuditEntry) (more bool)) error
	ProjectEntriesSince(project, id int64, f func(e *catalog.AuditEntry) (more bool)) error
	AuditEntry(id int64) (catalog.AuditEntry, bool, error)
}

// Mails is the mail log, see records.Records.
type Mails interface {
	EndedSince(seq int64, f func(m *records.EndedMail) (more bool)) error
	MailLog(project, id int64) (catalog.MailLog, bool, error)
}

// A Book keeps how far webhooks have come, see records.Records.
type Book interface {
	Hooks() ([]records.HookCursor, error)
	ChangeHooks(changes []records.HookChange) error
	HookDelivery(hook string, number int64) (records.HookDelivery, bool, error)
	LastHookDelivery(hook string) (records.HookDelivery, bool, error)
	HookDeliveries(hook string, q records.HookQuery) ([]records.HookDelivery, int, error)
}

// A Ledger is everything durable that an Engine uses; records.Records is one.
type Ledger interface {
	Trail
	Mails
	Book
	EventMarks() (at records.EventMarks, changed <-chan struct{}, source any, err error)
}

// A Clock is the time, for tests that move it.
type Clock interface {
	Now() time.Time
	AfterFunc(d time.Duration, f func()) (stop func())
}

// Options are what an Engine needs. Hooks and Ledger are required.
type Options struct {
	Hooks  Hooks
	Ledger Ledger
	// Allow lists networks that may be connected to although they are private, loopback or otherwise special.
	Allow   []netip.Prefix
	Version string // of the program, for User-Agent
	// Commits says that writes of clients get git commits: the first attempt waits a moment for one.
	Commits  bool
	Logger   *slog.Logger  // nil: slog.Default
	Clock    Clock         // nil: the real time
	Timeout  time.Duration // of an attempt; 0: 15 s
	Resolver *net.Resolver // nil: the system's
}

type realClock struct{}

func (realClock) Now() time.Time { return time.Now() }

func (realClock) AfterFunc(d time.Duration, f func()) (stop func()) {
	t := time.AfterFunc(d, f)
	return func() { t.Stop() }
}

// wants reports whether an entry is for the webhook. A rename belongs to both slugs. A webhook's own changes and
// conditions are not sent to it: its receiver may be what they are about.
func (h *Hook) wants(e *catalog.AuditEntry) bool {
	switch {
	case !h.Wants(e.Action), e.TellsOf(h.Name), isFirstLoad(e):
		return false
	case h.EveryProject:
		return true
	case e.ProjectID == 0:
		return false
	}
	return h.Covers(e.ProjectID, e.Slug) || h.Covers(e.ProjectID, newSlug(e))
}

// isFirstLoad reports whether an entry tells that the files were read into an empty store.
func isFirstLoad(e *catalog.AuditEntry) bool {
	return e.Action == catalog.AuditLoad && e.Generation <= 1
}

// slugField is the field of a project's slug: the only change that decides who gets an event.
const slugField = "slug"

// newSlug returns the slug that an entry gives its project, else the slug before.
func newSlug(e *catalog.AuditEntry) string {
	if strings.HasPrefix(e.Action, "project.") {
		for i := range e.Changes {
			if slug, is := e.Changes[i].After.(string); is && e.Changes[i].Field == slugField {
				return slug
			}
		}
	}
	return e.Slug
}

// The events of mails.
var mailEvents = map[catalog.MailStatus]string{
	catalog.MailSent: catalog.EventMailSent, catalog.MailFailed: catalog.EventMailFailed,
	catalog.MailExpired: catalog.EventMailExpired, catalog.MailSuppressed: catalog.EventMailSuppressed,
}

// wantsMail reports whether the end of a mail is for the webhook.
func (h *Hook) wantsMail(m *records.EndedMail) bool {
	return h.Wants(mailEvents[m.Status]) && (h.EveryProject || h.Covers(m.Project, ""))
}

// wantsMails reports whether any is.
func (h *Hook) wantsMails() bool {
	for _, event := range mailEvents {
		if h.Wants(event) {
			return true
		}
	}
	return false
}

// GapEvent is the event that some were lost. It is on no webhook's list.
const GapEvent = "gap"

// gapLane is the project of the lane in which a gap is told. Entry and Mail of the lane are those after which events were
// lost.
const gapLane = -2

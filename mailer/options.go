package mailer

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"fingerpost/mailer/smtp"
	"fingerpost/resolver/catalog"
	"fingerpost/resolver/signedlink"
)

// Projects answers what the files declare. *resolver.Resolver implements it. Errors are *catalog.Error: NOT_FOUND for
// what does not exist, UNAVAILABLE if the store cannot be read. The caller owns the results. Any goroutine may call the
// methods.
type Projects interface {
	// ProjectOfDomain finds a project as resolve does. Its errors are also DOMAIN_NOT_VERIFIED and PROJECT_SUSPENDED, and
	// VALIDATION_ERROR on "domain" for a text that is no host name.
	ProjectOfDomain(domain string) (projectID int64, err error)
	// MailProject returns a project of any status without its domains and templates, with its effective settings.
	MailProject(id int64) (*catalog.ProjectConfig, error)
	// MailTemplate returns the template that a project uses for a code: its own active one, else the active default one.
	// If there are only inactive ones, the error is TEMPLATE_INACTIVE.
	MailTemplate(projectID int64, code string) (*catalog.Template, error)
}

// A Carrier hands messages to servers, within its own time limits. *Transport implements it and documents the methods;
// any goroutine may call them.
type Carrier interface {
	Send(ctx context.Context, to smtp.Server, envelope smtp.Envelope, message []byte) smtp.Outcome
	// SendAlone uses a connection of its own, and ends with ctx even if the server has the whole message.
	// tell is called with each step when it has ended, from any goroutine.
	SendAlone(ctx context.Context, to smtp.Server, envelope smtp.Envelope, message []byte,
		tell func(smtp.Step)) smtp.Outcome
}

// A Clock tells the time and runs timers. The zero Options use the real clock.
type Clock interface {
	Now() time.Time
	// AfterFunc calls f in a goroutine of its own after d, unless stop is called before.
	AfterFunc(d time.Duration, f func()) (stop func() bool)
}

// Options configure a Mailer. Ledger, Projects and Carrier are required; the others may be zero.
type Options struct {
	Ledger   Ledger
	Projects Projects
	Carrier  Carrier
	// OpenSecret opens passwords, and CA files that are secrets given by file(). context is "<project's uuid>/password".
	// Nil: no secret can be opened.
	OpenSecret func(s catalog.Secret, context string) (string, error)

	// UnsubscribeLink returns the address at which a recipient leaves a category. Nil: the service has none, and templates with a
	// category need the link of the caller.
	UnsubscribeLink func(of signedlink.Subscription) (address string, err error)

	// Keep keeps every mail instead of sending it, also mail that an earlier process has queued. No secret is opened, and
	// no server is contacted. The entries of such mail are SENT by the provider SINK.
	Keep bool
	// Held keeps mail that an earlier process queued until Release is called. Until the files are read, Projects may be
	// out of date and mail would go to the wrong server.
	Held bool

	Budget    time.Duration // how long a Send takes at most; 0 means 10 s
	Retention time.Duration // how long log entries are kept; 0 means 90 days, less than a day means a day
	PerServer int           // attempts at a time with the mail of one project; 0 means 16. See DefaultPerServer
	Retries   int           // attempts at a time with mail that waited, over all projects; 0 means 256
	Queue     int           // mails that wait, over all projects; 0 means 100,000
	// QueuePerProject is how many mails of one project may wait; 0 means 10,000. A send beyond Queue or QueuePerProject is
	// RATE_LIMITED.
	QueuePerProject int
	// LowDisk says what the disk of the Ledger lacks, "" if it has enough. Sends are RATE_LIMITED while it is not "". Nil:
	// there is always enough.
	LowDisk func() string
	Logger  *slog.Logger // nil means slog.Default
	Clock   Clock        // nil means the real one
}

// Default options. DefaultPerServer is twice DefaultConnections, so that while one mail uses a connection, another one
// is being synced to disk.
const (
	DefaultBudget    = 10 * time.Second
	DefaultRetention = 90 * 24 * time.Hour
	DefaultPerServer = 2 * smtp.DefaultConnections
	DefaultRetries   = 256
)

// A TestRequest holds SMTP settings to try, and the recipient of the test mail. Nothing of it is stored.
type TestRequest struct {
	Config  catalog.SMTPConfig // its secrets are in clear text; its CAFile is ignored
	ToEmail string
	// OnStep is called with each step when it has ended, from any goroutine. Nil: nobody waits for it.
	OnStep func(name string, took time.Duration)
}

// Format hides the secrets.
func (t TestRequest) Format(f fmt.State, _ rune) {
	fmt.Fprintf(f, "test of %s:%d to %s", t.Config.Host, t.Config.EffectivePort(), t.ToEmail)
}

// A TestReport says how far a test got.
type TestReport struct {
	Connected bool // connecting, greeting, TLS and AUTH passed
	ToEmail   string
	MailSent  bool
	Reply     string // the server's text for what it refused, see Outcome; "" if it refused nothing
	Steps     []smtp.Step
}

// Counts are a Mailer's figures for the metrics.
type Counts struct {
	Waiting  int64  // mails that are accepted and have not reached their end
	LowDisk  string // why Options.LowDisk refused the last send; "" once there is room again
	Attempts int64  // running ones, from a mail's turn until its outcome is stored
	Keeps    bool   // Options.Keep
	Sends    []SendCount

	// What follows is up to 5 s late: it costs a look at each waiting mail, which a scrape must not pay for.

	// Oldest is the id of the oldest mail that waits for an attempt, 0 if none does: without mail of stopped projects, and
	// without the mails that are being tried.
	Oldest                        int64
	StoppedProjects, StoppedMails int64 // see Stopped
}

// A SendCount is how often an attempt, or the wait for one, had a result since Open.
type SendCount struct {
	Result string // sent, kept, failed, expired, retrying, uncertain, suppressed
	N      uint64
}

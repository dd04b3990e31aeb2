package mailer

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"fingerpost/resolver/catalog"
)

// Projects answers what the files declare. *resolver.Resolver satisfies it. Errors are *catalog.Error: NOT_FOUND for what
// is not there, UNAVAILABLE where the store cannot be read. What is returned is the caller's. All methods may be called
// from any goroutine.
type Projects interface {
	// ProjectOfDomain finds a project as resolve does (api/README.md, Resolve); also DOMAIN_NOT_VERIFIED and
	// PROJECT_SUSPENDED, and VALIDATION_ERROR on "domain" for what is no host name.
	ProjectOfDomain(domain string) (projectID int64, err error)
	// MailProject returns a project without its domains and templates, its settings as they are in force, whatever its
	// status.
	MailProject(id int64) (*catalog.ProjectConfig, error)
	// MailTemplate returns what a code means to a project: its own active template, else the active default one;
	// TEMPLATE_INACTIVE where there is none but inactive ones.
	MailTemplate(projectID int64, code string) (*catalog.Template, error)
}

// A Carrier hands messages over to servers, within time limits of its own. *Transport is the one there is, and says what
// the methods promise; they may be called from any goroutine.
type Carrier interface {
	Send(ctx context.Context, to Server, envelope Envelope, message []byte) Outcome
	// SendAlone uses no connection but one of its own, and ends with ctx even where the server has the whole message.
	SendAlone(ctx context.Context, to Server, envelope Envelope, message []byte) Outcome
}

// A Clock is the time and what waits for it. The zero Options have the real one.
type Clock interface {
	Now() time.Time
	// AfterFunc calls f in a goroutine of its own when d has passed, unless stop is called before.
	AfterFunc(d time.Duration, f func()) (stop func() bool)
}

// Options are what a Mailer works with. Ledger, Projects and Carrier are needed; the zero values of the others are right.
type Options struct {
	Ledger   Ledger
	Projects Projects
	Carrier  Carrier
	// OpenSecret opens passwords, and CA files as secrets given by file(). context is "<project's uuid>/password". Nil:
	// none can be.
	OpenSecret func(s catalog.Secret, context string) (string, error)

	// Held lets what an earlier process has queued alone until Release is called: as long as the Projects may say what the
	// files said some time ago, mail would go where it does not belong any more.
	Held bool

	Budget    time.Duration // how long a Send takes at most; 0 means 10 s
	Retention time.Duration // how long log entries are kept; 0 means 90 days, less than a day means a day
	PerServer int           // attempts at a time with the mail of one project; 0 means 16. See DefaultPerServer
	Retries   int           // attempts at a time with mail that waited, over all projects; 0 means 256
	Queue     int           // mails that wait, over all projects; 0 means 100,000
	// QueuePerProject is how many mails of one project may wait; 0 means 10,000. A send beyond one of the two is RATE_LIMITED.
	QueuePerProject int
	// LowDisk says what the disk of the Ledger has too little of, "" where there is enough: while it says something, sends are
	// RATE_LIMITED. Nil: there is always enough.
	LowDisk func() string
	Logger  *slog.Logger // nil means slog.Default
	Clock   Clock        // nil means the real one
}

// The Options' defaults. DefaultPerServer is twice DefaultConnections: while one mail has a connection, another one is on
// its way to the disk.
const (
	DefaultBudget    = 10 * time.Second
	DefaultRetention = 90 * 24 * time.Hour
	DefaultPerServer = 2 * DefaultConnections
	DefaultRetries   = 256
)

// A TestRequest is SMTP settings to try, and where to send the mail that tries them. Nothing of it is kept.
type TestRequest struct {
	Config   catalog.SMTPConfig // its Password and CAFile are not looked at
	Password string
	ToEmail  string
}

// Format leaves the password out.
func (t TestRequest) Format(f fmt.State, _ rune) {
	fmt.Fprintf(f, "test of %s:%d to %s", t.Config.Host, t.Config.EffectivePort(), t.ToEmail)
}

// A TestReport says how far a test came.
type TestReport struct {
	Connected bool // connecting, greeting, TLS and AUTH passed
	ToEmail   string
	MailSent  bool
	Reply     string // what the server said to what it refused, see Outcome; "" where nothing
	Steps     []Step
}

// Counts are a Mailer's figures for the metrics.
type Counts struct {
	Waiting  int64  // mails that are accepted and have not reached their end
	LowDisk  string // why the last send was refused, where Options.LowDisk said so; "" once there is room again
	Attempts int64  // under way, from when a mail's turn comes until what came of it is stored
	Sends    []SendCount
}

// A SendCount is how often something has come of an attempt, or of the wait for one, since Open.
type SendCount struct {
	Result string // sent, failed, expired, retrying, uncertain
	N      uint64
}

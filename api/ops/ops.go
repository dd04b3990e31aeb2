package ops

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"net/netip"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"fingerpost/api/conditions"
	"fingerpost/api/ops/history"
	"fingerpost/configsrc"
	"fingerpost/configsrc/gitrepo"
	"fingerpost/mailer"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

// Figures is what the ops listener asks of the HTTP server; *api.Server has them.
type Figures interface {
	// Connections is the number of open connections.
	Connections() int
	// EachAuthFailure yields how often keys and tokens were refused, by reason.
	EachAuthFailure(yield func(reason string, count uint64))
	// EachRequest yields the durations of requests by route, method and status.
	EachRequest(yield func(Requests))
	// EachGatewayAnswer yields how often gateways were answered, by result.
	EachGatewayAnswer(yield func(result string, count uint64))
}

// Streams is what the ops listener asks of the event streams; *events.Streams is one.
type Streams interface {
	// Len is the number of open streams.
	Len() int
	// EachEnding yields how many streams have ended, by reason.
	EachEnding(yield func(reason string, count uint64))
}

// Config is what the ops listener asks of the config files; *configsrc.Source is one.
type Config interface {
	Status() configsrc.Status
	Reload(ctx context.Context) error
	// Confirm applies the mass deletion that is held back, for the audit trail in the name of by.
	Confirm(ctx context.Context, by catalog.Author) error
	// EachWrite yields how many writes of clients had which result.
	EachWrite(yield func(result string, count uint64))
}

// Mail is what the ops listener asks of the mailer; *mailer.Mailer is one.
type Mail interface {
	Counts() mailer.Counts
	Stopped() []mailer.Stopped
	SecretProblems() []mailer.SecretProblem
}

// Options say what the ops listener reports on. Resolver, Figures, Streams and Config are required.
type Options struct {
	Resolver *resolver.Resolver
	Figures  Figures
	Streams  Streams
	Config   Config
	Logger   *slog.Logger // nil: slog.Default()
	Version  string
	Commit   string         // that the program was built from; "unknown"
	Listen   []string       // the address as it was asked for and as it is: their hosts are names of this machine
	Allow    []netip.Prefix // networks that may send commands and take profiles; this machine always may
	// Git returns the state of the git repository, and SyncGit lets the next fetch and push begin. Nil: there is none.
	Git     func() gitrepo.Status
	SyncGit func()
	// Mail reports on the mail service. Nil: there is none.
	Mail Mail
	// ReopenSecrets has all parts open their secrets again, before a reload. Nil: none has any.
	ReopenSecrets func()
	// SignIn returns links that sign one person in to the console, for a caller who knows Proof. Nil: there are none.
	SignIn func() []string
	Proof  string
	// Cluster reports on the cluster. Nil: the node belongs to none.
	Cluster Cluster
	// History is what the node did in the last hour. Nil: it keeps none.
	History *history.Recorder
	// Readings are figures of parts that ops does not know otherwise.
	Readings Readings
}

// A Server serves probes, metrics, profiles, the status and the reload commands. It asks for no key: a guard decides
// which requests it answers. Safe for concurrent use.
type Server struct {
	Options
	started  time.Time
	ready    atomic.Bool
	backedUp atomic.Int64 // when the last backup was whole, Unix milliseconds; 0: never
	http     *http.Server
}

// New makes a Server that is not ready yet.
func New(o Options) (*Server, error) {
	if o.Resolver == nil || o.Figures == nil || o.Streams == nil || o.Config == nil {
		return nil, errors.New("ops: Options.Resolver, Figures, Streams or Config is missing")
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	ops := &Server{Options: o, started: time.Now()}
	registry, err := ops.registry()
	if err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	guard := newGuard(o.Listen, o.Allow)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", ops.readyz)
	mux.Handle("GET /status", guard.reading(ops.status))
	mux.Handle("GET /metrics", guard.near(promhttp.HandlerFor(registry,
		promhttp.HandlerOpts{EnableOpenMetrics: true, ErrorLog: slog.NewLogLogger(o.Logger.Handler(), slog.LevelError)})))
	reload := func(ctx context.Context) error {
		if o.ReopenSecrets != nil {
			o.ReopenSecrets()
		}
		return o.Config.Reload(ctx)
	}
	locks := new(lockProfiles)
	for pattern, command := range map[string]http.HandlerFunc{
		"POST /reload": ops.command(reload),
		"POST /reload/confirm": ops.command(func(ctx context.Context) error {
			return o.Config.Confirm(ctx, catalog.Author{Door: catalog.DoorCLI})
		}),
		"POST /backup":         ops.backup,
		"POST /hooks/git":      ops.gitHook,
		"POST /console-link":   ops.signIn,
		"/debug/pprof/":        pprof.Index,
		"/debug/pprof/cmdline": pprof.Cmdline,
		"/debug/pprof/profile": pprof.Profile,
		"/debug/pprof/symbol":  pprof.Symbol,
		"/debug/pprof/trace":   pprof.Trace,
		"/debug/pprof/mutex":   locks.handler("mutex"),
		"/debug/pprof/block":   locks.handler("block"),
	} {
		mux.Handle(pattern, guard.command(command))
	}
	ops.http = &http.Server{
		ConnState: newConnLimit().track,
		// A web page in the operator's browser must not be able to send commands.
		Handler:           http.NewCrossOriginProtection().Handler(mux),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      3 * time.Minute, // a profile takes as long as it is asked to
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(o.Logger.Handler(), slog.LevelWarn),
	}
	return ops, nil
}

// Serve serves on ln, which it owns, until Shutdown, which makes it return nil.
func (o *Server) Serve(ln net.Listener) error {
	if err := o.http.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve operations on %s: %w", ln.Addr(), err)
	}
	return nil
}

// SetReady decides what /readyz answers: true once the first load has ended, false when the shutdown begins.
func (o *Server) SetReady(ready bool) { o.ready.Store(ready) }

// Shutdown stops serving; when ctx ends it cuts what is left.
func (o *Server) Shutdown(ctx context.Context) error {
	if err := o.http.Shutdown(ctx); err != nil {
		o.http.Close()
		return err
	}
	return nil
}

func (o *Server) readyz(w http.ResponseWriter, _ *http.Request) {
	if !o.ready.Load() {
		http.Error(w, "not ready", http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ok")
}

// statusDocument is the document of /status.
type statusDocument struct {
	Version       string           `json:"version"`
	Ready         bool             `json:"ready"`
	UptimeSeconds float64          `json:"uptimeSeconds"`
	Formats       formats          `json:"formats"`
	Store         storeStatus      `json:"store"`
	Config        configsrc.Status `json:"config"`
	Git           *gitrepo.Status  `json:"git,omitempty"`
	Mail          *mailStatus      `json:"mail,omitempty"`
	Audit         auditStatus      `json:"audit"`
	Cluster       any              `json:"cluster,omitempty"`
	Verification  any              `json:"verification,omitempty"`
	Webhooks      *webhooksStatus  `json:"webhooks,omitempty"`
	Secrets       []secretStatus   `json:"secrets"` // problems of secrets that were needed; at most maxSecretProblems
	// Conditions are what needs a person, the worst first.
	Conditions []conditions.Condition `json:"conditions"`
}

// A secretStatus is a problem with a project's secret.
type secretStatus struct {
	Severity  string `json:"severity"` // "error" or "warning"
	Project   string `json:"project"`  // its slug
	ProjectID int64  `json:"projectId"`
	Field     string `json:"field"`
	Message   string `json:"message"`
}

// maxSecretProblems bounds how many projects /status names.
const maxSecretProblems = 100

// formats are the versions of the layouts that this release reads and writes on disk.
type formats struct {
	Store  uint64 `json:"store"`
	Ledger uint64 `json:"ledger"`
}

type storeStatus struct {
	Degraded bool   `json:"degraded"`
	Reason   string `json:"reason,omitempty"`
}

func (o *Server) status(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set(headerPID, strconv.Itoa(os.Getpid()))
	reason, degraded := o.Resolver.Degraded()
	status := statusDocument{
		Version:       o.Version,
		Ready:         o.ready.Load(),
		UptimeSeconds: time.Since(o.started).Seconds(),
		Formats:       formats{Store: resolver.StoreFormat, Ledger: resolver.LedgerFormat},
		Store:         storeStatus{Degraded: degraded, Reason: reason},
		Config:        o.Config.Status(),
	}
	if o.Git != nil {
		git := o.Git()
		status.Git = &git
	}
	if o.Mail != nil {
		status.Mail = o.mailStatus()
	}
	if o.Cluster != nil {
		status.Cluster = o.Cluster.Status()
	}
	if o.Readings.Domains != nil {
		status.Verification = o.Readings.Domains.Status()
	}
	status.Webhooks = o.Readings.webhooks()
	status.Audit = o.auditStatus()
	status.Secrets, status.Conditions = o.secretStatus(), conditions.Of(o.State())
	if o.History == nil {
		writeJSON(w, http.StatusOK, status)
		return
	}
	// Last, and with a line for each list: people read this document.
	document, err := json.MarshalIndent(status, "", "  ")
	if err != nil {
		o.Logger.Error("status", "error", err)
		writeJSON(w, http.StatusInternalServerError, map[string]string{"error": "the log says more"})
		return
	}
	document = append(bytes.TrimSuffix(document, []byte("\n}")), ",\n  \"history\": "...)
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	_, _ = w.Write(append(o.History.View().AppendJSON(document), "\n}\n"...))
}

func (o *Server) secretStatus() []secretStatus {
	problems := o.Resolver.SecretProblems()
	list := []secretStatus{}
	for _, p := range problems[:min(len(problems), maxSecretProblems)] {
		severity := "error"
		if p.Warning {
			severity = "warning"
		}
		list = append(list, secretStatus{Severity: severity, Project: p.Slug, ProjectID: p.ProjectID, Field: p.Field,
			Message: p.Message})
	}
	if o.Readings.KeySets != nil {
		o.Readings.KeySets(func(project int64, slug, message string) {
			if len(list) < 2*maxSecretProblems {
				list = append(list, secretStatus{Severity: "error", Project: slug, ProjectID: project,
					Field: conditions.KeySetField, Message: message})
			}
		})
	}
	if o.Mail == nil {
		return list
	}
	ofMail := o.Mail.SecretProblems()
	for _, p := range ofMail[:min(len(ofMail), maxSecretProblems)] {
		list = append(list, secretStatus{Severity: "error", Project: p.Slug, ProjectID: p.ProjectID,
			Field: "smtpConfig." + p.Field, Message: p.Message})
	}
	return list
}

// command runs a reload command and answers with the state of the files after it.
func (o *Server) command(run func(context.Context) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := run(r.Context()); err != nil {
			writeJSON(w, http.StatusConflict, map[string]any{"error": err.Error(), "config": o.Config.Status()})
			return
		}
		writeJSON(w, http.StatusOK, map[string]any{"config": o.Config.Status()})
	}
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	_ = encoder.Encode(v) // a failure means that the client has gone
}

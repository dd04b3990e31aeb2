package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"fingerpost/configsrc"
	"fingerpost/mailer"
)

// Config is what the ops listener asks of the files' side; *configsrc.Source is one.
type Config interface {
	Status() configsrc.Status
	Reload(ctx context.Context) error
	// Confirm lets through the mass deletion that is held back.
	Confirm(ctx context.Context) error
}

// MailFigures is what the ops listener asks of the mailer; *mailer.Mailer is one.
type MailFigures interface {
	Counts() mailer.Counts
	Stopped() []mailer.Stopped
}

// OpsOptions say what the ops listener tells about. All but Logger and Version are required.
type OpsOptions struct {
	Server  *Server
	Config  Config
	Logger  *slog.Logger // nil: slog.Default()
	Version string
	Listen  []string       // the address as it was asked for and as it is: their hosts are names of this machine
	Allow   []netip.Prefix // networks that may send commands and take profiles; this machine always may
	// AfterWrite tells how the command after writes does. Nil: there is none.
	AfterWrite func() AfterWriteStatus
	// Mail tells how the mail service does. Nil: there is none.
	Mail MailFigures
}

// An AfterWriteStatus tells how the command of --after-write does.
type AfterWriteStatus struct {
	Runs      uint64    `json:"runs"`     // that have ended
	Failures  uint64    `json:"failures"` // of them
	Running   bool      `json:"running"`
	Pending   int       `json:"pending"`          // writes that wait for a run, or for a run that succeeds
	LastRun   time.Time `json:"lastRun,omitzero"` // when it began
	LastError string    `json:"error,omitempty"`  // why the last run failed, with the end of its output
}

// An Ops serves probes, metrics, profiles, the status and the reload commands (cmd/fingerpost/README.md, serve). It asks
// for no key: who may ask what is for an opsGuard to say. Safe for concurrent use.
type Ops struct {
	server  *Server
	config  Config
	log     *slog.Logger
	version string
	after   func() AfterWriteStatus // nil: none
	mail    MailFigures             // nil: none
	started time.Time
	ready   atomic.Bool
	http    *http.Server
}

// NewOps makes an Ops that is not ready yet.
func NewOps(o OpsOptions) (*Ops, error) {
	if o.Server == nil || o.Config == nil {
		return nil, errors.New("api: OpsOptions.Server or Config is missing")
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	ops := &Ops{server: o.Server, config: o.Config, log: o.Logger, version: o.Version, after: o.AfterWrite, mail: o.Mail, started: time.Now()}
	registry, err := ops.registry()
	if err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	guard := newOpsGuard(o.Listen, o.Allow)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", ops.readyz)
	mux.Handle("GET /status", guard.told(ops.status))
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{ErrorLog: slog.NewLogLogger(o.Logger.Handler(), slog.LevelError)}))
	reload := func(ctx context.Context) error {
		o.Server.resolver.ForgetSecrets()
		return o.Config.Reload(ctx)
	}
	locks := new(lockProfiles)
	for pattern, command := range map[string]http.HandlerFunc{
		"POST /reload":         ops.command(reload),
		"POST /reload/confirm": ops.command(o.Config.Confirm),
		"POST /backup":         ops.backup,
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
		// A web page that the operator has open must not be able to send commands.
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
func (o *Ops) Serve(ln net.Listener) error {
	if err := o.http.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve operations on %s: %w", ln.Addr(), err)
	}
	return nil
}

// SetReady decides what /readyz answers: true once the first load has ended, false when the shutdown begins.
func (o *Ops) SetReady(ready bool) { o.ready.Store(ready) }

// Shutdown stops serving; when ctx ends it cuts what is left.
func (o *Ops) Shutdown(ctx context.Context) error {
	if err := o.http.Shutdown(ctx); err != nil {
		o.http.Close()
		return err
	}
	return nil
}

func (o *Ops) readyz(w http.ResponseWriter, _ *http.Request) {
	if !o.ready.Load() {
		http.Error(w, "not ready", http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ok")
}

// opsStatus is the document of /status.
type opsStatus struct {
	Version       string            `json:"version"`
	Ready         bool              `json:"ready"`
	UptimeSeconds float64           `json:"uptimeSeconds"`
	Store         storeStatus       `json:"store"`
	Config        configsrc.Status  `json:"config"`
	AfterWrite    *AfterWriteStatus `json:"afterWrite,omitempty"`
	Mail          *mailStatus       `json:"mail,omitempty"`
	Secrets       []secretStatus    `json:"secrets"` // what is wrong with secrets that were needed; maxSecretProblems at most
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

type storeStatus struct {
	Degraded bool   `json:"degraded"`
	Reason   string `json:"reason,omitempty"`
}

func (o *Ops) status(w http.ResponseWriter, _ *http.Request) {
	reason, degraded := o.server.resolver.Degraded()
	status := opsStatus{
		Version:       o.version,
		Ready:         o.ready.Load(),
		UptimeSeconds: time.Since(o.started).Seconds(),
		Store:         storeStatus{Degraded: degraded, Reason: reason},
		Config:        o.config.Status(),
	}
	if o.after != nil {
		after := o.after()
		status.AfterWrite = &after
	}
	if o.mail != nil {
		status.Mail = o.mailStatus()
	}
	status.Secrets = o.secretStatus()
	writeJSON(w, http.StatusOK, status)
}

func (o *Ops) secretStatus() []secretStatus {
	problems := o.server.resolver.SecretProblems()
	list := []secretStatus{}
	for _, p := range problems[:min(len(problems), maxSecretProblems)] {
		severity := "error"
		if p.Warning {
			severity = "warning"
		}
		list = append(list, secretStatus{Severity: severity, Project: p.Slug, ProjectID: p.ProjectID, Field: "jwtSecret", Message: p.Message})
	}
	return list
}

// command runs a reload command and answers with the state after it.
func (o *Ops) command(run func(context.Context) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := run(r.Context()); err != nil {
			writeJSON(w, http.StatusConflict, map[string]any{"error": err.Error(), "config": o.config.Status()})
			return
		}
		writeJSON(w, http.StatusOK, map[string]any{"config": o.config.Status()})
	}
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	encoder.Encode(v) // a failure means that the caller has gone
}

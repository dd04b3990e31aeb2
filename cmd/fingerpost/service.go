package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"fingerpost/api"
	"fingerpost/api/ops"
	"fingerpost/configsrc"
	"fingerpost/configsrc/atomicfile"
	"fingerpost/configsrc/gitrepo"
	"fingerpost/configsrc/hclfile"
	"fingerpost/configsrc/proposals"
	"fingerpost/resolver"
)

// A service is a running serve.
type service struct {
	f           serveFlags
	t           terminal
	log         *slog.Logger
	maxDelete   float64
	opsAllow    []netip.Prefix
	gateAllow   []netip.Prefix
	cacheSize   int64
	storeCache  int64
	source      *configsrc.Source
	repo        *gitrepo.Repo  // nil: none
	proposals   *proposals.Set // nil: none
	resolver    *resolver.Resolver
	mail        *mailService // nil until the store is open
	cluster     *clusterNode // nil: none
	api         *api.Server
	ops         *ops.Server
	listeners   []boundListener
	opsListener net.Listener
	hup, end    chan os.Signal           // SIGHUP; SIGTERM and SIGINT
	loading     atomic.Pointer[progress] // of the first load
	failed      chan error               // a part that cannot go on sends its error
	abandoned   bool                     // something is still in use at the end
}

type boundListener struct {
	net.Listener
	services api.Services
}

func serve(ctx context.Context, t terminal, f serveFlags) error {
	s := &service{f: f, t: t, failed: make(chan error, 8), hup: make(chan os.Signal, 1), end: make(chan os.Signal, 2)}
	if err := s.parse(); err != nil {
		return err
	}
	if _, err := os.Stat(f.config); err != nil && !f.isEdge() {
		return fmt.Errorf("open config folder %s: %w (\"fingerpost init\" writes an example)", f.config, errors.Unwrap(err))
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	// Registered first: a signal during a long first load must end the process in order, too.
	signal.Notify(s.hup, syscall.SIGHUP)
	defer signal.Stop(s.hup)
	signal.Notify(s.end, syscall.SIGTERM, syscall.SIGINT)
	defer signal.Stop(s.end)

	defer s.close()
	if err := s.open(ctx); err != nil {
		return err
	}
	if err := s.cluster.claim(ctx); err != nil {
		return err
	}
	s.start()
	if done, err := s.load(ctx); done || err != nil {
		return err
	}
	// Only now: before, the store held the former content of the files, and the queue's mail would have gone to a server
	// that was replaced while nothing ran, or from a project that was suspended.
	if !s.cluster.isEdge() { // its authority sends
		s.mail.mailer.Release()
	}
	if s.repo != nil {
		s.repo.Recover(ctx, s.source)
	}
	running := s.run(func() error { return s.source.Run(ctx) })
	committing := s.runGit()
	auditing := s.run(func() error { keepAudit(ctx, s.resolver, s.log); return nil })
	if s.cluster.isEdge() {
		s.run(func() error { s.keepFresh(ctx); return nil })
	} else {
		s.becomeWhole()
	}
	keeping := s.run(func() error { s.api.KeepKeyUses(ctx); return nil })
	clustered := s.run(func() error { return s.cluster.run(ctx) })
	s.announce()
	err := s.wait(ctx)
	committing()
	stop()
	<-running
	<-auditing
	<-keeping
	<-clustered
	return err
}

// diskKey is the context key of an atomicfile.Disk, with which a test replaces the real one.
type diskKey struct{}

// open binds the addresses first, because that shows fastest that another server runs, then opens the store.
func (s *service) open(ctx context.Context) error {
	ids, err := openSealKey(s.f.sealKey)
	var problems hclfile.Diagnostics
	switch {
	case err != nil && s.f.sealKey != "":
		return err
	case err != nil: // the seal key is optional, and everything that needs no secret is served without it
		s.log.Warn("the seal key cannot be read: sealed secrets stay closed", "error", err)
		problems = append(problems, hclfile.Diagnostic{Severity: hclfile.Warning, File: defaultSealKey(),
			Summary: "sealed secrets stay closed: " + err.Error(),
			Detail:  "make it an age identity file that the service may read, or remove it, and start the service again"})
	}
	var tlsConfig *tls.Config
	if s.f.tlsCert != "" {
		if tlsConfig, err = api.TLSConfig(s.f.tlsCert, s.f.tlsKey, s.log); err != nil {
			return err
		}
	}
	clone, err := s.f.clone()
	if err != nil {
		return err
	}
	secrets := &configsrc.Secrets{Dir: s.f.config, SecretsDir: s.f.secretsDir, Identities: ids, Clone: clone}
	if err := s.bind(); err != nil {
		return err
	}
	// closed when the source and the node's part in a cluster exist; a store that fails early has to wait for it
	made := make(chan struct{})
	s.resolver, err = resolver.Open(resolver.Options{
		DataDir: s.f.data, CacheBytes: s.cacheSize, StoreCacheBytes: s.storeCache, Logger: s.log, OpenSecret: secrets.Open,
		Rebuild: func(ctx context.Context) error {
			<-made
			if err := s.source.Rebuild(ctx); err != nil || !s.cluster.isEdge() {
				return err
			}
			return s.cluster.refill(ctx)
		},
	})
	if err != nil {
		return err
	}
	if s.cluster, err = openNode(ctx, s); err != nil {
		return err
	}
	disk, _ := ctx.Value(diskKey{}).(atomicfile.Disk)
	sourceOptions := configsrc.Options{
		Dir: s.f.config, Clone: clone, Problems: problems, Sink: s.resolver, Logger: s.log, ReadOnly: s.f.readOnly,
		Disk: disk, OpenSecret: secrets.Open,
		OnProgress: func(done, total int) { s.loading.Load().set(done, total) },
		MaxDelete:  s.maxDelete, AcceptDeletes: s.f.acceptDelete,
		OnConfirm: func(h configsrc.Held) { noteConfirm(s.resolver, h) },
	}
	opsOptions := ops.Options{Logger: s.log, Version: builtAs().version, Listen: []string{s.f.ops,
		s.opsListener.Addr().String()}, Allow: s.opsAllow}
	if !loopback(s.opsListener.Addr()) {
		s.log.Warn("the ops listener can be reached from other machines: they may read probes, metrics and /status; "+
			"commands and pprof are for this machine and --ops-allow",
			"address", s.opsListener.Addr().String(), "ops_allow", fmt.Sprint(s.opsAllow))
	}
	switch {
	case s.cluster.isAuthority():
		sourceOptions.OnCommit = s.cluster.committed
	case s.cluster.isEdge():
		sourceOptions.Dir, sourceOptions.Follow = "", true
	}
	if err := s.openGit(ctx); err != nil {
		return err
	}
	if s.repo != nil {
		sourceOptions.Journal, sourceOptions.Fanout, sourceOptions.AuthorOf = s.repo, s.f.gitFanout, s.repo.AuthorOf
		opsOptions.Git = s.repo.Status
		if s.f.gitPull > 0 || s.f.gitPush {
			opsOptions.SyncGit = s.repo.Sync
		}
	}
	s.source = configsrc.New(sourceOptions)
	if s.cluster.isEdge() {
		if err := s.cluster.follow(s); err != nil {
			return err
		}
	}
	close(made)
	if s.mail, err = openMail(s.f.mailFlags, s.f.data, s.resolver, secrets.Open, s.log); err != nil {
		return err
	}
	var git api.Git
	if s.repo != nil {
		s.proposals = proposals.New(s.repo, s.resolver, s.source, s.f.gitWeb)
		git = commits{s.repo, s.f.gitAckTimeout, s.f.gitAck == string(gitrepo.AckPush),
			func() bool { return s.source.Status().Held != nil }}
	}
	onHook, hookSecret, err := s.gitHook()
	if err != nil {
		return err
	}
	apiOptions := api.Options{
		Resolver: s.resolver, Git: git, Proposals: s.proposals, OnGitHook: onHook, GitHookSecret: hookSecret, Files: s.source,
		Explainer: s.source, Plan: planFiles, Mail: s.mail.mailer, Logger: s.log, TLS: tlsConfig, ResolveMaxAge: s.f.maxAge,
		GateAllow: s.gateAllow, GateWildcards: s.f.gateWildcards, AuthIssuer: s.f.authIssuer,
		AccessLogResolve: s.f.logResolve, NoFastPath: !s.f.fastPath, BlockedKeyIDs: s.blockedKeys(),
		Limits: api.Limits{Conns: maxConns()}, Console: s.consoleOptions(),
	}
	s.cluster.addTo(&apiOptions, &opsOptions)
	if s.api, err = api.New(apiOptions); err != nil {
		return err
	}
	opsOptions.Resolver, opsOptions.Figures, opsOptions.Streams = s.resolver, s.api, s.api.EventStreams()
	opsOptions.Config, opsOptions.Mail = s.source, s.mail.mailer
	s.ops, err = ops.New(opsOptions)
	return err
}

// keptDescriptors are reserved for the store, the files and the ops listener.
const keptDescriptors = 1200

// maxConns returns a cap on connections below the limit on descriptors, which the Go runtime has raised to its maximum.
func maxConns() int {
	const most = 8192
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil || limit.Cur >= most+keptDescriptors {
		return most
	}
	return max(int(limit.Cur)-keptDescriptors, int(limit.Cur)/2, 1)
}

// start serves on all addresses. Until the first load has ended, all calls but probes and health checks get 503.
func (s *service) start() {
	s.api.SetLoading(true)
	s.run(func() error { return s.ops.Serve(s.opsListener) })
	for _, l := range s.listeners {
		s.run(func() error { return s.api.Serve(l.Listener, l.services) })
	}
	if s.cluster.isAuthority() {
		s.run(func() error { return s.api.Serve(s.cluster.requests, api.Platform|api.Mail) })
	}
}

// run starts a part of the service. If it fails, the service ends.
func (s *service) run(part func() error) (ended chan struct{}) {
	ended = make(chan struct{})
	go func() {
		defer close(ended)
		if err := part(); err != nil {
			s.failed <- err
		}
	}()
	return ended
}

func (s *service) bind() (err error) {
	if s.opsListener, err = listen("ops-listen", s.f.ops); err != nil {
		return err
	}
	add := func(flag, addr string, services api.Services) error {
		ln, err := listen(flag, addr)
		if err == nil {
			s.listeners = append(s.listeners, boundListener{ln, services})
		}
		return err
	}
	if s.f.gate != "" {
		if err := add("gate-listen", s.f.gate, api.Gateway); err != nil {
			return err
		}
	}
	services := api.Platform | api.Mail
	if s.f.mail != "" {
		services = api.Platform
		if err := add("mail-listen", s.f.mail, api.Mail); err != nil {
			return err
		}
	}
	switch {
	case s.f.consoleListen != "":
		if err := add("console-listen", s.f.consoleListen, api.Console); err != nil {
			return err
		}
	case s.f.console:
		services |= api.Console
	}
	return add("listen", s.f.listen, services)
}

// load waits for the first load, or for a signal that ends it.
func (s *service) load(ctx context.Context) (done bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	loaded := make(chan error, 1)
	read := s.t.progress("files loaded")
	defer read.end()
	s.loading.Store(read)
	s.source.Watch()
	go func() { loaded <- s.source.Load(ctx) }()
	select {
	case err := <-loaded:
		return false, err
	case <-s.end:
		cancel()
		<-loaded
		return true, nil
	}
}

// wait returns when the service has to end, after requests in flight have had their time.
func (s *service) wait(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return s.drain()
		case err := <-s.failed:
			return err
		case sig := <-s.end:
			s.log.Info("draining", "signal", sig.String(), "grace", s.f.grace.String())
			return s.drain()
		case <-s.hup:
			if s.repo != nil {
				s.repo.Sync()
			}
			go func() {
				s.mail.mailer.TryAgain() // the content of secret files may have changed, or a server was repaired
				s.resolver.ForgetSecrets()
				if err := s.source.Reload(ctx); err != nil && ctx.Err() == nil {
					s.log.Warn("reload on SIGHUP", "error", err)
				}
			}()
		}
	}
}

// abruptly is how long parts that are in use may take to stop after a second signal.
const abruptly = time.Second

// drain lets running requests and mails finish. A second signal ends it at once.
func (s *service) drain() error {
	s.ops.SetReady(false)
	ctx, cancel := context.WithTimeout(context.Background(), s.f.drainDelay+s.f.grace)
	defer cancel()
	stopped := make(chan error, 1)
	go func() {
		select {
		case <-time.After(s.f.drainDelay): // so that a load balancer notices that this node is not ready
		case <-ctx.Done():
		}
		mails := make(chan error, 1)
		go func() { mails <- s.mail.drain(ctx, s.f.grace) }()
		stopped <- errors.Join(s.api.Shutdown(ctx), <-mails)
	}()
	select {
	case err := <-stopped:
		if err != nil {
			s.log.Warn("requests or mails were cut off at the end of the grace", "error", err)
		}
		return nil
	case <-s.end:
		cancel()
		select {
		case <-stopped:
		case <-time.After(abruptly):
			s.abandoned = true
		}
		return errors.New("ended by a second signal, requests and mails in flight were cut off")
	}
}

// close closes what serve has opened, the store last.
func (s *service) close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if s.ops != nil {
		_ = s.ops.Shutdown(ctx)
	}
	if s.opsListener != nil {
		s.opsListener.Close()
	}
	for _, l := range s.listeners {
		l.Close()
	}
	s.cluster.close()
	if s.resolver == nil || s.abandoned || s.mail.close(ctx) != nil {
		return // the store may still be in use; it stays consistent without being closed
	}
	if err := s.resolver.Close(); err != nil {
		s.log.Error("close the store", "error", err)
	}
}

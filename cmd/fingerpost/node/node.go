package node

import (
	"context"
	"errors"
	"net"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"fingerpost/api"
	"fingerpost/api/gateway/jwks"
	"fingerpost/api/ops"
	"fingerpost/api/ops/history"
	"fingerpost/api/transfer"
	"fingerpost/configsrc"
	"fingerpost/configsrc/gitrepo"
	"fingerpost/configsrc/proposals"
	"fingerpost/configsrc/verify"
	"fingerpost/mailer/inbound"
	"fingerpost/mailer/sender"
	"fingerpost/mailer/webhook"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

// A service is a serving node with its parts.
type service struct {
	observing
	background
	o         Options
	source    *configsrc.Source
	repo      *gitrepo.Repo  // nil: none
	proposals *proposals.Set // nil: none
	resolver  *resolver.Resolver
	mail      *mailService // nil until the store is open
	cluster   *clusterNode // nil: none
	api       *api.Server
	listeners []boundListener
	accepting sync.Once      // of connections to inherited sockets
	end       chan os.Signal // SIGTERM and SIGINT
	failed    chan error     // a part that cannot go on sends its error
	abandoned bool           // something is still in use at the end
	manager   manager
}

// observing are the parts that tell operators how the node is.
type observing struct {
	ops          *ops.Server
	opsListeners []net.Listener // one at least
	history      *history.Recorder
}

// background are the parts that work by themselves.
type background struct {
	verify   *verify.Service
	webhooks *webhook.Engine
	declared *declaredWebhooks
	keySets  *jwks.Keeper
	senders  *sender.Service
	inbound  *inbound.Desk
	// delivering: webhooks runs, or has run.
	delivering atomic.Bool
}

type boundListener struct {
	net.Listener
	services  api.Services
	inherited bool // from the service manager, see inherit
}

// Run serves until ctx ends, a signal ends the process, or a part fails. SIGHUP reads all files again.
func Run(ctx context.Context, o Options) error {
	n := &service{o: o, observing: observing{history: history.New()}, failed: make(chan error, 8),
		end: make(chan os.Signal, 2)}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	// Registered first: a signal during a long first load must end the process in order, too.
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	defer signal.Stop(hup)
	signal.Notify(n.end, syscall.SIGTERM, syscall.SIGINT)
	defer signal.Stop(n.end)

	defer n.close()
	if err := n.open(ctx); err != nil {
		return err
	}
	if err := n.cluster.claim(ctx); err != nil {
		return err
	}
	n.start()
	n.run(func() error { n.keepTold(ctx); return nil })
	judging := n.run(func() error { n.judge(ctx); return nil })
	recording := n.run(func() error { n.history.Run(ctx, n.sample); return nil })
	defer func() { stop(); <-recording; <-judging }() // before the parts that they read are closed
	if done, err := n.load(ctx); done || err != nil {
		return err
	}
	// Only now: before, the store held the former content of the files, and the queue's mail would have gone to a server
	// that was replaced while nothing ran, or from a project that was suspended.
	if !n.cluster.isEdge() { // its authority sends
		n.mail.mailer.Release()
	}
	if n.repo != nil {
		n.repo.Recover(ctx, n.source)
	}
	running := n.run(func() error { return n.source.Run(ctx) })
	committing := n.runGit()
	auditing := n.run(func() error { keepAudit(ctx, n.resolver, n.o.Logger); return nil })
	if n.cluster.isEdge() {
		n.run(func() error { n.keepFresh(ctx); return nil })
	} else {
		n.becomeWhole()
	}
	verifying := n.runVerification(ctx)
	checking := n.runSenders(ctx)
	receiving := n.runInbound(ctx)
	delivering := n.runWebhooks(ctx)
	rotating := n.runRotations(ctx)
	fetching := n.runKeySets(ctx)
	keeping := n.run(func() error { n.api.KeepKeyUses(ctx); return nil })
	clustered := n.run(func() error { return n.cluster.run(ctx) })
	tracing := n.runTraces()
	n.announce()
	err := n.wait(ctx, hup)
	committing()
	tracing()
	stop()
	<-running
	<-auditing
	<-keeping
	<-verifying
	<-checking
	<-receiving
	<-delivering
	<-rotating
	<-fetching
	<-clustered
	return err
}

// keptDescriptors are reserved for the store, the files and the ops listener.
const keptDescriptors = 1200

// mostConns is the cap on connections.
const mostConns = 8192

// WantedDescriptors is the limit on open files with which a node takes as many connections as it can.
const WantedDescriptors = mostConns + keptDescriptors

// MaxConns returns a cap on connections below the limit on descriptors, which the Go runtime has raised to its maximum,
// and that limit, 0 if it is not known.
func MaxConns() (conns int, descriptors uint64) {
	var limit syscall.Rlimit
	switch {
	case syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil:
		return mostConns, 0
	case limit.Cur >= WantedDescriptors:
		return mostConns, limit.Cur
	}
	return max(int(limit.Cur)-keptDescriptors, int(limit.Cur)/2, 1), limit.Cur
}

// start serves on all addresses that the node has opened itself. Until the first load has ended, all calls but probes and
// health checks get 503.
func (n *service) start() {
	n.api.SetLoading(true)
	for _, l := range n.opsListeners {
		n.run(func() error { return n.ops.Serve(l) })
	}
	n.serve(false)
	if n.cluster.isAuthority() {
		n.run(func() error { return n.api.Serve(n.cluster.requests, api.Platform|api.Mail) })
	}
}

// serve accepts connections on the listeners of one kind. Those to inherited sockets wait in the kernel until resolve can
// answer: nobody sees a restart.
func (n *service) serve(inherited bool) {
	for _, l := range n.listeners {
		if l.inherited == inherited {
			n.run(func() error { return n.api.Serve(l.Listener, l.services) })
		}
	}
}

// run starts a part of the service. If it fails, the service ends.
func (n *service) run(part func() error) (ended chan struct{}) {
	ended = make(chan struct{})
	go func() {
		defer close(ended)
		if err := part(); err != nil {
			n.failed <- err
		}
	}()
	return ended
}

// load waits for the first load, or for a signal that ends it.
func (n *service) load(ctx context.Context) (done bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	loaded := make(chan error, 1)
	defer n.o.Loading()()
	n.source.Watch()
	go func() { loaded <- n.source.Load(ctx) }()
	return n.awaitLoad(loaded, cancel)
}

// awaitLoad returns when the first load has ended, which it cancels at a signal, and when a part has failed: a server
// whose listener is gone must not go on loading for minutes.
func (n *service) awaitLoad(loaded <-chan error, cancel func()) (done bool, err error) {
	select {
	case err := <-loaded:
		return false, err
	case err := <-n.failed:
		cancel()
		<-loaded
		return false, err
	case <-n.end:
		cancel()
		<-loaded
		return true, nil
	}
}

// wait returns when the service has to end, after requests in flight have had their time.
func (n *service) wait(ctx context.Context, hup <-chan os.Signal) error {
	for {
		select {
		case <-ctx.Done():
			return n.drain()
		case err := <-n.failed:
			return err
		case sig := <-n.end:
			n.o.Logger.Info("draining", "signal", sig.String(), "grace", n.o.Limits.Grace.String())
			return n.drain()
		case <-hup:
			if n.repo != nil {
				n.repo.Sync()
			}
			ready := n.manager.ready.Load()
			if ready {
				n.manager.tell(daemon.SdNotifyReloading)
			}
			go func() {
				if ready { // READY=1 of an edge without a tree would end its start
					defer n.tellReady()
				}
				n.reopenSecrets()
				if err := n.source.Reload(ctx); err != nil && ctx.Err() == nil {
					n.o.Logger.Warn("reload on SIGHUP", "error", err)
				}
			}()
		}
	}
}

// reopenSecrets has secrets opened again, since the content of their files may have changed, and stopped mail tried again: a
// server may have been repaired.
func (n *service) reopenSecrets() {
	n.mail.mailer.TryAgain()
	n.resolver.ForgetSecrets()
	n.declared.forget()
	n.inbound.Forget()
}

// abruptly is how long parts that are in use may take to stop after a second signal.
const abruptly = time.Second

// drain lets running requests and mails finish. A second signal ends it at once.
func (n *service) drain() error {
	n.setReady(false)
	patience := n.o.Limits.DrainDelay + n.o.Limits.Grace
	n.manager.ends = time.Now().Add(patience)
	n.manager.tell(daemon.SdNotifyStopping, moreTime(patience+2*tellEvery))
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	stopped := make(chan error, 1)
	go func() {
		select {
		case <-time.After(n.o.Limits.DrainDelay): // so that a load balancer notices that this node is not ready
		case <-ctx.Done():
		}
		mails := make(chan error, 1)
		go func() { mails <- n.mail.drain(ctx, n.o.Limits.Grace) }()
		stopped <- errors.Join(n.api.Shutdown(ctx), <-mails)
	}()
	select {
	case err := <-stopped:
		if err != nil {
			n.o.Logger.Warn("requests or mails were cut off at the end of the grace", "error", err)
		}
		return nil
	case <-n.end:
		cancel()
		select {
		case <-stopped:
		case <-time.After(abruptly):
			n.abandoned = true
		}
		return errors.New("ended by a second signal, requests and mails in flight were cut off")
	}
}

// close closes what serve has opened, the store last.
func (n *service) close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if n.ops != nil {
		_ = n.ops.Shutdown(ctx)
	}
	for _, l := range n.opsListeners {
		l.Close()
	}
	for _, l := range n.listeners {
		l.Close()
	}
	n.cluster.close()
	if n.resolver == nil || n.abandoned || n.mail.close(ctx) != nil {
		return // the store may still be in use; it stays consistent without being closed
	}
	if err := n.resolver.Close(); err != nil {
		n.o.Logger.Error("close the store", "error", err)
	}
}

// planFiles is the plan of a dry run.
func planFiles(was, is []*catalog.Declared, defaults *catalog.Defaults) any {
	return transfer.PlanFiles(was, is, defaults)
}

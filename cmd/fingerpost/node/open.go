package node

import (
	"context"
	"crypto/tls"
	"fmt"
	"os"
	"time"

	"fingerpost/api"
	"fingerpost/api/ops"
	"fingerpost/configsrc"
	"fingerpost/configsrc/folder"
	"fingerpost/configsrc/gitrepo"
	"fingerpost/configsrc/hclfile"
	"fingerpost/configsrc/proposals"
	"fingerpost/configsrc/seal"
	"fingerpost/configsrc/verify/authdns"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

// An opening is what the steps of open leave for later ones, apart from the parts of the node.
type opening struct {
	*service
	problems hclfile.Diagnostics // that /status shows from the start
	tls      *tls.Config         // nil: plain HTTP
	clone    folder.Clone
	secrets  *seal.Secrets
	dns      *authdns.Checker // nil: this node asks no name server
	made     chan struct{}    // closed when the source and the node's part in a cluster exist
}

// open opens the parts of the node. It binds the addresses before the store, because that shows fastest that another
// server runs.
func (n *service) open(ctx context.Context) error {
	o := &opening{service: n, made: make(chan struct{})}
	for _, step := range []func(ctx context.Context) error{
		o.readKeys, o.bind, o.openStore, o.openCluster, o.openGit, o.openSource, o.openMail, o.openVerification,
		o.openSenders, o.openInbound, o.openWebhooks, o.openKeySets, o.openServers,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// readKeys reads the TLS certificate, and prepares what opens secrets. A seal key that cannot be read is a warning:
// everything that needs no secret is served.
func (o *opening) readKeys(context.Context) (err error) {
	files, listen := &o.o.Files, &o.o.Listen
	for _, f := range o.o.PrivateFiles() {
		if info, err := os.Stat(f.Path); err == nil && info.Mode().Perm()&0o007 != 0 {
			o.o.Logger.Warn("every user of this machine may read a file with a secret: chmod 600 it", "flag", "--"+f.Flag,
				"file", f.Path, "mode", fmt.Sprintf("%04o", info.Mode().Perm()))
		}
	}
	if err := files.SealKeyError; err != nil {
		o.o.Logger.Warn("the seal key cannot be read: sealed secrets stay closed", "error", err)
		o.problems = append(o.problems, hclfile.Diagnostic{Severity: hclfile.Warning, File: files.SealKey,
			Summary: "sealed secrets stay closed: " + err.Error(),
			Detail:  "make it an age identity file that the service may read, or remove it, and start the service again"})
	}
	if listen.TLSCert != "" {
		if o.tls, err = api.TLSConfig(listen.TLSCert, listen.TLSKey, o.o.Logger); err != nil {
			return err
		}
	}
	o.clone, err = o.findClone()
	o.secrets = &seal.Secrets{Dir: files.Config, SecretsDir: files.SecretsDir, Identities: files.Identities,
		Clone: o.clone}
	return err
}

func (o *opening) openStore(context.Context) (err error) {
	o.resolver, err = resolver.Open(resolver.Options{
		DataDir: o.o.Files.Data, CacheBytes: o.o.Limits.CacheBytes, StoreCacheBytes: o.o.Limits.StoreCacheBytes,
		Logger: o.o.Logger, OpenSecret: o.secrets.Open, OnGeneration: o.noteGeneration,
		Rebuild: func(ctx context.Context) error {
			<-o.made // a store that fails early has to wait for it
			if err := o.source.Rebuild(ctx); err != nil || !o.cluster.isEdge() {
				return err
			}
			return o.cluster.refill(ctx)
		},
	})
	return err
}

func (o *opening) openCluster(ctx context.Context) (err error) {
	o.cluster, err = openNode(ctx, o.service)
	return err
}

// openSource makes the source of the files, and an edge's follower, which feeds it.
func (o *opening) openSource(context.Context) error {
	files := &o.o.Files
	options := configsrc.Options{
		Dir: files.Config, Clone: o.clone, Problems: o.problems, Sink: o.resolver, Logger: o.o.Logger,
		ReadOnly: files.ReadOnly, Disk: o.o.Disk, OpenSecret: o.secrets.Open, MaxDelete: files.MaxDelete,
		AcceptDeletes: files.AcceptDeletes, Allow: o.allows(),
		Hooks: configsrc.Hooks{
			OnProgress: o.o.OnProgress,
			OnConfirm:  func(h configsrc.Held) { NoteConfirm(o.resolver, h) },
		},
	}
	switch {
	case o.cluster.isAuthority():
		options.OnCommit = o.cluster.committed
	case o.cluster.isEdge():
		options.Dir, options.Follow = "", true
	}
	if o.repo != nil {
		options.Journal, options.Fanout, options.AuthorOf = o.repo, o.o.Git.Fanout, o.repo.AuthorOf
	}
	o.source = configsrc.New(options)
	if o.cluster.isEdge() {
		if err := o.cluster.newFollower(o.service); err != nil {
			return err
		}
	}
	close(o.made)
	return nil
}

// allows are what the flags make right in the files.
func (o *opening) allows() catalog.Allows {
	allows := o.o.Allow
	if o.cluster.isEdge() {
		allows.Logins = nil // any: the authority has judged the issuers, and it alone asks the providers
	}
	return allows
}

func (o *opening) openMail(context.Context) (err error) {
	o.mail, err = openMail(o.o.Mail, o.o.Files.Data, o.o.Listen.PublicURL, o.resolver, o.secrets.Open, o.o.Logger)
	return err
}

// openServers makes the servers of the API and of the ops listener.
func (o *opening) openServers(context.Context) error {
	apiOptions, err := o.apiOptions()
	if err != nil {
		return err
	}
	opsOptions := o.opsOptions()
	o.cluster.addTo(&apiOptions, &opsOptions)
	if o.api, err = api.New(apiOptions); err != nil {
		return err
	}
	opsOptions.Figures, opsOptions.Streams = o.api, o.api.EventStreams()
	o.ops, err = ops.New(opsOptions)
	return err
}

func (o *opening) apiOptions() (api.Options, error) {
	limits := &o.o.Limits
	hook, err := o.gitHook()
	conns, _ := MaxConns()
	options := api.Options{
		Resolver: o.resolver,
		Config: api.Config{Files: o.source, Explainer: o.source, Plan: planFiles, Hook: hook,
			Verifier: verification{o.verify}, WebhookAllow: o.o.Allow.Webhooks,
			KeySets: o.keySets, ReadOnly: o.o.Files.ReadOnly, PublicURL: o.o.Listen.PublicURL, Inbound: o.inbound},
		Mail: o.mail.mailer, Senders: o.senders, Logger: o.o.Logger, TLS: o.tls,
		ResolveMaxAge: limits.ResolveMaxAge, Gateway: o.o.Listen.Gateway,
		AccessLogResolve: o.o.AccessLogResolve, NoFastPath: !limits.FastPath, BlockedKeyIDs: o.blockedKeys(),
		Limits: api.Limits{Conns: conns}, Console: o.consoleOptions(o.secrets), Docs: o.o.Build.Docs, Trace: o.o.Trace,
	}
	if o.deliversEvents() {
		options.Config.WebhookEngine = o.webhooks
	}
	if o.repo != nil {
		git := &o.o.Git
		o.proposals = proposals.New(o.repo, o.resolver, o.source, git.Web)
		o.proposals.Needs = git.ProposeApprovals
		options.Config.Git = commits{o.repo, git.AckTimeout, git.Ack == gitrepo.AckPush,
			func() bool { return o.source.Status().Held != nil }}
	}
	options.Config.Proposals = o.proposals
	return options, err
}

// certificateEnd returns when the certificate that a client gets now ends.
func (o *opening) certificateEnd() time.Time {
	certificate, err := o.tls.GetCertificate(nil)
	if err != nil || certificate.Leaf == nil {
		return time.Time{}
	}
	return certificate.Leaf.NotAfter
}

func (o *opening) opsOptions() ops.Options {
	address, listen := o.opsListeners[0].Addr(), &o.o.Listen
	if !loopback(address) {
		o.o.Logger.Warn("the ops listener can be reached from other machines: they may read probes, metrics and /status; "+
			"commands and pprof are for this machine and --ops-allow",
			"address", address.String(), "ops_allow", fmt.Sprint(listen.OpsAllow))
	}
	options := ops.Options{Logger: o.o.Logger, Version: o.o.Build.Version, Commit: o.o.Build.Commit,
		Listen: []string{listen.Ops, address.String()}, ReopenSecrets: o.reopenSecrets,
		Allow: listen.OpsAllow, Resolver: o.resolver, Config: o.source, Mail: o.mail.mailer, History: o.history,
		Readings: ops.Readings{DiskFree: func() float64 { return freeShare(o.o.Files.Data) }}}
	if o.tls != nil {
		options.Readings.CertificateEnd = o.certificateEnd
	}
	if o.checksDomains() {
		options.Readings.Domains = verification{o.verify}
		options.Readings.Senders = senderFacts{o.senders}
	}
	if o.deliversEvents() {
		options.Readings.Webhooks = deliveries{o.webhooks, &o.delivering}
	}
	options.Readings.Inbound, options.Readings.Outcomes = inboundFacts{o.inbound}, o.inbound.EachCount
	if !o.o.Cluster.IsEdge() {
		proof, err := ops.NewProof(o.o.Files.Data)
		if err != nil {
			o.o.Logger.Warn("\"fingerpost console-link\" gets no links from this server, because its proof cannot be written",
				"error", err)
		} else {
			options.SignIn, options.Proof = o.signInLinks, proof
		}
	}
	options.Readings.KeySets = func(yield func(project int64, slug, message string)) {
		for _, p := range o.keySets.Problems() {
			yield(p.Project, p.Slug, p.Message)
		}
	}
	if o.o.Trace != nil {
		options.Readings.SpansDropped = o.o.Trace.Dropped
	}
	if o.repo != nil {
		options.Git = o.repo.Status
		if o.o.Git.Pull > 0 || o.o.Git.Push {
			options.SyncGit = o.repo.Sync
		}
	}
	return options
}

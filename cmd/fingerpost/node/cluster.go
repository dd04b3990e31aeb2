package node

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"fingerpost/api"
	"fingerpost/api/conditions"
	"fingerpost/api/ops"
	"fingerpost/api/web"
	"fingerpost/configsrc"
	"fingerpost/configsrc/cluster"
	"fingerpost/configsrc/cluster/natsd"
	"fingerpost/configsrc/edits"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

// A clusterNode is this node's part in a cluster: the authority's, or an edge's.
type clusterNode struct {
	o        Options
	resolver *resolver.Resolver

	// Of an authority.
	supervisor *natsd.Supervisor // nil: the NATS server is another's
	ended      func() error      // waits for the supervised process
	authority  *cluster.Authority
	requests   *api.Pipe     // of edges
	edgesMoved chan struct{} // the edge blocks may have changed

	follower *cluster.Follower // of an edge; made once there is a source

	serverCtx  context.Context // of the built-in server, which is needed until the lease is given back
	stopServer context.CancelFunc
	parts      sync.WaitGroup
}

// openNode makes the node's part, and starts the built-in server, whose address may be in use. It returns nil without a
// cluster.
func openNode(ctx context.Context, node *service) (*clusterNode, error) {
	if !node.o.Cluster.IsAuthority() && !node.o.Cluster.IsEdge() {
		return nil, nil
	}
	n := &clusterNode{o: node.o, resolver: node.resolver, edgesMoved: make(chan struct{}, 1)}
	n.serverCtx, n.stopServer = context.WithCancel(context.Background())
	if n.o.Cluster.IsEdge() {
		return n, nil
	}
	connection := n.o.Connection()
	if n.o.Cluster.Listen != "" {
		if err := n.startServer(ctx); err != nil {
			return nil, err
		}
		connection = cluster.ConnectionTo(n.supervisor)
	}
	n.requests = api.NewClusterPipe()
	node.o.Logger.Info("this node's name in the lease of the cluster", "holder", holderName(n.o.Files.Data))
	n.authority = cluster.NewAuthority(cluster.AuthorityOptions{
		Cluster: n.o.Cluster.Name, Connection: connection, Tree: node.resolver, Logger: node.o.Logger,
		Version: n.o.Build.Version, Holder: holderName(n.o.Files.Data), OwnServer: n.supervisor != nil,
		TakeOver: n.o.Cluster.TakeOver, TookOver: func() { node.webhooks.NoteLoss() }, Answer: answerOver(n.requests),
	})
	return n, nil
}

// newFollower makes the follower of an edge.
func (n *clusterNode) newFollower(node *service) error {
	if info, err := os.Stat(n.o.Cluster.EdgeKey); err == nil && info.Mode().Perm()&0o077 != 0 {
		node.o.Logger.Warn("others on this machine can read the file of --edge-key, and be this edge: chmod 600", "file",
			n.o.Cluster.EdgeKey, "mode", info.Mode().Perm().String())
	}
	n.follower = cluster.NewFollower(cluster.FollowerOptions{
		Cluster: n.o.Cluster.Name, Edge: n.o.Cluster.EdgeName, Connection: n.o.Connection(), Logger: node.o.Logger,
		Version: n.o.Build.Version,
		Replica: replica{node.resolver, node.source}, OnWhole: node.becomeWhole,
		Broken: func() string { return brokenHere(node.source.Status()) },
	})
	return n.follower.Open()
}

// brokenHere says that an edge refuses files that its authority has accepted.
func brokenHere(st configsrc.Status) string {
	if st.Quarantined == 0 {
		return ""
	}
	return "refuses " + catalog.Count(st.Quarantined, "file") +
		" and serves the last good content: is it older than the authority? Its /status has them"
}

// refillWithin is how long one try to read the tree again may take: 100,000 files take a minute on two cores. The store
// of before answers meanwhile, as far as it can be read.
const refillWithin = 10 * time.Minute

// refill gives an edge whose store has lost its content the whole tree again.
func (n *clusterNode) refill(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, refillWithin)
	defer cancel()
	return n.follower.Refill(ctx)
}

// holderName names this node in the lease, and tells it from others: the lock of the data folder lets one process have
// it. Edges read the lease, and learn neither the machine's name nor the folder: the name is a hash of both, which the
// node's own log explains.
func holderName(data string) string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown host"
	}
	if dir, err := filepath.Abs(data); err == nil {
		data = dir
	}
	sum := sha256.Sum256([]byte(host + ":" + data))
	return "authority-" + hex.EncodeToString(sum[:5])
}

func (n *clusterNode) startServer(ctx context.Context) error {
	config := natsd.Config{Listen: n.o.Cluster.Listen, Dir: filepath.Join(n.o.Files.Data, "cluster"),
		Name: "fingerpost_" + n.o.Cluster.Name, Grants: cluster.Grants(n.o.Cluster.Name),
		Edges: n.edges(), Cert: n.o.Listen.TLSCert, Key: n.o.Listen.TLSKey, ClientCA: n.o.Cluster.CA}
	var err error
	n.supervisor, err = natsd.NewSupervisor(config, n.o.ServerCommand, n.o.Logger)
	if err != nil {
		return err
	}
	if n.ended, err = n.supervisor.Start(ctx); err != nil {
		if errors.Is(err, syscall.EADDRINUSE) || strings.Contains(err.Error(), "address already in use") {
			return fmt.Errorf("--cluster-listen %s: the address is in use; end that process, or give another address with "+
				"--cluster-listen", n.o.Cluster.Listen)
		}
		return fmt.Errorf("--cluster-listen %s: %w", n.o.Cluster.Listen, err)
	}
	n.parts.Go(func() { n.supervisor.Run(n.serverCtx, n.ended) })
	return nil
}

// edges are the declared edges: public keys by name.
func (n *clusterNode) edges() map[string]string {
	edges := map[string]string{}
	for _, e := range n.resolver.Edges() {
		edges[e.Name] = e.PublicKey
	}
	return edges
}

// edgesAddr returns where edges reach the built-in server, "" if there is none.
func (n *clusterNode) edgesAddr() string {
	if n == nil || n.supervisor == nil {
		return ""
	}
	return n.supervisor.Addr()
}

// committed takes a change of the tree. It returns at once.
func (n *clusterNode) committed(c catalog.TreeChange) {
	n.authority.Committed(c)
	select {
	case n.edgesMoved <- struct{}{}:
	default:
	}
}

func (n *clusterNode) isAuthority() bool { return n != nil && n.authority != nil }
func (n *clusterNode) isEdge() bool      { return n != nil && n.o.Cluster.IsEdge() }

// claim takes the lease, before this node answers anybody.
func (n *clusterNode) claim(ctx context.Context) error {
	if !n.isAuthority() {
		return nil
	}
	return n.authority.Claim(ctx)
}

// addTo tells the servers of this node's part. Nil: there is none.
func (n *clusterNode) addTo(server *api.Options, o *ops.Options) {
	if n == nil {
		return
	}
	o.Cluster, server.Cluster.Edges = n, n.listEdges
	if n.follower != nil {
		server.Cluster.Edge = edge{n.follower, n.resolver, n.o.Cluster.StaleAfter}
	} else {
		server.Config.Files = gatedFiles{server.Config.Files, n.authority.MayWrite}
	}
}

// run publishes, or follows, until ctx ends.
func (n *clusterNode) run(ctx context.Context) error {
	if n == nil {
		return nil
	}
	if n.follower != nil {
		return n.follower.Run(ctx)
	}
	if n.supervisor != nil {
		n.parts.Go(func() {
			for {
				if err := n.supervisor.SetEdges(n.edges()); err != nil {
					n.o.Logger.Error("the NATS server does not get the edges", "error", err)
				}
				select {
				case <-n.edgesMoved:
				case <-n.serverCtx.Done():
					return
				}
			}
		})
	}
	return n.authority.Run(ctx)
}

// close ends the built-in server. Call it when run has ended.
func (n *clusterNode) close() {
	if n != nil {
		n.stopServer()
		n.parts.Wait()
	}
}

// status is the node's part of /status.
func (n *clusterNode) status() cluster.Status {
	if n.follower != nil {
		return n.follower.Status()
	}
	var declared []string
	for _, e := range n.resolver.Edges() {
		declared = append(declared, e.Name)
	}
	return n.authority.Status(declared)
}

// listEdges is what GET /edges lists.
func (n *clusterNode) listEdges() ([]byte, error) {
	return json.Marshal(append([]cluster.EdgeStatus{}, n.status().Edges...))
}

// Status implements ops.Cluster.
func (n *clusterNode) Status() any { return n.status() }

// Figures implements ops.Cluster.
func (n *clusterNode) Figures() ops.ClusterFigures {
	st := n.status()
	f := ops.ClusterFigures{Connected: st.Connected, Problem: st.Problem != "" || len(st.Refused) > 0}
	if n.follower != nil {
		stats := n.follower.Stats()
		f.Edge, f.Generations, f.Forwarded, f.Listings, f.Repairs = true, stats.Generations, stats.Forwarded, stats.Listings,
			stats.Repairs
		f.LagSeconds, f.Refused = st.AgeSeconds, len(st.Refused)
		return f
	}
	stats := n.authority.Stats()
	f.Generations, f.Forwarded, f.Files, f.Compared, f.Lost = stats.Generations, stats.Forwarded, stats.Files,
		stats.Compared, st.Lost
	if n.supervisor != nil {
		f.ServerStarts = uint64(n.supervisor.Starts())
	}
	for _, e := range st.Edges {
		f.Edges = append(f.Edges, ops.EdgeFigures{Name: e.Name, LagSeconds: e.LagMS / 1000, Ready: e.Ready})
	}
	return f
}

// AddFacts implements ops.Facts.
func (n *clusterNode) AddFacts(s *conditions.State) {
	st := n.status()
	switch {
	case st.Problem != "":
		s.Cluster = st.Problem
	case !st.Connected:
		s.Cluster = "not connected to NATS"
	case len(st.Refused) > 0:
		s.Cluster = catalog.Count(len(st.Refused), "message") + " of the bucket cannot be read"
	}
	if age := time.Duration(st.AgeSeconds * float64(time.Second)); n.follower != nil && age > n.o.Cluster.StaleAfter {
		s.CutOff = age
	}
	for _, e := range st.Edges {
		s.Edges = append(s.Edges, conditions.Edge(e))
	}
}

// gatedFiles refuses writes while this node is not known to be the authority.
type gatedFiles struct {
	web.Files
	mayWrite func() error
}

// Write implements web.Files.
func (g gatedFiles) Write(ctx context.Context, e *catalog.Edit) (edits.Outcome, error) {
	if err := g.mayWrite(); err != nil {
		return edits.Outcome{}, err
	}
	return g.Files.Write(ctx, e)
}

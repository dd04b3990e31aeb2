package ops

import (
	"github.com/prometheus/client_golang/prometheus"
)

// Cluster is what the ops listener asks of a node of a cluster.
type Cluster interface {
	// Status is the part "cluster" of /status; it can be written as JSON.
	Status() any
	Figures() ClusterFigures
	Facts
}

// ClusterFigures are the metrics of a node of a cluster. Those of the other role are zero.
type ClusterFigures struct {
	Edge      bool // it is an edge; else the authority
	Connected bool // to NATS
	Problem   bool // the cluster, or this edge, is not up to date

	Generations, Forwarded uint64

	// Of an authority.
	Files, Compared uint64
	Lost            bool   // another authority has the lease
	ServerStarts    uint64 // of the built-in NATS server
	Edges           []EdgeFigures

	// Of an edge.
	LagSeconds        float64 // since the last word of the authority
	Listings, Repairs uint64
	Refused           int
}

// EdgeFigures are what the authority knows of an edge.
type EdgeFigures struct {
	Name       string
	LagSeconds float64
	Ready      bool
}

// clusterMetrics are the metrics of a node of a cluster.
type clusterMetrics struct{ cluster Cluster }

func clusterDesc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("fingerpost_cluster_"+name, help, labels, nil)
}

var (
	clusterConnected   = clusterDesc("connected", "1 while the node is connected to NATS.")
	clusterProblem     = clusterDesc("problem", "1 while changes do not get through; /status says why.")
	clusterGenerations = clusterDesc("generations_total", "Generations that were published, or applied on an edge.")
	clusterForwarded   = clusterDesc("forwarded_total", "Requests that edges have forwarded to the authority.")
	clusterFiles       = clusterDesc("files_total", "Files that were published or removed.")
	clusterCompared    = clusterDesc("comparisons_total", "Comparisons of the whole tree with the bucket.")
	clusterLost        = clusterDesc("lease_lost", "1 once another authority has the lease: this node writes no more.")
	clusterStarts      = clusterDesc("server_starts_total", "Starts of the built-in NATS server.")
	clusterLag         = clusterDesc("lag_seconds", "Seconds since an edge has heard its authority; 0 on the authority.")
	clusterListings    = clusterDesc("listings_total", "Times that the whole bucket was read.")
	clusterRepairs     = clusterDesc("repairs_total",
		"Times that the whole bucket was read because the own tree differed.")
	clusterRefused = clusterDesc("refused_messages", "Messages of the bucket that cannot be read.")
	clusterEdges   = clusterDesc("edges", "Edges that are declared, or were heard. 0 on an edge.")
	clusterEdgeLag = clusterDesc("edge_lag_seconds", "Seconds since the oldest commit that an edge has not confirmed.",
		"edge")
	clusterEdgeReady = clusterDesc("edge_ready", "1 while an edge has a whole tree and is heard.", "edge")
)

// Describe implements prometheus.Collector. It names none: they are registered once, and Collect tells them.
func (clusterMetrics) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (c clusterMetrics) Collect(ch chan<- prometheus.Metric) {
	f := c.cluster.Figures()
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	count := func(d *prometheus.Desc, n uint64) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n))
	}
	gauge(clusterConnected, boolValue(f.Connected))
	gauge(clusterProblem, boolValue(f.Problem))
	gauge(clusterLost, boolValue(f.Lost))
	gauge(clusterLag, f.LagSeconds)
	gauge(clusterRefused, float64(f.Refused))
	gauge(clusterEdges, float64(len(f.Edges)))
	count(clusterGenerations, f.Generations)
	count(clusterForwarded, f.Forwarded)
	count(clusterFiles, f.Files)
	count(clusterCompared, f.Compared)
	count(clusterStarts, f.ServerStarts)
	count(clusterListings, f.Listings)
	count(clusterRepairs, f.Repairs)
	for _, e := range f.Edges {
		gauge(clusterEdgeLag, e.LagSeconds, e.Name)
		gauge(clusterEdgeReady, boolValue(e.Ready), e.Name)
	}
}

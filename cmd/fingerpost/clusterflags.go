package main

import (
	"time"

	"github.com/spf13/pflag"
)

func (f *serveFlags) addCluster(fl *pflag.FlagSet) {
	fl.StringVar(&f.Cluster.Listen, "cluster-listen", "",
		"address of the built-in NATS server, such as 0.0.0.0:4222; makes this node the authority of a cluster")
	fl.StringSliceVar(&f.Cluster.URLs, "cluster", nil,
		"servers of an existing NATS, such as nats://a:4222,nats://b:4222; makes this node the authority of a cluster")
	fl.StringVar(&f.Cluster.Name, "cluster-name", "default", "name of the cluster; its bucket is fingerpost_NAME")
	fl.StringVar(&f.Cluster.Creds, "cluster-creds", "",
		"file of credentials, or with the seed of an nkey, for the servers of --cluster or --follow")
	fl.StringVar(&f.Cluster.CA, "cluster-ca", "",
		"file of the CA (PEM) that NATS servers are trusted from, or with --cluster-listen that edges need a certificate of")
	fl.StringSliceVar(&f.Cluster.Follow, "follow", nil,
		"NATS servers of the authority, such as nats://a:4222; makes this node an edge, which reads no files")
	fl.StringVar(&f.Cluster.EdgeName, "edge-name", "", "name of this edge in the files")
	fl.StringVar(&f.Cluster.EdgeKey, "edge-key", "",
		"file with the seed of this edge's key, which \"fingerpost edges keygen\" prints")
	fl.BoolVar(&f.Cluster.TakeOver, "take-over", false,
		"wait until the lease of another authority has run out, instead of refusing to start")
	fl.DurationVar(&f.Cluster.StaleAfter, "stale-after", time.Minute,
		"time without contact with the authority after which an edge's answers carry X-Config-Age")
	fl.DurationVar(&f.Cluster.MaxStale, "max-stale", 0,
		"time without contact with the authority after which an edge answers 503 (default never)")
}

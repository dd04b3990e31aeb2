package main

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"fingerpost/configsrc/cluster"
	"fingerpost/resolver/catalog"
)

// clusterFlags are the flags of serve about a cluster.
type clusterFlags struct {
	clusterListen        string
	clusterURLs          []string
	clusterName          string
	clusterCreds         string
	clusterCA            string
	follow               []string
	edgeName, edgeKey    string
	takeOver             bool
	staleAfter, maxStale time.Duration
}

func (f *clusterFlags) add(fl *pflag.FlagSet) {
	fl.StringVar(&f.clusterListen, "cluster-listen", "",
		"address of the built-in NATS server, such as 0.0.0.0:4222; makes this node the authority of a cluster")
	fl.StringSliceVar(&f.clusterURLs, "cluster", nil,
		"servers of an existing NATS, such as nats://a:4222,nats://b:4222; makes this node the authority of a cluster")
	fl.StringVar(&f.clusterName, "cluster-name", "default", "name of the cluster; its bucket is fingerpost_NAME")
	fl.StringVar(&f.clusterCreds, "cluster-creds", "",
		"file of credentials, or with the seed of an nkey, for the servers of --cluster or --follow")
	fl.StringVar(&f.clusterCA, "cluster-ca", "",
		"file of the CA (PEM) that NATS servers are trusted from, or with --cluster-listen that edges need a certificate of")
	fl.StringSliceVar(&f.follow, "follow", nil,
		"NATS servers of the authority, such as nats://a:4222; makes this node an edge, which reads no files")
	fl.StringVar(&f.edgeName, "edge-name", "", "name of this edge in the files")
	fl.StringVar(&f.edgeKey, "edge-key", "",
		"file with the seed of this edge's key, which \"fingerpost edges keygen\" prints")
	fl.BoolVar(&f.takeOver, "take-over", false,
		"wait until the lease of another authority has run out, instead of refusing to start")
	fl.DurationVar(&f.staleAfter, "stale-after", time.Minute,
		"time without contact with the authority after which an edge's answers carry X-Config-Age")
	fl.DurationVar(&f.maxStale, "max-stale", 0,
		"time without contact with the authority after which an edge answers 503 (default never)")
}

// isAuthority and isEdge say what the node is in a cluster; if neither, it belongs to none.
func (f *clusterFlags) isAuthority() bool { return f.clusterListen != "" || len(f.clusterURLs) > 0 }
func (f *clusterFlags) isEdge() bool      { return len(f.follow) > 0 }

// clusterNames is what the name of a cluster may be: it is a part of a bucket's name and of NATS subjects.
var clusterNames = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// check returns everything that is wrong with the flags, given those of cmd.
func (f *clusterFlags) check(cmd *cobra.Command, serve *serveFlags) error {
	var bad []string
	say := func(wrong bool, format string, args ...any) {
		if wrong {
			bad = append(bad, fmt.Sprintf(format, args...))
		}
	}
	set := func(name string) bool { return cmd.Flags().Changed(name) }
	say(f.clusterListen != "" && len(f.clusterURLs) > 0,
		"--cluster-listen runs a NATS server of its own, --cluster uses an existing one: give one of them")
	say(f.isEdge() && f.isAuthority(),
		"--follow makes this node an edge, --cluster and --cluster-listen make it the authority: give one of them")
	if f.isEdge() {
		for _, name := range []string{"config", "read-only", "take-over", "git"} {
			say(set(name), "--follow and --%s contradict each other: an edge has no config folder, its files come from the "+
				"authority", name)
		}
		say(f.edgeName == "", "--follow needs --edge-name NAME, as an edge block in the files has it")
		wrong := catalog.CheckEdgeName(f.edgeName)
		say(f.edgeName != "" && wrong != "", "--edge-name %q: %s", f.edgeName, wrong)
		say(f.edgeKey == "" && f.clusterCreds == "",
			"--follow needs --edge-key FILE, which \"fingerpost edges keygen\" prints, or --cluster-creds FILE")
		say(f.edgeKey != "" && f.clusterCreds != "",
			"--edge-key and --cluster-creds are two ways to say who this edge is: give one of them")
	} else {
		for _, name := range []string{"edge-name", "edge-key", "stale-after", "max-stale"} {
			say(set(name), "--%s is for an edge: it needs --follow URL", name)
		}
	}
	if !f.isEdge() && !f.isAuthority() {
		for _, name := range []string{"cluster-name", "cluster-creds", "cluster-ca", "take-over"} {
			say(set(name), "--%s needs --cluster-listen, --cluster or --follow", name)
		}
	}
	say(!clusterNames.MatchString(f.clusterName),
		"--cluster-name %q must be letters, digits, hyphens and underscores, at most 64", f.clusterName)
	say(f.clusterListen != "" && f.clusterCreds != "",
		"--cluster-creds is for an existing NATS; the built-in server makes its own")
	say(f.clusterListen != "" && serve.tlsCert == "" && f.clusterCA != "",
		"--cluster-ca with --cluster-listen needs --tls-cert and --tls-key: edges show certificates in TLS only")
	say(f.clusterListen != "" && serve.tlsCert == "" && beyondLoopback(f.clusterListen),
		"--cluster-listen %s: other machines can reach it, and without TLS everybody on the way can read the files: give "+
			"--tls-cert and --tls-key, or listen on 127.0.0.1", f.clusterListen)
	say(f.staleAfter <= 0, "--stale-after must be more than 0")
	say(f.maxStale < 0, "--max-stale must not be negative")
	say(f.maxStale > 0 && f.maxStale < f.staleAfter, "--max-stale must not be less than --stale-after")
	for _, u := range f.clusterURLs {
		say(!natsURL(u), "--cluster %q must be a URL such as nats://a:4222 or tls://a:4222, without a password", u)
	}
	for _, u := range f.follow {
		say(!natsURL(u), "--follow %q must be a URL such as nats://a:4222 or tls://a:4222, without a password", u)
	}
	if len(bad) == 0 && (f.isEdge() || len(f.clusterURLs) > 0) {
		c := f.connection(serve)
		bad = c.Check()
	}
	return usageAll(bad)
}

func natsURL(text string) bool {
	u, err := url.Parse(text)
	return err == nil && slices.Contains([]string{"nats", "tls"}, u.Scheme) && u.Hostname() != "" && u.User == nil &&
		strings.Trim(u.Path, "/") == ""
}

// connection is how this node reaches an existing NATS, or an edge its authority's.
func (f *clusterFlags) connection(serve *serveFlags) cluster.Connection {
	c := cluster.Connection{URLs: f.clusterURLs, Creds: f.clusterCreds, CA: f.clusterCA, Cert: serve.tlsCert,
		Key: serve.tlsKey}
	if f.isEdge() {
		c.URLs, c.KeyFile = f.follow, f.edgeKey
	}
	return c
}

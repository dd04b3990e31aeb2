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

	"fingerpost/resolver/catalog"
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

// clusterNames is what the name of a cluster may be: it is a part of a bucket's name and of NATS subjects.
var clusterNames = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// checkCluster returns everything that is wrong with the flags, given those of cmd.
func (f *serveFlags) checkCluster(cmd *cobra.Command) error {
	var bad []string
	say := func(wrong bool, format string, args ...any) {
		if wrong {
			bad = append(bad, fmt.Sprintf(format, args...))
		}
	}
	set := func(name string) bool { return cmd.Flags().Changed(name) }
	say(f.Cluster.Listen != "" && len(f.Cluster.URLs) > 0,
		"--cluster-listen runs a NATS server of its own, --cluster uses an existing one: give one of them")
	say(f.Cluster.IsEdge() && f.Cluster.IsAuthority(),
		"--follow makes this node an edge, --cluster and --cluster-listen make it the authority: give one of them")
	if f.Cluster.IsEdge() {
		for _, name := range []string{"config", "read-only", "take-over", "git"} {
			say(set(name), "--follow and --%s contradict each other: an edge has no config folder, its files come from the "+
				"authority", name)
		}
		say(f.Cluster.EdgeName == "", "--follow needs --edge-name NAME, as an edge block in the files has it")
		wrong := catalog.CheckEdgeName(f.Cluster.EdgeName)
		say(f.Cluster.EdgeName != "" && wrong != "", "--edge-name %q: %s", f.Cluster.EdgeName, wrong)
		say(f.Cluster.EdgeKey == "" && f.Cluster.Creds == "",
			"--follow needs --edge-key FILE, which \"fingerpost edges keygen\" prints, or --cluster-creds FILE")
		say(f.Cluster.EdgeKey != "" && f.Cluster.Creds != "",
			"--edge-key and --cluster-creds are two ways to say who this edge is: give one of them")
	} else {
		for _, name := range []string{"edge-name", "edge-key", "stale-after", "max-stale"} {
			say(set(name), "--%s is for an edge: it needs --follow URL", name)
		}
	}
	if !f.Cluster.IsEdge() && !f.Cluster.IsAuthority() {
		for _, name := range []string{"cluster-name", "cluster-creds", "cluster-ca", "take-over"} {
			say(set(name), "--%s needs --cluster-listen, --cluster or --follow", name)
		}
	}
	say(!clusterNames.MatchString(f.Cluster.Name),
		"--cluster-name %q must be letters, digits, hyphens and underscores, at most 64", f.Cluster.Name)
	say(f.Cluster.Listen != "" && f.Cluster.Creds != "",
		"--cluster-creds is for an existing NATS; the built-in server makes its own")
	say(f.Cluster.Listen != "" && f.Listen.TLSCert == "" && f.Cluster.CA != "",
		"--cluster-ca with --cluster-listen needs --tls-cert and --tls-key: edges show certificates in TLS only")
	say(f.Cluster.Listen != "" && f.Listen.TLSCert == "" && beyondLoopback(f.Cluster.Listen),
		"--cluster-listen %s: other machines can reach it, and without TLS everybody on the way can read the files: give "+
			"--tls-cert and --tls-key, or listen on 127.0.0.1", f.Cluster.Listen)
	say(f.Cluster.StaleAfter <= 0, "--stale-after must be more than 0")
	say(f.Cluster.MaxStale < 0, "--max-stale must not be negative")
	say(f.Cluster.MaxStale > 0 && f.Cluster.MaxStale < f.Cluster.StaleAfter,
		"--max-stale must not be less than --stale-after")
	for _, u := range f.Cluster.URLs {
		say(!natsURL(u), "--cluster %q must be a URL such as nats://a:4222 or tls://a:4222, without a password", u)
	}
	for _, u := range f.Cluster.Follow {
		say(!natsURL(u), "--follow %q must be a URL such as nats://a:4222 or tls://a:4222, without a password", u)
	}
	if len(bad) == 0 && (f.Cluster.IsEdge() || len(f.Cluster.URLs) > 0) {
		c := f.Connection()
		bad = c.Check()
	}
	return usageAll(bad)
}

func natsURL(text string) bool {
	u, err := url.Parse(text)
	return err == nil && slices.Contains([]string{"nats", "tls"}, u.Scheme) && u.Hostname() != "" && u.User == nil &&
		strings.Trim(u.Path, "/") == ""
}

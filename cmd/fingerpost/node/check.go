package node

import (
	"fmt"
	"net/mail"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"fingerpost/configsrc/gitrepo"
	"fingerpost/resolver/catalog"
)

// ProposeMaxAge is the default of Git.ProposeMaxAge.
const ProposeMaxAge = 30 * 24 * time.Hour

// maxProposeApprovals is the largest Git.ProposeApprovals.
const maxProposeApprovals = 20

// CheckGit returns everything that is wrong with Git.
func (o *Options) CheckGit() []string {
	var bad []string
	add := func(format string, args ...any) { bad = append(bad, fmt.Sprintf(format, args...)) }
	if !o.Git.On {
		for flag, set := range map[string]bool{"--git-push": o.Git.Push, "--git-pull": o.Git.Pull != 0,
			"--git-hooks":    o.Git.Hooks,
			"--git-sign-key": o.Git.SignKey != "", "--git-ack": o.Git.Ack != gitrepo.AckFile,
			"--git-hook-secret": o.Git.HookSecret != "",
			"--git-domain":      o.Git.Domain != "", "--git-web": o.Git.Web != "",
			"--propose-max-age": o.Git.ProposeMaxAge != ProposeMaxAge, "--propose-approvals": o.Git.ProposeApprovals != 0} {
			if set {
				add("%s needs --git", flag)
			}
		}
	}
	switch o.Git.Ack {
	case gitrepo.AckFile, gitrepo.AckCommit:
	case gitrepo.AckPush:
		if !o.Git.Push {
			add("--git-ack push needs --git-push")
		}
	default:
		add("--git-ack must be file, commit or push")
	}
	if o.Git.On && o.Files.ReadOnly && o.Git.Pull == 0 {
		add("--git and --read-only: nothing would ever be committed; leave out one of them, or add --git-pull")
	}
	if o.Git.ProposeMaxAge < time.Minute {
		add("--propose-max-age must be at least 1m")
	}
	if o.Git.ProposeApprovals < 0 || o.Git.ProposeApprovals > maxProposeApprovals {
		add("--propose-approvals must be 0 to %d", maxProposeApprovals)
	}
	if o.Git.AckTimeout <= 0 {
		add("--git-ack-timeout must be positive")
	}
	if o.Git.Pull < 0 || o.Git.Pull > 0 && o.Git.Pull < time.Second {
		add("--git-pull must be at least 1s")
	}
	if o.Git.HookSecret != "" && o.Git.Pull == 0 {
		add("--git-hook-secret needs --git-pull: the hook asks for a fetch")
	}
	if o.Git.Domain != "" {
		if a, err := mail.ParseAddress("key@" + o.Git.Domain); err != nil || a.Address != "key@"+o.Git.Domain {
			add("--git-domain %q must be a domain, such as config.example.com", o.Git.Domain)
		}
	}
	if o.Git.Web != "" {
		if u, err := url.Parse(o.Git.Web); err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
			add("--git-web %q must be an http or https address", o.Git.Web)
		}
	}
	return bad
}

// clusterNames is what the name of a cluster may be: it is a part of a bucket's name and of NATS subjects.
var clusterNames = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// CheckCluster returns everything that is wrong with Cluster. set reports whether a flag was given.
func (o *Options) CheckCluster(set func(flag string) bool) []string {
	var bad []string
	say := func(wrong bool, format string, args ...any) {
		if wrong {
			bad = append(bad, fmt.Sprintf(format, args...))
		}
	}
	say(o.Cluster.Listen != "" && len(o.Cluster.URLs) > 0,
		"--cluster-listen runs a NATS server of its own, --cluster uses an existing one: give one of them")
	say(o.Cluster.IsEdge() && o.Cluster.IsAuthority(),
		"--follow makes this node an edge, --cluster and --cluster-listen make it the authority: give one of them")
	if o.Cluster.IsEdge() {
		for _, name := range []string{"config", "read-only", "take-over", "git"} {
			say(set(name), "--follow and --%s contradict each other: an edge has no config folder, its files come from the "+
				"authority", name)
		}
		say(set("console-link"), "--follow and --console-link contradict each other: the authority would not know the key "+
			"of such a session; sign in with a key of its files")
		say(set("mail-sink"), "--follow and --mail-sink contradict each other: the authority sends the mail of an edge, so "+
			"give --mail-sink there")
		say(o.Cluster.EdgeName == "", "--follow needs --edge-name NAME, as an edge block in the files has it")
		wrong := catalog.CheckEdgeName(o.Cluster.EdgeName)
		say(o.Cluster.EdgeName != "" && wrong != "", "--edge-name %q: %s", o.Cluster.EdgeName, wrong)
		say(o.Cluster.EdgeKey == "" && o.Cluster.Creds == "",
			"--follow needs --edge-key FILE, which \"fingerpost edges keygen\" prints, or --cluster-creds FILE")
		say(o.Cluster.EdgeKey != "" && o.Cluster.Creds != "",
			"--edge-key and --cluster-creds are two ways to say who this edge is: give one of them")
	} else {
		for _, name := range []string{"edge-name", "edge-key", "stale-after", "max-stale"} {
			say(set(name), "--%s is for an edge: it needs --follow URL", name)
		}
	}
	if !o.Cluster.IsEdge() && !o.Cluster.IsAuthority() {
		for _, name := range []string{"cluster-name", "cluster-creds", "cluster-ca", "take-over"} {
			say(set(name), "--%s needs --cluster-listen, --cluster or --follow", name)
		}
	}
	say(!clusterNames.MatchString(o.Cluster.Name),
		"--cluster-name %q must be letters, digits, hyphens and underscores, at most 64", o.Cluster.Name)
	say(o.Cluster.Listen != "" && o.Cluster.Creds != "",
		"--cluster-creds is for an existing NATS; the built-in server makes its own")
	say(o.Cluster.Listen != "" && o.Listen.TLSCert == "" && o.Cluster.CA != "",
		"--cluster-ca with --cluster-listen needs --tls-cert and --tls-key: edges show certificates in TLS only")
	say(o.Cluster.Listen != "" && o.Listen.TLSCert == "" && BeyondLoopback(o.Cluster.Listen),
		"--cluster-listen %s: other machines can reach it, and without TLS everybody on the way can read the files: give "+
			"--tls-cert and --tls-key, or listen on 127.0.0.1", o.Cluster.Listen)
	say(o.Cluster.StaleAfter <= 0, "--stale-after must be more than 0")
	say(o.Cluster.MaxStale < 0, "--max-stale must not be negative")
	say(o.Cluster.MaxStale > 0 && o.Cluster.MaxStale < o.Cluster.StaleAfter,
		"--max-stale must not be less than --stale-after")
	for _, u := range o.Cluster.URLs {
		say(!natsURL(u), "--cluster %q must be a URL such as nats://a:4222 or tls://a:4222, without a password", u)
	}
	for _, u := range o.Cluster.Follow {
		say(!natsURL(u), "--follow %q must be a URL such as nats://a:4222 or tls://a:4222, without a password", u)
	}
	return bad
}

// MailReached returns an address where other machines can have mail sent, in the words of the flags; "" if there is none.
func (o *Options) MailReached() string {
	for _, a := range o.addresses() {
		takesMail := a.flag == "listen" || a.flag == "mail-listen" || a.flag == "console-listen" || a.flag == "cluster-listen"
		if takesMail && a.addr != "" && BeyondLoopback(a.addr) {
			return "--" + a.flag + " " + a.addr
		}
	}
	if len(o.Cluster.URLs) > 0 {
		return "the edges of --cluster"
	}
	return ""
}

// NeedsNATS reports whether the node uses a NATS server of others.
func (o *Options) NeedsNATS() bool { return o.Cluster.IsEdge() || len(o.Cluster.URLs) > 0 }

// CheckConnection reads the files of the connection to NATS, and returns everything that is wrong with them.
func (o *Options) CheckConnection() []string {
	if !o.NeedsNATS() {
		return nil
	}
	c := o.Connection()
	return c.Check()
}

func natsURL(text string) bool {
	u, err := url.Parse(text)
	return err == nil && slices.Contains([]string{"nats", "tls"}, u.Scheme) && u.Hostname() != "" && u.User == nil &&
		strings.Trim(u.Path, "/") == ""
}

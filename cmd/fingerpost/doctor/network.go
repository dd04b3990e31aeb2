package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"fingerpost/configsrc/gitrepo"
	"fingerpost/resolver/catalog"
	"fingerpost/resolver/hostname"
)

// findRepository checks the repository of the config folder. What the running server says of it is newer.
func (p *patient) findRepository(ctx context.Context) {
	if !p.Git.On || p.running != nil || p.filesErr != nil {
		return
	}
	if p.gitErr = special(p.Git.SignKey); p.gitErr == nil {
		p.remote, p.gitErr = gitrepo.Check(ctx, gitrepo.Options{Dir: p.Files.Config, SignKey: p.Git.SignKey,
			Hooks: p.Git.Hooks, Push: p.Git.Push, Pull: p.Git.Pull})
	}
}

// git checks the repository and asks its upstream, or says what the running server does.
func (p *patient) git(ctx context.Context) []Result {
	switch {
	case p.running != nil && p.running.Git != nil:
		git := p.running.Git
		return p.withTold("git", ok("branch %s at %.12s, %s waiting for a commit", git.Branch, git.Head,
			catalog.Count(git.Pending, "write")))
	case !p.Git.On || p.running != nil || p.filesErr != nil:
		return nil
	case p.gitErr != nil:
		var rs []Result
		for line := range strings.Lines(p.gitErr.Error()) {
			rs = append(rs, failure("do what the line says, or serve without --git", "%s", line))
		}
		return rs
	case p.remote == nil:
		return append(p.filtered(ctx), ok("the repository of %s can take commits", p.Files.Config))
	}
	if err := p.remote.Reach(ctx, patience); err != nil {
		return []Result{failure(fmt.Sprintf(`try "git ls-remote %s" as the service's user: it needs the network, and a key or `+
			`a token of its own`, p.remote.Name), "remote %s cannot be asked: %v", p.remote.Name, err)}
	}
	return append(p.filtered(ctx), ok("the repository of %s can take commits; remote %s answers for branch %s",
		p.Files.Config, p.remote.Name, p.remote.Branch))
}

// filtered warns of files to which the API cannot write, because a filter of git is set for them.
func (p *patient) filtered(ctx context.Context) []Result {
	text, err := gitrepo.Filtered(ctx, gitrepo.Options{Dir: p.Files.Config})
	switch {
	case err != nil:
		return []Result{failure(`try "git check-attr" in the config folder`, "the git attributes cannot be read: %v", err)}
	case text != "":
		return []Result{warning("change such files in the repository, or take them out of the filter", "%s", text)}
	}
	return nil
}

// nats connects to the NATS of others, or says what the running server does.
func (p *patient) nats(ctx context.Context) []Result {
	switch {
	case p.running != nil && p.running.Cluster != nil:
		c := p.running.Cluster
		return p.withTold("nats", ok("%s of cluster %s, connected to %s", c.Role, c.Cluster, c.Server))
	case !p.NeedsNATS() || p.running != nil:
		return nil
	}
	const give = "give the files that the cluster's NATS takes"
	c := p.Connection()
	if err := special(c.KeyFile, c.Creds, c.CA, c.Cert, c.Key); err != nil {
		return []Result{failure(give, "%v", err)}
	}
	if bad := p.CheckConnection(); bad != nil {
		return []Result{failure(give, "%s", strings.Join(bad, "; "))}
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	r, err := c.Reach(ctx, p.Cluster.Name, p.Cluster.EdgeName)
	where := strings.Join(c.URLs, ", ")
	if r.Server != "" {
		where = r.Server
	}
	if err != nil {
		return []Result{failure("see that the NATS server runs, can be reached from here, and knows this node",
			"NATS at %s: %v", where, err)}
	}
	if off := time.Until(r.Time).Round(time.Second); !r.Time.IsZero() && off.Abs() > backwards {
		return []Result{warning("keep the clocks of both machines right with NTP", "NATS at %s answers, and its clock is "+
			"%v away from that of this machine", where, off)}
	}
	if !r.Bucket {
		return []Result{ok("NATS at %s answers; serve makes the bucket at its first start", where)}
	}
	return []Result{ok("NATS at %s answers, and has the bucket of cluster %s", where, p.Cluster.Name)}
}

// atOnce bounds look-ups and connections at the same time.
const atOnce = 64

// A need is why a name is looked up.
type need struct {
	by  string
	say func(todo, format string, args ...any) Result
}

// dns looks up every name that something needs. A relay is needed by its projects alone: without its name it is a
// warning here, and with --smtp a failure there.
func (p *patient) dns(ctx context.Context) (rs []Result) {
	needed := p.names()
	var mu sync.Mutex // guards rs
	each(slices.Sorted(maps.Keys(needed)), func(name string) {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		if _, err := net.DefaultResolver.LookupHost(ctx, name); err != nil {
			why := err.Error()
			if dns := (*net.DNSError)(nil); errors.As(err, &dns) {
				why = dns.Err
			}
			mu.Lock()
			defer mu.Unlock()
			rs = append(rs, needed[name].say(
				"correct the name, or see that the name servers of this machine (/etc/resolv.conf) answer",
				"%s, which %s needs, cannot be looked up: %s", name, needed[name].by, why))
		}
	})
	if rs == nil && len(needed) > 0 {
		rs = []Result{ok("%s can be looked up", catalog.Count(len(needed), "name"))}
	}
	slices.SortFunc(rs, func(a, b Result) int {
		return cmp.Or(cmp.Compare(a.State, b.State), cmp.Compare(a.Message, b.Message)) // failures first
	})
	if more := len(rs) - maxLines; more > 0 {
		rs = append(rs[:maxLines], warning("correct those first", "and %s more", catalog.Count(more, "name")))
	}
	return rs
}

// names returns the names that are looked up.
func (p *patient) names() map[string]need {
	needed := map[string]need{}
	add := func(host string, by need) {
		if _, err := netip.ParseAddr(host); err != nil && host != "" && needed[host].by == "" {
			needed[host] = by
		}
	}
	if p.remote != nil {
		add(p.remote.Host, need{"git remote " + p.remote.Name, failure})
	}
	if p.NeedsNATS() {
		c := p.Connection()
		for _, text := range c.URLs {
			if u, err := url.Parse(text); err == nil {
				add(u.Hostname(), need{"NATS", failure})
			}
		}
	}
	for _, r := range p.relays() {
		if name, err := hostname.Parse(r.server.Host); err == nil {
			add(name, need{r.owner(), warning})
		}
	}
	return needed
}

// each calls f for each item, for some at the same time.
func each[T any](items []T, f func(T)) {
	var running sync.WaitGroup
	turns := make(chan struct{}, atOnce)
	for _, item := range items {
		turns <- struct{}{}
		running.Go(func() {
			defer func() { <-turns }()
			f(item)
		})
	}
	running.Wait()
}

package doctor

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"

	"fingerpost/configsrc"
	"fingerpost/configsrc/cluster"
	"fingerpost/configsrc/gitrepo"
	"fingerpost/resolver/catalog"
)

// A server is a running server, as it describes itself at /status of its ops listener.
type server struct {
	Version string `json:"version"`
	Ready   bool   `json:"ready"`
	Formats struct {
		Store  uint64 `json:"store"`
		Ledger uint64 `json:"ledger"`
	} `json:"formats"`
	Store struct {
		Degraded bool   `json:"degraded"`
		Reason   string `json:"reason"`
	} `json:"store"`
	Config  *configsrc.Status `json:"config"`
	Git     *gitrepo.Status   `json:"git"`
	Cluster *cluster.Status   `json:"cluster"`
	Secrets []struct {
		Severity string `json:"severity"`
		Project  string `json:"project"`
		Field    string `json:"field"`
		Message  string `json:"message"`
	} `json:"secrets"`

	pid int // 0: unknown
}

// maxStatus bounds a status document, in bytes.
const maxStatus = 16 << 20

// findServer asks the ops listener. A server that holds another data folder than that of the options is another one. The
// store of one that serves from memory holds none.
func (p *patient) findServer(ctx context.Context) {
	s := askServer(ctx, p.Listen.Ops)
	switch {
	case s == nil:
	case p.lockErr != nil, s.Store.Degraded, p.holder != nil && (s.pid == 0 || s.pid == p.holder.PID):
		p.running = s
	default:
		p.another = s
	}
}

// askServer returns what a server says at an address, nil if none answers.
func askServer(ctx context.Context, addr string) *server {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	network, host := "tcp", reachable(addr)
	if path, isUnix := strings.CutPrefix(addr, "unix:"); isUnix {
		network, addr, host = "unix", path, "localhost"
	} else {
		addr = host
	}
	transport := &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, addr)
		}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+host+"/status", nil)
	if err != nil {
		return nil
	}
	res, err := transport.RoundTrip(req)
	if err != nil {
		return nil
	}
	defer res.Body.Close()
	s := new(server)
	b, err := io.ReadAll(io.LimitReader(res.Body, maxStatus))
	if err != nil || json.Unmarshal(b, s) != nil || s.Config == nil || s.Version == "" {
		return nil
	}
	s.pid, _ = strconv.Atoi(res.Header.Get("Fingerpost-Pid"))
	return s
}

// reachable returns an address of this machine for a listen address that may stand for all of them.
func reachable(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return addr
	}
	switch ip := net.ParseIP(host); {
	case host == "", ip != nil && ip.Equal(net.IPv4zero):
		host = "127.0.0.1"
	case ip != nil && ip.IsUnspecified():
		host = "::1"
	}
	return net.JoinHostPort(host, port)
}

// maxLines bounds the problems of one check that get a line each.
const maxLines = 5

// server says whether one runs, and what it says about itself.
func (p *patient) server(context.Context) []Result {
	s := p.running
	switch {
	case p.another != nil:
		return []Result{warning("give the data folder and the ops listener of the same server",
			"another server, process %d, answers at %s: its data folder is not %s", p.another.pid, p.Listen.Ops, p.Files.Data)}
	case s == nil && p.holder != nil:
		return []Result{warning("give its --ops-listen, and run this as its user",
			"a server runs, and does not answer at %s", p.Listen.Ops)}
	case s == nil:
		return []Result{ok("none runs on %s", p.Files.Data)}
	}
	state := ok("running: version %s, process %d, generation %d, %s", s.Version, s.pid, s.Config.Generation,
		catalog.Count(s.Config.Errors+s.Config.Warnings, "problem"))
	if !s.Ready {
		state = warning("wait for it, and look into its log", "%s; it is not ready yet", state.Message)
	}
	return []Result{state}
}

// told are the problems of the files that the running server has told.
func (s *server) told() (rs []Result) {
	st := s.Config
	if st.Held != nil {
		rs = append(rs, failure(`look at what it would remove, then "fingerpost reload --confirm", or put the files back`,
			"a reload is held back: %s", st.Held.Reason))
	}
	if st.Error != "" {
		rs = append(rs, failure("make the config folder readable for the service; it looks again by itself",
			"the last look at the files has failed: %s", st.Error))
	}
	for i, d := range st.Problems {
		if i == maxLines {
			rs = append(rs, warning(`run "fingerpost validate", or read /status`, "and %s more",
				catalog.Count(st.Errors+st.Warnings-maxLines, "problem")))
			break
		}
		r := warning(orValidate(d.Detail), "%s: %s", place(d), d.Summary)
		if d.Severity == "error" {
			r.State = Failure
		}
		rs = append(rs, r)
	}
	if rs == nil {
		rs = []Result{ok("the server has %s, %s and %s", catalog.Count(st.Files, "file"),
			catalog.Count(st.Projects, "project"), catalog.Count(st.Domains, "domain"))}
	}
	return rs
}

// gitTold is what the running server says of its git repository.
func (s *server) gitTold() (rs []Result) {
	for _, text := range append([]string{s.Git.Conflict}, s.Git.Errors()...) {
		if text != "" {
			rs = append(rs, failure("solve it in the repository of the config folder; the server tries again by itself", "%s",
				text))
		}
	}
	if rs == nil {
		rs = []Result{ok("branch %s at %.12s, %s waiting for a commit", s.Git.Branch, s.Git.Head,
			catalog.Count(s.Git.Pending, "write"))}
	}
	return rs
}

// clusterTold is what the running server says of its cluster.
func (s *server) clusterTold() []Result {
	c := s.Cluster
	switch {
	case c.Problem != "":
		return []Result{failure("see that the NATS server runs and can be reached; the node goes on by itself", "%s",
			c.Problem)}
	case !c.Connected:
		return []Result{failure("see that the NATS server runs and can be reached; the node goes on by itself",
			"not connected to NATS")}
	}
	return []Result{ok("%s of cluster %s, connected to %s", c.Role, c.Cluster, c.Server)}
}

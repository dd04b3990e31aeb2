package doctor

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"fingerpost/api/conditions"
	"fingerpost/configsrc"
	"fingerpost/configsrc/cluster"
	"fingerpost/configsrc/gitrepo"
	"fingerpost/configsrc/hclfile"
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
		Degraded bool `json:"degraded"`
	} `json:"store"`
	Config     *configsrc.Status      `json:"config"`
	Git        *gitrepo.Status        `json:"git"`
	Cluster    *cluster.Status        `json:"cluster"`
	Conditions []conditions.Condition `json:"conditions"`

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
	return append([]Result{ok("running: version %s, process %d, generation %d, %s", s.Version, s.pid, s.Config.Generation,
		catalog.Count(s.Config.Errors+s.Config.Warnings, "problem"))}, p.told("server")...)
}

// told are the conditions that the running server has for a check, with the problems of its files one by one.
func (p *patient) told(check string) (rs []Result) {
	if p.running == nil {
		return nil
	}
	lines, more := map[string]int{}, 0 // lines by id
	for i := range p.running.Conditions {
		c := &p.running.Conditions[i]
		kind := conditions.KindOf(c.ID)
		if cmp.Or(kind.Check, "server") != check {
			continue
		}
		for _, r := range p.running.each(c) {
			if lines[c.ID]++; lines[c.ID] > maxLines {
				more++
				continue
			}
			if kind.Broken {
				r.State = Failure
			}
			rs = append(rs, r)
		}
	}
	if more > 0 {
		rs = append(rs, warning("read /status, which has all of them", "and %s more", catalog.Count(more, "problem")))
	}
	return rs
}

// withTold are the conditions that the running server has for a check, and what doctor has found itself: that all is well
// only if the server says so.
func (p *patient) withTold(check string, own ...Result) []Result {
	told := p.told(check)
	if told == nil {
		return own
	}
	return append(told, slices.DeleteFunc(own, func(r Result) bool { return r.State == OK })...)
}

// asked is a check that only a running server can make.
func asked(check string) func(*patient, context.Context) []Result {
	return func(p *patient, _ context.Context) []Result { return p.told(check) }
}

// each has a warning for a condition, or for each problem of the files that it sums up.
func (s *server) each(c *conditions.Condition) (list []Result) {
	severity := map[string]hclfile.Severity{"files-broken": hclfile.Error, "files-warned": hclfile.Warning}[c.ID]
	for _, d := range s.Config.Problems {
		if d.Severity == severity {
			list = append(list, warning(cmp.Or(d.Detail, c.Remedy), "%s: %s", place(d), d.Summary))
		}
	}
	if list == nil {
		list = []Result{warning(c.Remedy, "%s", c.Line())}
	}
	return list
}

package node

import (
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"os/exec"
	"time"

	"fingerpost/api/gateway"
	"fingerpost/configsrc/atomicfile"
	"fingerpost/configsrc/cluster"
	"fingerpost/configsrc/gitrepo"
	"fingerpost/configsrc/seal"
	"fingerpost/resolver/catalog"
	"fingerpost/resolver/trace"
)

// Options say what a node serves, and where. The flags of the command fill them; CheckGit and CheckCluster find what
// contradicts, in the words of the flags.
type Options struct {
	Files    Files
	Listen   Listen
	Console  Console
	Mail     Mail
	Git      Git
	Cluster  Cluster
	Limits   Limits
	DNS      DNS
	Webhooks Webhooks
	Allow    catalog.Allows // by which the files are judged
	Log
	Progress

	Build Build
	Out   io.Writer // gets what was loaded, and the addresses, once the node serves
	// Terminal says that Out is one, so that only the person in front of it reads a sign-in link.
	Terminal bool
	// ServerCommand makes the command of the built-in NATS server's process. Needed with Cluster.Listen.
	ServerCommand func() *exec.Cmd
	Disk          atomicfile.Disk // writes the config folder; nil: the operating system's
}

// Console says who gets the web console, and how.
type Console struct {
	On   bool // serve it
	Link bool // print a sign-in link, also where a key can sign in
	// KeysOff leaves sign-in to the providers of login blocks and to links.
	KeysOff bool
}

// Log is what a node tells of itself, and of single requests.
type Log struct {
	Logger           *slog.Logger
	AccessLogResolve bool
	// ConditionsAfter is how long a condition must hold until the audit trail tells of it, and be gone until the trail
	// tells of its end. 0: it tells of none.
	ConditionsAfter time.Duration
	Trace           *trace.Exporter // nil: nothing is traced
}

// Progress shows how far a load is.
type Progress struct {
	// Loading is called when the first load begins, and its result when it has ended.
	Loading func() (end func())
	// OnProgress is called with how many files a load has read, of how many.
	OnProgress func(done, total int)
}

// A Build identifies the program: version, commit, and the documents it serves.
type Build struct {
	Version, Commit string
	Docs            http.Handler // what is below /docs/; nil: nothing
}

// Files are the folders of a node, and what opens secrets.
type Files struct {
	Config, Data string
	ReadOnly     bool
	MaxDelete    float64 // share that one reload may remove
	// AcceptDeletes lets the first load remove more than that.
	AcceptDeletes bool
	SecretsDir    string
	SealKey       string // names the file of Identities in messages
	Identities    *seal.Identities
	SealKeyError  error // why the seal key cannot be read; sealed secrets stay closed
}

// Listen are the addresses of a node. An empty one shares the address of the APIs; without Gate no gateway may ask.
type Listen struct {
	API, Mail, Ops, Gate, Console string
	OpsAllow                      []netip.Prefix
	Gateway                       gateway.Options
	TLSCert, TLSKey               string
	PublicURL                     string // where browsers and recipients of mail find the service; "": it is not known
	// Given reports whether the user has given the flag of an address; nil: none. A socket from the service manager may
	// differ from a default.
	Given func(flag string) bool
}

// A PrivateFile is a file that a flag names and that nobody but the service's user should read.
type PrivateFile struct{ Flag, Path string }

// PrivateFiles lists the files with secrets that are given.
func (o *Options) PrivateFiles() (files []PrivateFile) {
	for _, f := range []PrivateFile{
		{"seal-key", o.Files.SealKey}, {"tls-key", o.Listen.TLSKey}, {"edge-key", o.Cluster.EdgeKey},
		{"cluster-creds", o.Cluster.Creds}, {"git-sign-key", o.Git.SignKey}, {"git-hook-secret", o.Git.HookSecret},
	} {
		if f.Path != "" {
			files = append(files, f)
		}
	}
	return files
}

// Mail bounds the mail service.
type Mail struct {
	Allow           []netip.Prefix // private networks in which SMTP servers may be reached
	Budget          time.Duration
	Retention       time.Duration
	Queue           int
	QueuePerProject int
	Keep            bool   // keep every mail instead of sending it
	EHLOName        string // host name to greet servers with; "": this machine's
}

// Webhooks say whether events are delivered.
type Webhooks struct{ On bool }

// DNS says how the domains of customers are looked up.
type DNS struct {
	Resolver netip.AddrPort // looks up the names of servers; the zero value: the system's
	Allow    []netip.Prefix // private networks whose addresses are asked
}

// Git says how API writes become commits.
type Git struct {
	On, Hooks, Push, Fanout bool
	Ack                     gitrepo.Ack
	AckTimeout              time.Duration
	Domain, SignKey         string
	HookSecret              string // file; needs Pull
	Web                     string
	Pull                    time.Duration // 0: never
	ProposeMaxAge           time.Duration
	ProposeApprovals        int // keys that must approve of a proposal before it is applied
}

// Cluster is the node's part in a cluster. If it is neither authority nor edge, it belongs to none.
type Cluster struct {
	Listen               string   // of the built-in NATS server
	URLs                 []string // of an existing NATS, for the authority
	Name                 string
	Creds, CA            string
	Follow               []string // NATS servers of the authority, for an edge
	EdgeName, EdgeKey    string
	TakeOver             bool
	StaleAfter, MaxStale time.Duration
}

// IsAuthority reports whether the node publishes its tree to edges.
func (c *Cluster) IsAuthority() bool { return c.Listen != "" || len(c.URLs) > 0 }

// IsEdge reports whether the node follows an authority.
func (c *Cluster) IsEdge() bool { return len(c.Follow) > 0 }

// Limits bound memory and time.
type Limits struct {
	CacheBytes, StoreCacheBytes int64
	ResolveMaxAge               time.Duration
	Grace, DrainDelay           time.Duration
	FastPath                    bool
}

// Connection is how a node reaches an existing NATS, or an edge its authority's.
func (o *Options) Connection() cluster.Connection {
	c := cluster.Connection{URLs: o.Cluster.URLs, Creds: o.Cluster.Creds, CA: o.Cluster.CA, Cert: o.Listen.TLSCert,
		Key: o.Listen.TLSKey}
	if o.Cluster.IsEdge() {
		c.URLs, c.KeyFile = o.Cluster.Follow, o.Cluster.EdgeKey
	}
	return c
}

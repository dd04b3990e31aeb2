package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"fingerpost/cmd/testrig"
	"fingerpost/resolver/catalog"
)

// plan says which package may import which. An edge that is not here is a design change: it is added here first, with
// its reason in the commit. "std" is allowed everywhere. A module path allows its packages.
var plan = map[string][]string{
	// x/text: slugs from names with accents
	"fingerpost/resolver/catalog": {"fingerpost/resolver/hostname", "golang.org/x/text/unicode/norm"},
	// a leaf: the one form of a host name, for each room that reads one
	"fingerpost/resolver/hostname": {"golang.org/x/net/idna", "golang.org/x/net/publicsuffix"},
	// x/sys: renameat2, which package syscall lacks
	"fingerpost/resolver/pebblefs": {"github.com/cockroachdb/pebble/v2/vfs", "golang.org/x/sys/unix"},
	// a leaf: a step of a traced request, for every room whose steps take time
	"fingerpost/resolver/trace": {},
	// a leaf: which addresses are public, for each room that connects to what strangers name
	"fingerpost/resolver/publicnet": {},
	// a leaf: the shares of tenants in what is bounded, for each room that many of them use
	"fingerpost/resolver/share": {},
	// the links of customers and of recipients
	"fingerpost/resolver/signedlink": {"fingerpost/resolver/catalog"},
	// cbor encodes its records
	"fingerpost/resolver/store": {"fingerpost/resolver/hostname", "fingerpost/resolver/catalog", "fingerpost/resolver/pebblefs",
		"github.com/cockroachdb/pebble/v2", "github.com/fxamacker/cbor/v2"},
	"fingerpost/resolver/ledger": {"fingerpost/resolver/catalog", "fingerpost/resolver/pebblefs",
		"github.com/cockroachdb/pebble/v2", "github.com/fxamacker/cbor/v2"},
	// a leaf: the rows of the API as JSON, for what answers with them
	"fingerpost/resolver/rowjson": {"fingerpost/resolver/catalog"},
	"fingerpost/resolver/search":  {"golang.org/x/text/unicode/norm"}, // a name typed in another normal form is found
	"fingerpost/resolver/trail":   {"fingerpost/resolver/catalog", "fingerpost/resolver/store", "fingerpost/resolver/ledger"},
	// a data directory: its backups, and what commands read of it while no server runs
	"fingerpost/resolver/datadir": {"fingerpost/resolver/catalog", "fingerpost/resolver/pebblefs", "fingerpost/resolver/store",
		"fingerpost/resolver/ledger", "github.com/cockroachdb/pebble/v2/vfs"},
	"fingerpost/resolver/standby": {"fingerpost/resolver/store", "fingerpost/resolver/ledger"},
	"fingerpost/resolver/records": {"fingerpost/resolver/catalog", "fingerpost/resolver/ledger", "fingerpost/resolver/standby"},
	"fingerpost/resolver": {"fingerpost/resolver/hostname", "fingerpost/resolver/catalog", "fingerpost/resolver/store", "fingerpost/resolver/ledger",
		"fingerpost/resolver/standby", "fingerpost/resolver/records", "fingerpost/resolver/rowjson", "fingerpost/resolver/trace", // a miss is a step of a traced request
		"fingerpost/resolver/datadir", "fingerpost/resolver/search", "fingerpost/resolver/trail", "github.com/dgraph-io/ristretto/v2", "golang.org/x/sync/singleflight"},
	// mailer/template: a file's templates pass the same check of placeholders and markup as those of the API; it is a leaf
	// that knows nothing of sending
	"fingerpost/configsrc/hclfile": {"fingerpost/resolver/hostname", "fingerpost/resolver/catalog", "fingerpost/mailer/template", "github.com/hashicorp/hcl/v2",
		"github.com/zclconf/go-cty"},
	"fingerpost/configsrc/hcledit": {"fingerpost/resolver/hostname", "fingerpost/resolver/catalog", "fingerpost/configsrc/hclfile", "fingerpost/configsrc/folder",
		"github.com/hashicorp/hcl/v2"},
	// folder: file() gives a secret from a file
	"fingerpost/configsrc/seal": {"fingerpost/resolver/catalog", "fingerpost/configsrc/atomicfile",
		"fingerpost/configsrc/folder", "filippo.io/age"},
	// x/sys: renameat2, leases
	"fingerpost/configsrc/atomicfile": {"golang.org/x/sys/unix"},
	"fingerpost/configsrc/folder": {"fingerpost/resolver/catalog", "fingerpost/configsrc/atomicfile",
		"github.com/fsnotify/fsnotify"},
	// hclfile: the place of a warning
	"fingerpost/configsrc/names": {"fingerpost/resolver/hostname", "fingerpost/resolver/catalog", "fingerpost/configsrc/hclfile"},
	"fingerpost/configsrc/compare": {"fingerpost/resolver/catalog", "fingerpost/configsrc/hclfile",
		"fingerpost/configsrc/folder", "github.com/rogpeppe/go-internal/diff"},
	// atomicfile: which errors are the disk's; seal: whether a recipient can be sealed for; folder: the bound of a text
	"fingerpost/configsrc/judge": {"fingerpost/resolver/catalog", "fingerpost/configsrc/hclfile", "fingerpost/configsrc/folder",
		"fingerpost/configsrc/seal", "fingerpost/configsrc/atomicfile"},
	// trace: the steps of a traced write; atomicfile: which errors are the disk's, and the shape of a swap
	"fingerpost/configsrc/edits": {"fingerpost/resolver/catalog", "fingerpost/resolver/trace", "fingerpost/configsrc/judge",
		"fingerpost/configsrc/compare", "fingerpost/configsrc/names", "fingerpost/configsrc/hclfile", "fingerpost/configsrc/hcledit",
		"fingerpost/configsrc/folder", "fingerpost/configsrc/seal", "fingerpost/configsrc/atomicfile"},
	// trace: the steps of a traced write
	"fingerpost/configsrc": {"fingerpost/configsrc/edits", "fingerpost/configsrc/judge", "fingerpost/resolver/trace", "fingerpost/resolver/catalog", "fingerpost/configsrc/hclfile", "fingerpost/configsrc/folder",
		"fingerpost/configsrc/compare", "fingerpost/configsrc/names",
		"fingerpost/configsrc/hcledit",
		"fingerpost/configsrc/atomicfile"},
	// decides about proofs of domains, from values alone
	"fingerpost/configsrc/verify/dcv": {"fingerpost/resolver/hostname", "fingerpost/resolver/catalog"},
	// miekg/dns: the messages of DNS, which net.Resolver hides; publicsuffix: where a walk to the authoritative servers
	// begins; share: the bound of all checks together
	"fingerpost/configsrc/verify/authdns": {"fingerpost/configsrc/verify/dcv", "fingerpost/resolver/catalog",
		"fingerpost/resolver/publicnet", "fingerpost/resolver/share", "github.com/miekg/dns", "golang.org/x/net/publicsuffix"},
	// resolver: what is served, and the ledger of its notes; share: the projects' shares of the checks
	"fingerpost/configsrc/verify": {"fingerpost/resolver/records", "fingerpost/resolver/catalog", "fingerpost/resolver", "fingerpost/resolver/share",
		"fingerpost/configsrc/verify/dcv"},
	"fingerpost/configsrc/offline": {"fingerpost/resolver/catalog", "fingerpost/configsrc/hclfile",
		"fingerpost/configsrc/names", "fingerpost/configsrc"},
	// nkeys makes the authority's key
	"fingerpost/configsrc/cluster/natsd": {"github.com/nats-io/nats-server/v2", "github.com/nats-io/nkeys"},
	// zstd packs the files, nkeys reads the seeds of keys; trace: a forwarded request's message names its span
	// share: keys share the requests that an edge forwards
	"fingerpost/configsrc/cluster": {"fingerpost/resolver/catalog", "fingerpost/resolver/trace", "fingerpost/resolver/share", "fingerpost/configsrc/cluster/natsd", "github.com/nats-io/nats.go",
		"github.com/nats-io/nkeys", "github.com/klauspost/compress/zstd"},
	"fingerpost/configsrc/gitrepo/plumbing": {},
	// trace: commits and pushes of traced writes
	"fingerpost/configsrc/gitrepo": {"fingerpost/configsrc/gitrepo/plumbing", "fingerpost/resolver/catalog",
		"fingerpost/resolver/trace"},
	// hclfile: the warnings that a proposal would bring
	"fingerpost/configsrc/proposals": {"fingerpost/resolver/share", "fingerpost/resolver/catalog", "fingerpost/resolver",
		"fingerpost/configsrc", "fingerpost/configsrc/edits", "fingerpost/configsrc/hclfile",
		"fingerpost/configsrc/compare", "fingerpost/configsrc/gitrepo"},
	"fingerpost/api/transfer": {"fingerpost/resolver/catalog", "fingerpost/mailer/template", "fingerpost/configsrc/hclfile",
		"fingerpost/configsrc/hcledit", "fingerpost/api/client"},
	// hclfile: the normal form of texts, and which column a wrong heading was meant to be
	"fingerpost/api/transfer/table": {"fingerpost/resolver/hostname", "fingerpost/resolver/catalog", "fingerpost/configsrc/hclfile",
		"golang.org/x/text/unicode/norm"},
	// trace: the stages of a traced attempt
	// x/oauth2: the requests and answers of token servers
	"fingerpost/mailer/oauth": {"fingerpost/resolver/publicnet", "golang.org/x/oauth2"},
	// publicsuffix: whose policy of DMARC counts; go/spf: the verdict of SPF on an address; share: the checks on demand
	"fingerpost/mailer/sender": {"fingerpost/resolver/hostname", "fingerpost/resolver/catalog", "fingerpost/resolver/share", "golang.org/x/net/publicsuffix",
		"blitiri.com.ar/go/spf"},
	// oauth: the tokens of AUTH XOAUTH2
	"fingerpost/mailer/smtp": {"fingerpost/resolver/hostname", "fingerpost/resolver/trace", "fingerpost/resolver/catalog", "fingerpost/resolver/publicnet",
		"fingerpost/mailer/oauth", "github.com/emersion/go-smtp"},
	"fingerpost/mailer/message": {"fingerpost/resolver/hostname", "fingerpost/resolver/catalog", "github.com/domodwyer/mailyak/v3"},
	// x/net/html parses HTML, to check it and for the text part; x/text: which of a template's languages suits another one
	"fingerpost/mailer/template": {"fingerpost/resolver/catalog", "golang.org/x/net/html", "golang.org/x/text/language"},
	// publicnet: certificates and confirmations of a provider
	"fingerpost/mailer/inbound": {"fingerpost/resolver/catalog", "fingerpost/resolver/publicnet"},
	// trace: the attempts of a traced send; signedlink: what a link to unsubscribe ends
	"fingerpost/mailer": {"fingerpost/resolver/signedlink", "fingerpost/mailer/oauth", "fingerpost/resolver/trace", "fingerpost/resolver/catalog", "fingerpost/mailer/smtp", "fingerpost/mailer/message",
		"fingerpost/mailer/template"},
	// records: the events, and how far webhooks have come; share: the requests of all webhooks
	"fingerpost/mailer/webhook": {"fingerpost/resolver/catalog", "fingerpost/resolver/records", "fingerpost/resolver/publicnet",
		"fingerpost/resolver/share"},
	"fingerpost/api/gate": {},
	"fingerpost/api/events": {"fingerpost/api/gate", "fingerpost/api/web", "fingerpost/resolver/catalog", "fingerpost/resolver",
		"github.com/valyala/fasthttp"},
	// a leaf: what needs a person, for everything that tells of it
	"fingerpost/api/conditions":  {"fingerpost/resolver/catalog"},
	"fingerpost/api/ops/history": {},
	// say: why mail has stopped
	"fingerpost/api/ops": {"fingerpost/resolver/records", "fingerpost/api/conditions", "fingerpost/api/console/say", "fingerpost/api/ops/history", "fingerpost/resolver/catalog", "fingerpost/resolver", "fingerpost/configsrc", "fingerpost/configsrc/gitrepo",
		"fingerpost/mailer", "github.com/prometheus/client_golang"},
	// dcv: what is known of a domain, as the API answers it
	"fingerpost/api/client": {"fingerpost/resolver/hostname", "fingerpost/resolver/catalog"},
	// programs of other people link it: catalog makes host names canonical, nothing else of the house comes along
	"fingerpost/api/client/tenant":      {"fingerpost/resolver/hostname", "fingerpost/resolver/catalog"},
	"fingerpost/api/client/conformance": {}, // the table; its tests start programs
	// configsrc and mailer: the shapes of the states that it shows; idna: what a browser's name is in the files;
	// x/net/html: takes out of a mail's preview what a browser follows in spite of every policy
	// draws numbers; history: those of the last hour
	"fingerpost/api/console/chart": {"fingerpost/api/ops/history"},
	// codes, values, changes and mails in words
	"fingerpost/api/console/say": {"fingerpost/api/client", "fingerpost/resolver/catalog"},
	// client: the shape of a proposal
	"fingerpost/api/console/now": {"fingerpost/api/client", "fingerpost/api/conditions", "fingerpost/resolver/catalog"},
	// client: the object that a form edits, and its state; hclfile: which name a wrong one was meant to be
	"fingerpost/api/console/form": {"fingerpost/api/client", "fingerpost/api/console/say", "fingerpost/configsrc/hclfile",
		"fingerpost/resolver/catalog"},
	// transfer: a proposal's plan, as the command prints it; hclfile: the errors of a project's file
	// mailer/webhook and records: how webhooks do, and what their receivers were sent; mailer/sender: reads the headers of a
	// test mail; login: the words of a failed sign-in
	"fingerpost/api/console": {"fingerpost/api/login", "fingerpost/mailer/webhook", "fingerpost/resolver/records", "fingerpost/api/conditions", "fingerpost/resolver/signedlink", "fingerpost/api/console/form", "fingerpost/api/console/now", "fingerpost/api/console/chart",
		"fingerpost/api/ops/history", "fingerpost/api/console/say",
		"fingerpost/api/transfer", "fingerpost/configsrc/hclfile", "fingerpost/configsrc/verify/dcv",
		"fingerpost/api/client", "fingerpost/resolver/catalog", "fingerpost/configsrc", "fingerpost/mailer", "fingerpost/mailer/sender", "golang.org/x/net/idna", "golang.org/x/net/html"},
	// goldmark makes HTML of Markdown, yaml reads openapi.yaml
	// x/net/html: the search reads the pages, which Markdown and openapi.yaml give, in one form
	"fingerpost/api/docs": {"github.com/yuin/goldmark", "go.yaml.in/yaml/v3", "golang.org/x/net/html"},
	// go-oidc and oauth2: sign-in at a provider; singleflight: one discovery for all who begin; gate: which addresses are
	// one peer
	"fingerpost/api/login": {"fingerpost/api/gate", "fingerpost/resolver/catalog", "fingerpost/resolver/publicnet", "github.com/coreos/go-oidc/v3",
		"golang.org/x/oauth2", "golang.org/x/sync/singleflight"},
	// fetches and keeps the key sets that projects name
	"fingerpost/api/gateway/jwks": {"fingerpost/resolver/catalog", "fingerpost/resolver/publicnet", "fingerpost/resolver/share"},
	"fingerpost/api/gateway": {"fingerpost/api/gateway/jwks", "fingerpost/api/gate", "fingerpost/api/web", "fingerpost/resolver/catalog", "fingerpost/resolver",
		"github.com/golang-jwt/jwt/v5", "github.com/valyala/fasthttp"},
	// edits: the outcome of a write, and the preview of a dry run; names: what a slug may have meant; trace: a handler's
	// steps belong to its request's span
	"fingerpost/api/web": {"fingerpost/resolver/trace", "fingerpost/api/gate", "fingerpost/resolver/catalog", "fingerpost/resolver", "fingerpost/resolver/rowjson", "fingerpost/configsrc/edits",
		"fingerpost/configsrc/names",
		"github.com/valyala/fasthttp"},
	// trace: a send carries the span of its request; suppress: which reasons a send may ignore
	"fingerpost/api/mailapi": {"fingerpost/resolver/hostname", "fingerpost/resolver/rowjson", "fingerpost/mailer/inbound", "fingerpost/api/web", "fingerpost/resolver/trace", "fingerpost/resolver/catalog", "fingerpost/resolver",
		"fingerpost/mailer", "fingerpost/mailer/sender", "fingerpost/mailer/template", "fingerpost/resolver/share"},
	// edits: a project's block, and the state of a proposal; compare: what it touches; hclfile: the warnings that it
	// would bring; names: what a key may claim; dcv: what is known of a domain
	"fingerpost/api/platform": {"fingerpost/resolver/hostname", "fingerpost/api/web", "fingerpost/api/gate", "fingerpost/resolver/catalog", "fingerpost/resolver", "fingerpost/resolver/rowjson",
		"fingerpost/configsrc/edits", "fingerpost/configsrc/compare", "fingerpost/configsrc/names",
		"fingerpost/configsrc/hclfile", "fingerpost/configsrc/proposals", "fingerpost/configsrc/verify/dcv"},
	// names: what a word may have meant
	"fingerpost/api/platform/keys": {"fingerpost/api/web", "fingerpost/resolver/catalog", "fingerpost/resolver", "fingerpost/resolver/rowjson",
		"fingerpost/configsrc/names"},
	// names: what a word may have meant; mailer/webhook and records: what has become of deliveries, and which are asked for
	"fingerpost/api/platform/webhooks": {"fingerpost/api/web", "fingerpost/resolver/catalog", "fingerpost/resolver", "fingerpost/resolver/rowjson",
		"fingerpost/configsrc/names", "fingerpost/mailer/webhook", "fingerpost/resolver/records"},
	// trace: the span of a request begins and ends here; suppress: opens the links of recipients
	"fingerpost/api": {"fingerpost/resolver/hostname", "fingerpost/resolver/signedlink", "fingerpost/resolver/records", "fingerpost/resolver/trace", "fingerpost/api/web", "fingerpost/api/gateway", "fingerpost/api/mailapi", "fingerpost/api/platform",
		"fingerpost/api/platform/keys", "fingerpost/api/platform/webhooks", "fingerpost/resolver/catalog", "fingerpost/resolver", "fingerpost/resolver/rowjson",
		"fingerpost/configsrc/edits", "fingerpost/configsrc/proposals", "fingerpost/configsrc/verify/dcv",
		"fingerpost/api/gate", "fingerpost/api/events", "fingerpost/api/ops", "fingerpost/api/ops/history", "fingerpost/api/console", "fingerpost/api/login",
		"github.com/fasthttp/router", "github.com/valyala/fasthttp"},
	// trace: runs and flushes the exporter; authdns: asks for verify; suppress: makes the links of recipients
	"fingerpost/cmd/fingerpost/node": {"fingerpost/resolver/signedlink", "fingerpost/resolver/records", "fingerpost/resolver/rowjson", "fingerpost/configsrc/verify", "fingerpost/configsrc/verify/authdns",
		"fingerpost/resolver/trace", "fingerpost/resolver/catalog", "fingerpost/resolver", "fingerpost/configsrc/hclfile",
		"fingerpost/configsrc/hcledit", "fingerpost/configsrc/seal", "fingerpost/configsrc/atomicfile",
		"fingerpost/configsrc/folder", "fingerpost/configsrc", "fingerpost/configsrc/edits", "fingerpost/configsrc/cluster",
		"fingerpost/configsrc/cluster/natsd", "fingerpost/configsrc/gitrepo", "fingerpost/configsrc/proposals",
		"fingerpost/mailer/smtp", "fingerpost/mailer", "fingerpost/mailer/inbound", "fingerpost/mailer/sender", "fingerpost/mailer/webhook", "fingerpost/api/conditions", "fingerpost/api/ops", "fingerpost/api/ops/history",
		"fingerpost/api/console", "fingerpost/api/login", "fingerpost/api/transfer", "fingerpost/api/web", "fingerpost/api/gateway", "fingerpost/api/gateway/jwks", "fingerpost/api/platform", "fingerpost/api",
		"github.com/coreos/go-systemd/v22/daemon", "github.com/coreos/go-systemd/v22/activation"},
	// what all commands share. client: which server to ask; offline: what the shell completes; hclfile: which
	// word a misspelt one was meant to be
	"fingerpost/cmd/fingerpost/cli": {"fingerpost/resolver/catalog", "fingerpost/api/client", "fingerpost/configsrc/hclfile",
		"fingerpost/configsrc/offline", "github.com/spf13/cobra", "github.com/spf13/pflag", "golang.org/x/term"},
	// a command's group: datadir reads the store of a server that does not run; dcv and authdns: what check asks and shows
	// without a server
	"fingerpost/cmd/fingerpost/mailcare": {"fingerpost/resolver/catalog", "fingerpost/api/client", "fingerpost/configsrc/offline",
		"fingerpost/configsrc/verify/authdns", "fingerpost/mailer/sender", "fingerpost/cmd/fingerpost/cli", "github.com/spf13/cobra"},
	"fingerpost/cmd/fingerpost/domains": {"fingerpost/resolver/hostname", "fingerpost/resolver/records", "fingerpost/resolver/catalog", "fingerpost/resolver/rowjson", "fingerpost/resolver/datadir", "fingerpost/api/client",
		"fingerpost/configsrc/offline", "fingerpost/configsrc/verify/dcv", "fingerpost/configsrc/verify/authdns",
		"fingerpost/cmd/fingerpost/cli", "github.com/spf13/cobra"},
	// records: the states of deliveries
	"fingerpost/cmd/fingerpost/webhooks": {"fingerpost/resolver/records", "fingerpost/resolver/catalog", "fingerpost/api/client",
		"fingerpost/configsrc/offline", "fingerpost/cmd/fingerpost/cli", "github.com/spf13/cobra"},
	"fingerpost/cmd/fingerpost/logs": {"fingerpost/resolver/records", "fingerpost/resolver/catalog", "fingerpost/resolver/rowjson", "fingerpost/resolver/datadir", "fingerpost/api/client",
		"fingerpost/configsrc/offline", "fingerpost/cmd/fingerpost/cli", "github.com/spf13/cobra"},
	// pebblefs: who has the lock, and the modes of what is private; resolver: the formats of store and ledger
	// login: goes through a sign-in
	"fingerpost/cmd/fingerpost/doctor": {"fingerpost/resolver/hostname", "fingerpost/api/conditions", "fingerpost/api/login", "fingerpost/resolver/catalog", "fingerpost/resolver", "fingerpost/resolver/pebblefs",
		"fingerpost/configsrc", "fingerpost/configsrc/folder", "fingerpost/configsrc/hclfile", "fingerpost/configsrc/seal",
		"fingerpost/configsrc/offline", "fingerpost/configsrc/cluster", "fingerpost/configsrc/gitrepo", "fingerpost/mailer/smtp",
		"fingerpost/cmd/fingerpost/node"},
	// trace: --otlp makes the exporter; datadir: commands without a server
	"fingerpost/cmd/fingerpost": {"fingerpost/resolver/hostname", "fingerpost/resolver/trace", "fingerpost/resolver/catalog", "fingerpost/resolver",
		"fingerpost/resolver/datadir", "fingerpost/resolver/rowjson",
		"fingerpost/configsrc/hclfile", "fingerpost/configsrc/hcledit", "fingerpost/configsrc/seal",
		"fingerpost/configsrc/atomicfile", "fingerpost/configsrc/folder", "fingerpost/configsrc", "fingerpost/configsrc/edits",
		"fingerpost/configsrc/offline", "fingerpost/configsrc/cluster", "fingerpost/configsrc/cluster/natsd",
		"fingerpost/configsrc/gitrepo/plumbing", "fingerpost/mailer", "fingerpost/api/client",
		"fingerpost/api/transfer", "fingerpost/api/transfer/table", "fingerpost/api/gateway", "fingerpost/api",
		// ops: the proof with which console-link asks
		"fingerpost/api/console", "fingerpost/api/docs", "fingerpost/api/ops",
		"fingerpost/cmd/fingerpost/node", "fingerpost/cmd/fingerpost/cli",
		"fingerpost/cmd/fingerpost/doctor", "fingerpost/cmd/fingerpost/domains", "fingerpost/cmd/fingerpost/logs",
		"fingerpost/cmd/fingerpost/webhooks", "fingerpost/cmd/fingerpost/mailcare",
		"github.com/rogpeppe/go-internal/diff", "github.com/spf13/cobra", "github.com/spf13/pflag", "golang.org/x/term"},
	// for tests alone, so no other package of the plan may import them; go-smtp and go-sasl: mail servers of the tests
	"fingerpost/cmd/testrig":         {"github.com/emersion/go-sasl", "github.com/emersion/go-smtp"},
	"fingerpost/cmd/testrig/history": {"fingerpost/resolver/catalog"},
	// name servers with faults, for the tests of all rooms that check domains
	"fingerpost/cmd/testrig/faultdns": {"github.com/miekg/dns"},
}

// sole lists the libraries that only these packages may import. bench, with its baselines, is a module of its own.
var sole = map[string][]string{
	"github.com/cockroachdb/pebble/v2":    {"fingerpost/resolver/store", "fingerpost/resolver/ledger"},
	"github.com/fxamacker/cbor/v2":        {"fingerpost/resolver/store", "fingerpost/resolver/ledger"},
	"github.com/dgraph-io/ristretto/v2":   {"fingerpost/resolver"},
	"github.com/hashicorp/hcl/v2":         {"fingerpost/configsrc/hclfile", "fingerpost/configsrc/hcledit"},
	"filippo.io/age":                      {"fingerpost/configsrc/seal"},
	"github.com/fsnotify/fsnotify":        {"fingerpost/configsrc/folder"},
	"github.com/domodwyer/mailyak/v3":     {"fingerpost/mailer/message"},
	"github.com/valyala/fasthttp":         {"fingerpost/api", "fingerpost/api/web", "fingerpost/api/gateway", "fingerpost/api/events"},
	"github.com/fasthttp/router":          {"fingerpost/api"},
	"github.com/golang-jwt/jwt/v5":        {"fingerpost/api/gateway"},
	"github.com/coreos/go-oidc/v3":        {"fingerpost/api/login"},
	"golang.org/x/oauth2":                 {"fingerpost/api/login", "fingerpost/mailer/oauth"},
	"github.com/prometheus/client_golang": {"fingerpost/api/ops"},
	"github.com/yuin/goldmark":            {"fingerpost/api/docs"},
	"go.yaml.in/yaml/v3":                  {"fingerpost/api/docs"},
	"github.com/nats-io/nats-server/v2":   {"fingerpost/configsrc/cluster/natsd"},
	"github.com/nats-io/nats.go":          {"fingerpost/configsrc/cluster"},
	"github.com/nats-io/nkeys":            {"fingerpost/configsrc/cluster", "fingerpost/configsrc/cluster/natsd"},
	"github.com/coreos/go-systemd/v22":    {"fingerpost/cmd/fingerpost/node"},
	"github.com/miekg/dns":                {"fingerpost/configsrc/verify/authdns", "fingerpost/cmd/testrig/faultdns"},
	"github.com/emersion/go-smtp":         {"fingerpost/mailer/smtp", "fingerpost/cmd/testrig"},
	"blitiri.com.ar/go/spf":               {"fingerpost/mailer/sender"},
	"golang.org/x/net/html":               {"fingerpost/mailer/template", "fingerpost/api/console", "fingerpost/api/docs"},
}

type goPackage struct {
	ImportPath string
	Imports    []string
	Standard   bool
}

func TestImportPlan(t *testing.T) {
	t.Parallel()
	packages := listPackages(t)
	std := map[string]bool{}
	for _, p := range packages {
		std[p.ImportPath] = p.Standard
	}
	for _, p := range packages {
		if !strings.HasPrefix(p.ImportPath, "fingerpost/") {
			continue
		}
		allowed, known := plan[p.ImportPath]
		if !known {
			t.Errorf("%s is a room that the plan does not have", p.ImportPath)
			continue
		}
		for _, imp := range p.Imports {
			if !std[imp] && !covered(allowed, imp) {
				t.Errorf("%s imports %s, which the plan does not allow", p.ImportPath, imp)
			}
		}
	}
	for lib, rooms := range sole {
		for importer, allowed := range plan {
			if !slices.Contains(rooms, importer) && slices.Contains(allowed, lib) {
				t.Errorf("the plan lets %s import %s, which belongs to %s alone", importer, lib, strings.Join(rooms, " and "))
			}
		}
	}
}

// TestTopLevel keeps the top level of the tree as it is listed here.
func TestTopLevel(t *testing.T) {
	allowed := []string{"cmd", "resolver", "configsrc", "api", "mailer", "projects.d", "bench", "go.mod", "go.sum", "README.md", "LICENSE"}
	for _, name := range tracked(t) {
		top, _, _ := strings.Cut(path.Clean(name), "/")
		if !strings.HasPrefix(top, ".") && !slices.Contains(allowed, top) {
			t.Errorf("%s does not belong to the top level", top)
		}
	}
}

// TestDocumentsNameProjects: an id in an example is that of a project that "fingerpost init" and the example folder have.
func TestDocumentsNameProjects(t *testing.T) {
	t.Parallel()
	ids := map[string]bool{}
	for _, slug := range []string{"acme", "globex", "initech"} {
		ids[strconv.FormatInt(catalog.DeriveID(catalog.KindProject, catalog.DeriveProjectUUID(slug)), 10)] = true
	}
	seen := 0
	for _, file := range tracked(t) {
		if path.Ext(file) != ".md" {
			continue
		}
		text, err := os.ReadFile("../../" + file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`projects/(\d{14})\b`).FindAllStringSubmatch(string(text), -1) {
			if seen++; !ids[m[1]] {
				t.Errorf("%s has an example with project %s, which there is not", file, m[1])
			}
		}
	}
	if seen < 3 {
		t.Errorf("only %d examples name a project", seen)
	}
}

// TestCommentsCite: a document that a comment names exists, in the repository's top folder or next to the file, and has
// the section named after the comma. A sentence that continues after the comma begins in lower case.
func TestCommentsCite(t *testing.T) {
	testrig.Slow(t)
	t.Parallel()
	reference := regexp.MustCompile(`([\w./-]*\w\.md)\b(?:, ([A-Z][\w-]*))?`)
	for _, file := range tracked(t) {
		if path.Ext(file) != ".go" {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), "../../"+file, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, group := range f.Comments {
			for _, m := range reference.FindAllStringSubmatch(group.Text(), -1) {
				document, err := os.ReadFile("../../" + m[1])
				if err != nil {
					document, err = os.ReadFile(path.Join("../..", path.Dir(file), m[1]))
				}
				switch {
				case err != nil:
					t.Errorf("a comment in %s cites %s, which does not exist", file, m[1])
				case m[2] != "" && !regexp.MustCompile(`(?m)^#+ `+m[2]).Match(document):
					t.Errorf("a comment in %s cites %q of %s, which has no such section", file, m[2], m[1])
				}
			}
		}
	}
}

// TestLinks: the targets of links in the repository's documents exist, and have the section that a link names.
func TestLinks(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#:]*)(#[^)]*)?\)`)
	for _, file := range tracked(t) {
		if path.Ext(file) != ".md" {
			continue
		}
		for _, m := range link.FindAllStringSubmatch(prose(t, file), -1) {
			target, section := file, strings.TrimPrefix(m[2], "#")
			if m[1] != "" {
				target = path.Join(path.Dir(file), m[1])
			}
			if _, err := os.Stat(path.Join("../..", target)); err != nil {
				t.Errorf("%s links to %s, which does not exist", file, m[1])
			} else if section != "" && !slices.Contains(sections(t, target), section) {
				t.Errorf("%s links to %s#%s, and there is no such section", file, m[1], section)
			}
		}
	}
}

// prose returns a document without its code.
func prose(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile("../../" + file)
	if err != nil {
		t.Fatal(err)
	}
	text := regexp.MustCompile("(?ms)^```.*?^```").ReplaceAllString(string(b), "")
	return regexp.MustCompile("`[^`\n]*`").ReplaceAllStringFunc(text, func(code string) string {
		return strings.NewReplacer("](", "", "[", "", "]", "").Replace(code) // headings keep their code
	})
}

// sections lists the anchors of a document's headings, as GitHub makes them.
func sections(t *testing.T, file string) (anchors []string) {
	t.Helper()
	for _, m := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(prose(t, file), -1) {
		anchor := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
				return unicode.ToLower(r)
			}
			return -1
		}, m[1])
		anchors = append(anchors, anchor)
	}
	return anchors
}

// tracked lists the files of the repository.
func tracked(t *testing.T) []string {
	out, err := exec.Command("git", "-C", "../..", "ls-files", "-z").Output()
	if err != nil {
		t.Skip("no git checkout: ", err)
	}
	return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
}

func covered(allowed []string, imp string) bool {
	for _, a := range allowed {
		inHouse := strings.HasPrefix(a, "fingerpost/")
		if imp == a || !inHouse && strings.HasPrefix(imp, a+"/") {
			return true
		}
	}
	return false
}

func listPackages(t *testing.T) (packages []goPackage) {
	t.Helper()
	cmd := exec.Command("go", "list", "-pgo=off", "-deps", "-json=ImportPath,Imports,Standard", "fingerpost/...")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.Bytes())
	}
	for dec := json.NewDecoder(bytes.NewReader(out)); dec.More(); {
		var p goPackage
		if err := dec.Decode(&p); err != nil {
			t.Fatal(err)
		}
		packages = append(packages, p)
	}
	return packages
}

// TestTextsegIsReplaced: HCL imports the module that go.mod replaces by configsrc/hclfile/textseg. When it does not any
// more, the replacement is dead.
func TestTextsegIsReplaced(t *testing.T) {
	testrig.Slow(t)
	t.Parallel()
	for _, p := range listPackages(t) {
		if p.ImportPath == "github.com/hashicorp/hcl/v2/internal/unicodeutil" {
			if !slices.Contains(p.Imports, "github.com/apparentlymart/go-textseg/v15/textseg") {
				t.Errorf("HCL counts columns with %q: delete configsrc/hclfile/textseg and its replace line", p.Imports)
			}
			return
		}
	}
	t.Error("HCL has no package unicodeutil: find out how it counts columns")
}

// TestCampaigns: each row of .ci/campaign belongs to a campaign of the table in .github/CONTRIBUTING.md, names a package that
// exists and a test that its package has; the folders of the table exist, and between them guard every room.
func TestCampaigns(t *testing.T) {
	testrig.Slow(t)
	t.Parallel()
	script, err1 := os.ReadFile("../../.ci/campaign")
	table, err2 := os.ReadFile("../../.github/CONTRIBUTING.md")
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	guarded := map[string]bool{}
	names := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z]+)` \\| .* \\| (`.*`) \\|$").FindAllSubmatch(table, -1) {
		names[string(m[1])] = true
		for folder := range strings.FieldsSeq(strings.ReplaceAll(string(m[2]), "`", "")) {
			guarded[folder] = true
			if _, err := os.Stat(path.Join("../..", folder)); err != nil {
				t.Errorf("the campaign %s guards %s, which does not exist", m[1], folder)
			}
		}
	}
	for _, room := range []string{"api", "cmd", "configsrc", "mailer", "resolver"} {
		if !guarded[room] {
			t.Errorf("no campaign guards all of %s", room)
		}
	}
	rows := regexp.MustCompile(`(?m)^([a-z]+) *; *\./(\S+?)(/\.\.\.)? *; *(\S+)$`).FindAllStringSubmatch(string(script), -1)
	if len(rows) < 10 {
		t.Fatalf("%d rows in .ci/campaign", len(rows))
	}
	for _, row := range rows {
		if !names[row[1]] {
			t.Errorf("the campaign %s is not in the table of CONTRIBUTING.md", row[1])
		}
		for pattern := range strings.SplitSeq(row[4], "|") {
			if pattern != "." && !hasTest(t, row[2], row[3] != "", pattern) {
				t.Errorf("the campaign %s names tests %s, and %s has none", row[1], pattern, row[2])
			}
		}
	}
}

// hasTest reports whether a package, or one below it, has a test whose name the pattern matches.
func hasTest(t *testing.T, folder string, below bool, pattern string) bool {
	name := regexp.MustCompile(`(?m)^func (Test\w*(?:` + pattern + `)\w*)\(`)
	for _, file := range tracked(t) {
		if !strings.HasSuffix(file, "_test.go") || path.Dir(file) != folder && (!below || !strings.HasPrefix(file, folder+"/")) {
			continue
		}
		if b, err := os.ReadFile("../../" + file); err == nil && name.Match(b) {
			return true
		}
	}
	return false
}

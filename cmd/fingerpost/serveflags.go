package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"fingerpost/api/gateway"
	"fingerpost/cmd/fingerpost/cli"
	"fingerpost/cmd/fingerpost/node"
	"fingerpost/configsrc/seal"
	"fingerpost/resolver/catalog"
)

// serveFlags are the flags of serve: options of the node, and the texts of those that are not plain.
type serveFlags struct {
	node.Options
	opsAllow, gateAllow, smtpAllow   []string
	cacheSize, storeCache, maxDelete string
	mailRetention, mailSink          string
	sealKey, logFormat, otlp         string
	consoleKeys                      bool
	dns                              cli.DNSFlags
	allows                           cli.AllowFlags
}

// add adds all flags, in groups after the given ones.
func (f *serveFlags) add(cmd *cobra.Command, before ...string) {
	fl := cmd.Flags()
	inGroup(fl, groupFiles, f.addFiles)
	inGroup(fl, groupListen, f.addListen)
	inGroup(fl, groupConsole, f.addConsole)
	inGroup(fl, groupMail, f.addMail)
	inGroup(fl, groupDomains, f.dns.Add)
	inGroup(fl, groupWebhooks, f.addWebhooks)
	inGroup(fl, groupGit, f.addGit)
	inGroup(fl, groupCluster, f.addCluster)
	inGroup(fl, groupLimits, f.addLimits)
	inGroup(fl, groupLogs, f.addLogs)
	helpInGroups(cmd, append(before, groupFiles, groupListen, groupConsole, groupMail, groupDomains, groupWebhooks,
		groupGit, groupCluster, groupLimits, groupLogs)...)
	_ = cmd.RegisterFlagCompletionFunc("log-format", cobra.FixedCompletions([]string{"json", "text"},
		cobra.ShellCompDirectiveNoFileComp))
}

func (f *serveFlags) addFiles(fl *pflag.FlagSet) {
	fl.StringVar(&f.Files.Data, "data", ".fingerpost",
		"folder of the store, which is derived from the files, and of the ledger")
	fl.BoolVar(&f.Files.ReadOnly, "read-only", false, "never write into the config folder")
	fl.StringVar(&f.maxDelete, "max-delete", "30%", "share of projects or domains that one reload may remove")
	fl.BoolVar(&f.Files.AcceptDeletes, "accept-deletes", false, "let the first load remove more than --max-delete")
	fl.StringVar(&f.sealKey, "seal-key", "", "age identity that opens sealed values (default "+defaultSealKey()+")")
	fl.StringVar(&f.Files.SecretsDir, "secrets-dir", "",
		"folder outside the config folder in which file() may find secrets")
}

func (f *serveFlags) addListen(fl *pflag.FlagSet) {
	fl.StringVar(&f.Listen.API, "listen", "127.0.0.1:8080", "address of the platform and mail APIs; unix:/path works")
	fl.StringVar(&f.Listen.Mail, "mail-listen", "", "address of the mail API alone (default that of --listen)")
	fl.StringVar(&f.Listen.Ops, "ops-listen", "127.0.0.1:9090",
		"address of probes, metrics, status, commands and pprof; keep it private")
	fl.StringSliceVar(&f.opsAllow, "ops-allow", nil,
		"networks (CIDR,…) beyond this machine that may send commands to --ops-listen and use pprof, such as 10.0.0.0/8")
	f.addGate(fl)
	fl.StringVar(&f.Listen.PublicURL, "public-url", "", "address at which browsers and recipients of mail find this "+
		"service, such as https://config.acme.example; sign-in at providers and links to unsubscribe need it (default none)")
	fl.StringVar(&f.Listen.TLSCert, "tls-cert", "", "file of the certificate chain (PEM), reloaded when it changes")
	fl.StringVar(&f.Listen.TLSKey, "tls-key", "", "file of the certificate's private key (PEM), reloaded when it changes")
	fl.StringVar(&f.Listen.Gateway.Issuer, "auth-issuer", gateway.DefaultIssuer,
		"iss claim that bearer tokens must have, where no jwt_issuer says otherwise")
	f.allows.AddKeySets(fl)
}

func (f *serveFlags) addLimits(fl *pflag.FlagSet) {
	fl.StringVar(&f.cacheSize, "cache-size", "256MiB", "budget for cached answers of resolve")
	fl.StringVar(&f.storeCache, "store-cache-size", "256MiB",
		"budget for the store's block cache, which serves answers that are not cached; taken as it is needed")
	fl.DurationVar(&f.Limits.ResolveMaxAge, "resolve-max-age", 5*time.Second,
		"time for which callers may cache an answer of resolve")
	fl.DurationVar(&f.Limits.Grace, "shutdown-grace", 20*time.Second,
		"time that requests and mails in flight have to finish")
	fl.DurationVar(&f.Limits.DrainDelay, "drain-delay", 0,
		"time between a failing /readyz and closing the listeners, for load balancers (default 0s)")
	fl.BoolVar(&f.Limits.FastPath, "fast-path", true,
		"answer plain resolve requests before the HTTP library parses them; the answers are the same without it")
}

func (f *serveFlags) addLogs(fl *pflag.FlagSet) {
	fl.StringVar(&f.logFormat, "log-format", "", "format of the log, text or json (default text on a terminal, else json)")
	fl.DurationVar(&f.ConditionsAfter, "conditions-after", time.Minute,
		"time after which the audit trail, and so webhooks, tell what needs a person, and that it is over; 0 for never")
	f.addTraces(fl)
	fl.BoolVar(&f.AccessLogResolve, "access-log-resolve", false,
		"put requests of resolve and of gateways into the access log, too")
}

func (f *serveFlags) addWebhooks(fl *pflag.FlagSet) {
	fl.BoolVar(&f.Webhooks.On, "webhooks", true,
		"deliver events to webhooks; what happens without it is delivered by a later start with it")
	f.allows.AddWebhooks(fl)
}

func (f *serveFlags) addConsole(fl *pflag.FlagSet) {
	fl.BoolVar(&f.Console.On, "console", true, "serve the web console at /console/")
	fl.StringVar(&f.Listen.Console, "console-listen", "", "address of the console alone (default that of --listen)")
	fl.BoolVar(&f.consoleKeys, "console-keys", true,
		"let people sign in to the console with keys; without it, at the providers of login blocks and with links alone")
	fl.BoolVar(&f.Console.Link, "console-link", false,
		"print a link on the terminal that signs in to the console, once, on this machine, within 10 minutes")
	f.allows.AddLogins(fl)
}

// differs reports whether a flag is on the command line, or a variable gives it another value than its default: a file
// of variables may name every flag.
func differs(cmd *cobra.Command) func(flag string) bool {
	return func(flag string) bool {
		f := cmd.Flags().Lookup(flag)
		return cli.Given(cmd, flag) || f.Changed && f.Value.String() != f.DefValue
	}
}

// parse parses the flags that are not plain.
func (f *serveFlags) parse(t cli.Terminal) (err error) {
	if f.Files.MaxDelete, err = parseShare(f.maxDelete); err != nil {
		return cli.Usage("--max-delete: %v", err)
	}
	if f.Limits.CacheBytes, err = parseBytes(f.cacheSize); err != nil {
		return cli.Usage("--cache-size: %v", err)
	}
	if f.Limits.StoreCacheBytes, err = parseBytes(f.storeCache); err != nil {
		return cli.Usage("--store-cache-size: %v", err)
	}
	if (f.Listen.TLSCert == "") != (f.Listen.TLSKey == "") {
		return cli.Usage("--tls-cert and --tls-key go together")
	}
	if f.Listen.Gateway.Issuer == "" {
		return cli.Usage("--auth-issuer must not be empty")
	}
	if f.Listen.PublicURL != "" {
		var wrong string
		if f.Listen.PublicURL, wrong = catalog.ParsePublicURL(f.Listen.PublicURL); wrong != "" {
			return cli.Usage("--public-url %s", wrong)
		}
	}
	var bad []string
	if f.Listen.OpsAllow, bad = cli.ParseNetworks("--ops-allow", f.opsAllow); bad != nil {
		return cli.UsageAll(bad)
	}
	if err := f.parseGate(); err != nil {
		return err
	}
	if err := f.parseMail(); err != nil {
		return err
	}
	if f.DNS.Resolver, f.DNS.Allow, err = f.dns.Parse(); err != nil {
		return err
	}
	if f.Allow, err = f.allows.ParseAll(); err != nil {
		return err
	}
	f.Allow.NoPublicURL = f.Listen.PublicURL == ""
	if err := cli.UsageAll(f.CheckGit()); err != nil {
		return err
	}
	if !f.Console.On && f.Listen.Console != "" {
		return cli.Usage("--console-listen and --console=false contradict each other: leave one of them out")
	}
	if !f.Console.On && f.Console.Link {
		return cli.Usage("--console-link and --console=false contradict each other: leave one of them out")
	}
	if f.Console.KeysOff = !f.consoleKeys; !f.Console.On && f.Console.KeysOff {
		return cli.Usage("--console-keys=false and --console=false contradict each other: leave one of them out")
	}
	if f.Cluster.IsEdge() && f.Console.KeysOff {
		return cli.Usage("--console-keys=false is not for an edge: people sign in there with a key alone")
	}
	if f.Limits.Grace < 0 || f.Limits.ResolveMaxAge < 0 || f.Limits.DrainDelay < 0 || f.ConditionsAfter < 0 {
		return cli.Usage("--shutdown-grace, --drain-delay, --resolve-max-age and --conditions-after must not be negative")
	}
	return f.openLog(t)
}

// openLog makes the logger, and the display of the first load, above which log lines are written.
func (f *serveFlags) openLog(t cli.Terminal) error {
	var loading atomic.Pointer[cli.Progress]
	f.Loading = func() (end func()) {
		p := t.Progress("files loaded")
		loading.Store(p)
		return p.End
	}
	f.OnProgress = func(done, total int) { loading.Load().Set(done, total) }
	out := logWriter{t.Err, &loading}
	switch {
	case f.logFormat == "text", f.logFormat == "" && colour(t.Err):
		f.Logger = slog.New(slog.NewTextHandler(out, nil))
	case f.logFormat == "json", f.logFormat == "":
		f.Logger = slog.New(slog.NewJSONHandler(out, nil))
	default:
		return cli.Usage("--log-format must be text or json")
	}
	return nil
}

// A logWriter writes log lines above the progress of the first load.
type logWriter struct {
	out     io.Writer
	loading *atomic.Pointer[cli.Progress]
}

func (w logWriter) Write(line []byte) (n int, err error) {
	w.loading.Load().Above(func() { n, err = w.out.Write(line) })
	return n, err
}

// parseShare parses 30% or 0.3.
func parseShare(v string) (float64, error) {
	number, percent := strings.CutSuffix(strings.TrimSpace(v), "%")
	x, err := strconv.ParseFloat(number, 64)
	if percent {
		x /= 100
	}
	if err != nil || !(x >= 0 && x <= 1) {
		return 0, fmt.Errorf("%q must be a share from 0%% to 100%%", v)
	}
	return x, nil
}

// parseBytes parses 256MiB, 1GiB, 64MB or a plain number of bytes.
func parseBytes(v string) (int64, error) {
	text, unit := strings.TrimSpace(v), int64(1)
	for _, u := range []struct {
		suffix string
		bytes  int64
	}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"B", 1}} {
		if rest, ok := strings.CutSuffix(text, u.suffix); ok {
			text, unit = strings.TrimSpace(rest), u.bytes
			break
		}
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n <= 0 || n > (1<<40)/unit {
		return 0, fmt.Errorf("%q must be a size such as 256MiB or 1GiB", v)
	}
	return n * unit, nil
}

// readSealKey reads what opens secrets, or why that cannot be read, into the options.
func (f *serveFlags) readSealKey() {
	f.Files.SealKey = cmp.Or(f.sealKey, defaultSealKey())
	f.Files.Identities, f.Files.SealKeyError = openSealKey(f.sealKey)
}

// openSealKey opens the identities, if there are any. A file that was named explicitly must exist.
func openSealKey(named string) (*seal.Identities, error) {
	path := named
	if path == "" {
		path = defaultSealKey()
	}
	ids, err := seal.Load(path)
	if named == "" && errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return ids, err
}

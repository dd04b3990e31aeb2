package main

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"fingerpost/api"
	"fingerpost/configsrc/seal"
)

// serveFlags are the flags of serve.
type serveFlags struct {
	config, data           string
	listen, mail, ops      string
	opsAllow               []string
	tlsCert, tlsKey        string
	sealKey, secretsDir    string
	cacheSize, storeCache  string
	maxDelete              string
	authIssuer             string
	logFormat              string
	readOnly, acceptDelete bool
	logResolve, fastPath   bool
	maxAge, grace          time.Duration
	drainDelay             time.Duration
	gateFlags
	gitFlags
	mailFlags
	clusterFlags
	consoleFlags
}

func (f *serveFlags) addFiles(fl *pflag.FlagSet) {
	fl.StringVar(&f.data, "data", ".fingerpost", "folder of the store, which is derived from the files, and of the ledger")
	fl.BoolVar(&f.readOnly, "read-only", false, "never write into the config folder")
	fl.StringVar(&f.maxDelete, "max-delete", "30%", "share of projects or domains that one reload may remove")
	fl.BoolVar(&f.acceptDelete, "accept-deletes", false, "let the first load remove more than --max-delete")
	fl.StringVar(&f.sealKey, "seal-key", "", "age identity that opens sealed values (default "+defaultSealKey()+")")
	fl.StringVar(&f.secretsDir, "secrets-dir", "", "folder outside the config folder in which file() may find secrets")
}

func (f *serveFlags) addListen(fl *pflag.FlagSet) {
	fl.StringVar(&f.listen, "listen", "127.0.0.1:8080", "address of the platform and mail APIs; unix:/path works")
	fl.StringVar(&f.mail, "mail-listen", "", "address of the mail API alone (default that of --listen)")
	fl.StringVar(&f.ops, "ops-listen", "127.0.0.1:9090",
		"address of probes, metrics, status, commands and pprof; keep it private")
	fl.StringSliceVar(&f.opsAllow, "ops-allow", nil,
		"networks (CIDR,…) beyond this machine that may send commands to --ops-listen and use pprof, such as 10.0.0.0/8")
	f.gateFlags.add(fl)
	fl.StringVar(&f.tlsCert, "tls-cert", "", "file of the certificate chain (PEM), reloaded when it changes")
	fl.StringVar(&f.tlsKey, "tls-key", "", "file of the certificate's private key (PEM), reloaded when it changes")
	fl.StringVar(&f.authIssuer, "auth-issuer", api.DefaultAuthIssuer, "iss claim that bearer tokens must have")
}

func (f *serveFlags) addLimits(fl *pflag.FlagSet) {
	fl.StringVar(&f.cacheSize, "cache-size", "256MiB", "budget for cached answers of resolve")
	fl.StringVar(&f.storeCache, "store-cache-size", "256MiB",
		"budget for the store's block cache, which serves answers that are not cached; taken as it is needed")
	fl.DurationVar(&f.maxAge, "resolve-max-age", 5*time.Second, "time for which callers may cache an answer of resolve")
	fl.DurationVar(&f.grace, "shutdown-grace", 20*time.Second, "time that requests and mails in flight have to finish")
	fl.DurationVar(&f.drainDelay, "drain-delay", 0,
		"time between a failing /readyz and closing the listeners, for load balancers (default 0s)")
	fl.BoolVar(&f.fastPath, "fast-path", true,
		"answer plain resolve requests before the HTTP library parses them; the answers are the same without it")
}

func (f *serveFlags) addLogs(fl *pflag.FlagSet) {
	fl.StringVar(&f.logFormat, "log-format", "", "format of the log, text or json (default text on a terminal, else json)")
	fl.BoolVar(&f.logResolve, "access-log-resolve", false, "put requests of resolve into the access log, too")
}

// parse parses the flags that are not plain.
func (s *service) parse() (err error) {
	if s.maxDelete, err = parseShare(s.f.maxDelete); err != nil {
		return usage("--max-delete: %v", err)
	}
	if s.cacheSize, err = parseBytes(s.f.cacheSize); err != nil {
		return usage("--cache-size: %v", err)
	}
	if s.storeCache, err = parseBytes(s.f.storeCache); err != nil {
		return usage("--store-cache-size: %v", err)
	}
	if (s.f.tlsCert == "") != (s.f.tlsKey == "") {
		return usage("--tls-cert and --tls-key go together")
	}
	if s.f.authIssuer == "" {
		return usage("--auth-issuer must not be empty")
	}
	var bad []string
	if s.opsAllow, bad = parseNetworks("--ops-allow", s.f.opsAllow); bad != nil {
		return usageAll(bad)
	}
	if s.gateAllow, err = s.f.gateFlags.parse(); err != nil {
		return err
	}
	if err := s.f.mailFlags.parse(); err != nil {
		return err
	}
	if err := s.f.gitFlags.parse(&s.f); err != nil {
		return err
	}
	if err := s.f.consoleFlags.check(); err != nil {
		return err
	}
	if s.f.grace < 0 || s.f.maxAge < 0 || s.f.drainDelay < 0 {
		return usage("--shutdown-grace, --drain-delay and --resolve-max-age must not be negative")
	}
	switch s.f.logFormat {
	case "":
		s.f.logFormat = "json"
		if colour(s.t.err) {
			s.f.logFormat = "text"
		}
	case "text", "json":
	default:
		return usage("--log-format must be text or json")
	}
	var h slog.Handler = slog.NewJSONHandler(logWriter{s}, nil)
	if s.f.logFormat == "text" {
		h = slog.NewTextHandler(logWriter{s}, nil)
	}
	s.log = slog.New(h)
	return nil
}

// A logWriter writes log lines to stderr, above the progress of the first load.
type logWriter struct{ s *service }

func (w logWriter) Write(line []byte) (n int, err error) {
	w.s.loading.Load().above(func() { n, err = w.s.t.err.Write(line) })
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

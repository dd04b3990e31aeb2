package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"fingerpost/cmd/fingerpost/cli"
	"fingerpost/resolver"
)

func newVersion(t cli.Terminal) *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if asJSON {
				b := builtAs()
				return cli.PrintJSON(t.Out, map[string]any{"version": b.version, "commit": b.commit, "date": b.date,
					"go":       runtime.Version(),
					"platform": runtime.GOOS + "/" + runtime.GOARCH,
					"formats":  map[string]int{"store": resolver.StoreFormat, "ledger": resolver.LedgerFormat}})
			}
			_, err := fmt.Fprintln(t.Out, versionLine())
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document on stdout")
	return cmd
}

// versionLine returns what "fingerpost version" and --version print.
func versionLine() string {
	b := builtAs()
	if b.date != unknown {
		b.commit += " of " + b.date
	}
	return fmt.Sprintf("fingerpost %s (commit %s, %s, %s/%s)", b.version, b.commit, runtime.Version(), runtime.GOOS,
		runtime.GOARCH)
}

// A build is what the Go tool has stamped into the program.
type build struct {
	version string // of the module, else made from the commit
	commit  string // with "+dirty" if files had changed
	date    string // of the commit, as RFC 3339
}

// unknown replaces what the Go tool has not stamped: "go run" stamps nothing.
const unknown = "unknown"

func builtAs() build {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return build{unknown, unknown, unknown}
	}
	b, dirty := build{"devel", unknown, unknown}, false
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.commit = s.Value
			b.version = "devel-" + s.Value[:min(len(s.Value), 12)]
		case "vcs.time":
			b.date = s.Value
		case "vcs.modified":
			dirty = s.Value == "true"
		}
	}
	if dirty && b.commit != unknown {
		b.commit += "+dirty"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		b.version = v
	}
	return b
}

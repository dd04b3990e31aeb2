package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

func newVersion(t terminal) *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: command(func(*cobra.Command, []string) error {
			if asJSON {
				commit, date := commit()
				return printJSON(t.out, map[string]string{"version": version(), "commit": commit, "date": date, "go": runtime.Version(),
					"platform": runtime.GOOS + "/" + runtime.GOARCH})
			}
			_, err := fmt.Fprintln(t.out, versionLine())
			return err
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "one JSON document on stdout")
	return cmd
}

// versionLine returns what "fingerpost version" and --version print.
func versionLine() string {
	built, date := commit()
	if date != unknown {
		built += " of " + date
	}
	return fmt.Sprintf("fingerpost %s (commit %s, %s, %s/%s)", version(), built, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// version returns the module's version as the Go tool stamped it, or the commit.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	if rev, _ := commit(); rev != unknown {
		return "devel-" + rev[:min(len(rev), 12)]
	}
	return "devel"
}

// unknown replaces what the Go tool has not stamped: "go run" stamps nothing.
const unknown = "unknown"

// commit returns the commit of the build, with "-dirty" if files had changed, and the time of that commit (RFC 3339).
func commit() (revision, date string) {
	revision, date = unknown, unknown
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return revision, date
	}
	dirty := false
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			revision = s.Value
		case "vcs.time":
			date = s.Value
		case "vcs.modified":
			dirty = s.Value == "true"
		}
	}
	if dirty && revision != unknown {
		revision += "-dirty"
	}
	return revision, date
}

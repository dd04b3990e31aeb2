package cli

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

// PackageDir is where a package keeps the files and the variables of its service.
const PackageDir = "/etc/fingerpost"

// ofPackage are the commands that use the variables of an installed package where the current folder has no config. The
// others begin something of their own, or take files to work on.
var ofPackage = map[string]bool{"validate": true, "resolve": true, "keys": true, "rename": true, "secrets": true,
	"reload": true, "logs": true, "audit": true, "plan": true, "propose": true, "export": true, "backup": true,
	"restore": true, "domains": true, "webhooks": true, "edges": true, "doctor": true, "console-link": true, "mail": true,
	"suppressions": true}

// UsePackage lets a command use the variables of the package in dir, and says so, if the current folder has no config and
// nothing names one. Variables of the environment and flags win.
func UsePackage(w io.Writer, cmd *cobra.Command, dir string) error {
	top := cmd
	for top.HasParent() && top.Parent().HasParent() {
		top = top.Parent()
	}
	config := cmd.Flags().Lookup("config")
	if _, set := os.LookupEnv(EnvName("config")); !ofPackage[top.Name()] || config == nil || config.Changed || set {
		return nil
	}
	if _, err := os.Stat(config.DefValue); err == nil {
		return nil
	}
	f, err := os.Open(filepath.Join(dir, "fingerpost.env"))
	if err != nil {
		return nil // no package, or not one of this user's
	}
	defer f.Close()
	values, err := packageVariables(f, dir)
	if err != nil {
		return fmt.Errorf("read %s: %w", f.Name(), err)
	}
	for name, value := range values {
		if _, set := os.LookupEnv(name); !set {
			if err := os.Setenv(name, value); err != nil {
				return err
			}
		}
	}
	fmt.Fprintf(w, "using %s\n", dir)
	return nil
}

// packageVariables reads an environment file of systemd, with what the package's unit sets itself. An address that the file
// does not name is one that the service does not have.
func packageVariables(from io.Reader, dir string) (map[string]string, error) {
	values := map[string]string{
		EnvName("config"): filepath.Join(dir, "projects.d"), EnvName("data"): "/var/lib/fingerpost",
		EnvName(publicURL): "",
	}
	lines := bufio.NewScanner(from)
	for lines.Scan() {
		name, value, is := strings.Cut(strings.TrimSpace(lines.Text()), "=")
		if is && strings.HasPrefix(name, EnvPrefix) {
			if n := len(value); n > 1 && (value[0] == '"' || value[0] == '\'') && value[n-1] == value[0] {
				value = value[1 : n-1]
			}
			values[name] = value
		}
	}
	ops, set := values[EnvName("ops-listen")]
	if set && values[EnvName("ops-url")] == "" && !strings.HasPrefix(ops, "unix:") {
		values[EnvName("ops-url")] = "http://" + ops
	}
	return values, lines.Err()
}

package cli

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"fingerpost/configsrc/hclfile"
)

// fromEnv marks flags that an environment variable has set.
const fromEnv = "from environment"

// Given reports whether a flag is on the command line.
func Given(cmd *cobra.Command, name string) bool {
	f := cmd.Flags().Lookup(name)
	_, env := f.Annotations[fromEnv]
	return f.Changed && !env
}

// FlagsFromEnv sets every flag that is not on the command line from its FINGERPOST_ variable. The error names all that
// do not parse.
func FlagsFromEnv(flags *pflag.FlagSet) error {
	var bad []string
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Changed || f.Name == "help" {
			return
		}
		name := EnvName(f.Name)
		if v, ok := os.LookupEnv(name); ok {
			if err := flags.Set(f.Name, v); err != nil {
				bad = append(bad, fmt.Sprintf("%s: %v", name, err))
			}
			_ = flags.SetAnnotation(f.Name, fromEnv, nil) // fails for unknown flags only
		}
	})
	return UsageAll(bad)
}

// ConfigDir returns the folder of --config.
func ConfigDir(cmd *cobra.Command) string {
	dir, _ := cmd.Flags().GetString("config")
	return dir
}

// EnvPrefix is the prefix of every environment variable that sets a flag.
const EnvPrefix = "FINGERPOST_"

// EnvName returns the environment variable of a flag.
func EnvName(flag string) string {
	return EnvPrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// WarnOfVariables names the FINGERPOST_ variables that set no flag of any command: a misspelt one has no effect.
func WarnOfVariables(w io.Writer, root *cobra.Command) {
	var known []string
	var collect func(cmd *cobra.Command)
	collect = func(cmd *cobra.Command) {
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) { known = append(known, EnvName(f.Name)) })
		for _, c := range cmd.Commands() {
			collect(c)
		}
	}
	collect(root)
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(entry, "=")
		if strings.HasPrefix(name, EnvPrefix) && !slices.Contains(known, name) {
			fmt.Fprintf(w, "warning: %s is no variable of fingerpost%s\n", name, Suggestion("%s", hclfile.Nearest(name, known)))
		}
	}
}

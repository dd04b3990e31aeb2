package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"fingerpost/configsrc/hclfile"
)

// WantsCommand refuses the arguments of a command that only has sub-commands, and suggests the nearest one.
func WantsCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	near := hclfile.Nearest(args[0], names)
	for _, name := range names {
		if near == "" && len(args[0]) > 2 && strings.HasPrefix(name, args[0]) {
			near = name
		}
	}
	return Usage("unknown command %q for %q%s", args[0], cmd.CommandPath(), Suggestion("%q", near))
}

// WantsNamed returns the check of a command that takes exactly the named arguments.
func WantsNamed(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		line := strings.Join(append([]string{cmd.CommandPath()}, names...), " ")
		switch {
		case len(args) < len(names):
			return Usage("missing: %s: %s", strings.Join(names[len(args):], " and "), line)
		case len(args) > len(names):
			return Usage("%q is one argument too many: %s", args[len(names)], line)
		}
		return nil
	}
}

// WantsSome returns the check of a command that takes one or more arguments of a kind.
func WantsSome(name string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return WantsNamed(name)(cmd, args)
		}
		return nil
	}
}

// Group makes a command that only has sub-commands.
func Group(use, short, long string, subs ...*cobra.Command) *cobra.Command {
	var names []string
	for _, c := range subs {
		names = append(names, c.Name())
	}
	cmd := &cobra.Command{
		Use: use, Short: short, Long: long, Args: WantsCommand,
		RunE: func(*cobra.Command, []string) error {
			return Usage("%s needs one of %s", use, strings.Join(names, ", "))
		},
	}
	cmd.AddCommand(subs...)
	return cmd
}

// Suggestion returns the question whether name was meant, in the given format; "" if no name is near.
func Suggestion(format, name string) string {
	if name == "" {
		return ""
	}
	return ": did you mean " + fmt.Sprintf(format, name) + "?"
}

// FlagError adds the nearest flag to an unknown one.
func FlagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) || unknown.GetSpecifiedShortnames() != "" {
		return err
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	name := unknown.GetSpecifiedName()
	return Usage("unknown flag --%s%s", name, Suggestion("--%s", hclfile.Nearest(name, names)))
}

// NewHelp replaces cobra's help command, which treats an unknown command as a success.
func NewHelp() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND…]",
		Short: "Show the help of a command",
		RunE: func(cmd *cobra.Command, args []string) error {
			found, rest, err := cmd.Root().Find(args)
			if err == nil && len(rest) > 0 && found.HasSubCommands() {
				err = WantsCommand(found, rest)
			}
			if err != nil {
				return err
			}
			return found.Help()
		},
	}
}

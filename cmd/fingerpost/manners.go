package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"fingerpost/configsrc/hclfile"
)

// wantsCommand refuses the arguments of a command that only has sub-commands, and suggests the nearest one.
func wantsCommand(cmd *cobra.Command, args []string) error {
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
	return usage("unknown command %q for %q%s", args[0], cmd.CommandPath(), suggestion("%q", near))
}

// wantsNamed returns the check of a command that takes exactly the named arguments.
func wantsNamed(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		line := strings.Join(append([]string{cmd.CommandPath()}, names...), " ")
		switch {
		case len(args) < len(names):
			return usage("missing: %s: %s", strings.Join(names[len(args):], " and "), line)
		case len(args) > len(names):
			return usage("%q is one argument too many: %s", args[len(names)], line)
		}
		return nil
	}
}

// wantsSome returns the check of a command that takes one or more arguments of a kind.
func wantsSome(name string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return wantsNamed(name)(cmd, args)
		}
		return nil
	}
}

// group makes a command that only has sub-commands.
func group(use, short, long string, subs ...*cobra.Command) *cobra.Command {
	var names []string
	for _, c := range subs {
		names = append(names, c.Name())
	}
	cmd := &cobra.Command{
		Use: use, Short: short, Long: long, Args: wantsCommand,
		RunE: func(*cobra.Command, []string) error {
			return usage("%s needs one of %s", use, strings.Join(names, ", "))
		},
	}
	cmd.AddCommand(subs...)
	return cmd
}

// suggestion returns the question whether name was meant, in the given format; "" if no name is near.
func suggestion(format, name string) string {
	if name == "" {
		return ""
	}
	return ": did you mean " + fmt.Sprintf(format, name) + "?"
}

// flagError adds the nearest flag to an unknown one.
func flagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) || unknown.GetSpecifiedShortnames() != "" {
		return err
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	name := unknown.GetSpecifiedName()
	return usage("unknown flag --%s%s", name, suggestion("--%s", hclfile.Nearest(name, names)))
}

// newHelp replaces cobra's help command, which treats an unknown command as a success.
func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND…]",
		Short: "Show the help of a command",
		RunE: func(cmd *cobra.Command, args []string) error {
			found, rest, err := cmd.Root().Find(args)
			if err == nil && len(rest) > 0 && found.HasSubCommands() {
				err = wantsCommand(found, rest)
			}
			if err != nil {
				return err
			}
			return found.Help()
		},
	}
}

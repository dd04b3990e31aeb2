package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"fingerpost/configsrc/offline"
)

// A NameList lists what the shell may offer, from the files of --config.
type NameList func(*offline.Checked) []string

// Fixed lists names that are in no file.
func Fixed(names ...string) NameList {
	return func(*offline.Checked) []string { return names }
}

// CompleteArgs completes each argument with a list of its own; the last one is also for all arguments that follow.
func CompleteArgs(lists ...NameList) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		return complete(cmd, typed, lists[min(len(args), len(lists)-1)])
	}
}

// CompleteFlag completes the last name in the comma-separated value of a flag, without those that it has already.
func CompleteFlag(cmd *cobra.Command, flag string, list NameList) {
	_ = cmd.RegisterFlagCompletionFunc(flag, func(cmd *cobra.Command, _ []string, typed string) ([]string,
		cobra.ShellCompDirective) {
		before := typed[:strings.LastIndexByte(typed, ',')+1]
		names, directive := complete(cmd, typed[len(before):], list)
		names = slices.DeleteFunc(names, func(name string) bool { return slices.Contains(strings.Split(before, ","), name) })
		for i := range names {
			names[i] = before + names[i]
		}
		return names, directive | cobra.ShellCompDirectiveNoSpace
	}) // fails for unknown flags only
}

// complete returns the names that begin with what was typed. The config folder may be set by its variable.
func complete(cmd *cobra.Command, typed string, list NameList) ([]string, cobra.ShellCompDirective) {
	if err := FlagsFromEnv(cmd.Flags()); err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	checked, err := offline.Check(ConfigDir(cmd))
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	names := slices.Sorted(slices.Values(list(checked)))
	return slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, typed) }),
		cobra.ShellCompDirectiveNoFileComp
}

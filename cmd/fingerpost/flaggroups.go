package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// The groups of serve's flags, in the order of its help.
const (
	groupFiles    = "Files"
	groupListen   = "Listen"
	groupConsole  = "Console"
	groupMail     = "Mail"
	groupWebhooks = "Webhooks"
	groupDomains  = "Domains"
	groupGit      = "Git"
	groupCluster  = "Cluster"
	groupLimits   = "Limits"
	groupLogs     = "Logs"
)

// flagGroup is the annotation of a flag that names its group.
const flagGroup = "group"

// inGroup adds the flags that add defines, as a group of the help.
func inGroup(fl *pflag.FlagSet, group string, add func(fl *pflag.FlagSet)) {
	own := pflag.NewFlagSet(group, pflag.ContinueOnError)
	add(own)
	own.VisitAll(func(f *pflag.Flag) {
		f.Annotations = map[string][]string{flagGroup: {group}}
		fl.AddFlag(f)
	})
}

// helpInGroups makes the help of a command list its flags under the names of their groups. Flags of all commands belong
// to the first one.
func helpInGroups(cmd *cobra.Command, groups ...string) {
	cmd.SetUsageFunc(func(cmd *cobra.Command) error {
		var b strings.Builder
		fmt.Fprintf(&b, "Usage:\n  %s\n", cmd.UseLine())
		for i, group := range groups {
			in := pflag.NewFlagSet(group, pflag.ContinueOnError)
			in.SortFlags = false
			if i == 0 {
				in.AddFlagSet(cmd.InheritedFlags())
			}
			cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
				if of := f.Annotations[flagGroup]; len(of) > 0 && of[0] == group {
					in.AddFlag(f)
				}
			})
			fmt.Fprintf(&b, "\n%s:\n%s", group, in.FlagUsages())
		}
		_, err := fmt.Fprint(cmd.OutOrStderr(), b.String())
		return err
	})
}

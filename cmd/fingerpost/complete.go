package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"fingerpost/configsrc"
	"fingerpost/resolver/catalog"
)

// completeValues lets the shell complete names from the files of --config, and the values of flags that accept only a
// few.
func completeValues(root *cobra.Command) {
	args := func(complete cobra.CompletionFunc, path ...string) {
		if cmd, _, err := root.Find(path); err == nil {
			cmd.ValidArgsFunction = complete
		}
	}
	args(oneName(domainNames), "resolve")
	args(oneName(keyNames), "keys", "revoke")
	args(oneName(keyNames), "keys", "rotate")
	args(func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 { // the new slug does not exist yet
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return oneName(projectSlugs)(cmd, args, typed)
	}, "rename")
	args(func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		switch len(args) {
		case 0:
			return oneName(projectSlugs)(cmd, args, typed)
		case 1:
			return beginning(typed, []string{"jwt_secret", "password"}), cobra.ShellCompDirectiveNoFileComp
		}
		return nil, cobra.ShellCompDirectiveNoFileComp
	}, "secrets", "seal")

	flags := map[string]cobra.CompletionFunc{
		"projects":   commaList(projectSlugs),
		"project":    commaList(projectSlugs),
		"allow":      commaList(func(*configsrc.Checked) []string { return catalog.Permissions }),
		"log-format": cobra.FixedCompletions([]string{"json", "text"}, cobra.ShellCompDirectiveNoFileComp),
		"status":     cobra.FixedCompletions(mailStates, cobra.ShellCompDirectiveNoFileComp),
	}
	var each func(cmd *cobra.Command)
	each = func(cmd *cobra.Command) {
		for name, complete := range flags {
			if cmd.LocalFlags().Lookup(name) != nil {
				_ = cmd.RegisterFlagCompletionFunc(name, complete) // fails only if it is registered already
			}
		}
		for _, c := range cmd.Commands() {
			each(c)
		}
	}
	each(root)
}

// filesToComplete loads the files of --config, or of its environment variable.
func filesToComplete(cmd *cobra.Command) (*configsrc.Checked, error) {
	if err := flagsFromEnv(cmd.Flags()); err != nil {
		return nil, err
	}
	return configsrc.Check(configDir(cmd))
}

// oneName completes the names that list finds in the files, for every argument.
func oneName(list func(*configsrc.Checked) []string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		checked, err := filesToComplete(cmd)
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		return beginning(typed, list(checked)), cobra.ShellCompDirectiveNoFileComp
	}
}

// commaList completes the last name of a comma-separated list, without those that it has already.
func commaList(list func(*configsrc.Checked) []string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		checked, err := filesToComplete(cmd)
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		cut := strings.LastIndexByte(typed, ',') + 1
		var out []string
		for _, name := range beginning(typed[cut:], list(checked)) {
			if !slices.Contains(strings.Split(typed[:cut], ","), name) {
				out = append(out, typed[:cut]+name)
			}
		}
		return out, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
}

// beginning keeps the names that begin with what was typed.
func beginning(typed string, names []string) []string {
	var out []string
	for _, n := range names {
		if strings.HasPrefix(n, typed) {
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return out
}

// domainNames leaves wildcards out: no client asks for one.
func domainNames(checked *configsrc.Checked) (names []string) {
	for _, p := range projectsOf(checked) {
		for _, d := range p.Domains {
			if !d.Wildcard() {
				names = append(names, d.Name)
			}
		}
	}
	return names
}

func keyNames(checked *configsrc.Checked) (names []string) {
	for _, k := range keysOf(checked) {
		names = append(names, k.Name)
	}
	return names
}

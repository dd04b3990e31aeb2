package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"fingerpost/api/client"
	"fingerpost/cmd/fingerpost/cli"
	"fingerpost/configsrc/offline"
	"fingerpost/resolver/catalog"
)

func newProjects(t cli.Terminal) *cobra.Command {
	return cli.Group("projects", "Change several projects of a running server at once",
		"The server changes all of the projects or none, in one write: one diff, and one commit with --git.",
		newProjectsSet(t))
}

// projectsSetFlags are the flags of projects set.
type projectsSetFlags struct {
	cli.ConnectFlags
	status, message, propose string
	labels, removed          []string
	dry, json                bool
}

func newProjectsSet(t cli.Terminal) *cobra.Command {
	var f projectsSetFlags
	cmd := &cobra.Command{
		Use:   "set SLUG… --status SUSPENDED --label plan=gold",
		Short: "Set status and labels of projects, of all or of none",
		Long: "Takes the slugs of 1 to 1,000 projects; with - it reads them from stdin, one a line. Labels merge: others than those\n" +
			"that are set or removed stay.",
		Example:           "  fingerpost projects set acme globex --label plan=gold --status SUSPENDED --dry-run",
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: cli.CompleteArgs((*offline.Checked).Slugs),
		RunE: cli.Interruptible(func(cmd *cobra.Command, args []string) error {
			return f.run(cmd, t, args)
		}),
	}
	f.Add(cmd, "write the projects")
	f.Local(cmd)
	fl := cmd.Flags()
	fl.StringVar(&f.status, "status", "", "status: "+strings.Join(catalog.Statuses, ", ")+" (default as it is)")
	fl.StringArrayVar(&f.labels, "label", nil, "label to set, as name=value; may be given again (default none)")
	fl.StringArrayVar(&f.removed, "remove-label", nil, "name of a label to remove; may be given again (default none)")
	fl.BoolVar(&f.dry, "dry-run", false, "print the diff, and change nothing")
	fl.StringVar(&f.message, "message", "", "first line of the commit (default one that says what changes)")
	fl.StringVar(&f.propose, "propose", "", "name of a proposal to put the change on, instead of making it (default none)")
	fl.BoolVar(&f.json, "json", false, "print one JSON document on stdout")
	cli.CompleteFlag(cmd, "status", cli.Fixed(catalog.Statuses...))
	return cmd
}

func (f *projectsSetFlags) run(cmd *cobra.Command, t cli.Terminal, args []string) error {
	set, err := f.set(args)
	if err != nil {
		return err
	}
	o, err := f.Options()
	if err != nil {
		return err
	}
	c, edit := client.New(o), set.Edit()
	edit.Message, edit.Proposal = f.message, f.propose
	if f.dry {
		dry, err := c.Try(cmd.Context(), edit)
		switch {
		case err != nil:
			return err
		case f.json:
			return cli.PrintJSON(t.Out, map[string]any{"dryRun": true, "diff": dry.Diff})
		}
		fmt.Fprint(t.Out, dry.Diff)
		return nil
	}
	made, err := c.Make(cmd.Context(), edit)
	switch {
	case err != nil:
		return err
	case f.json:
		return cli.PrintJSON(t.Out, map[string]any{"projects": set.Projects, "commit": made.Commit, "branch": made.Branch})
	case made.Branch != "":
		fmt.Fprintf(t.Out, "proposed on %s for %d projects\n", made.Branch, len(set.Projects))
		return nil
	}
	fmt.Fprintf(t.Out, "set for %d projects\n", len(set.Projects))
	return nil
}

// set reads the arguments and flags, and tells every problem of them.
func (f *projectsSetFlags) set(args []string) (*client.ProjectsSet, error) {
	set := &client.ProjectsSet{Projects: args, Status: f.status, Labels: map[string]*string{}}
	var bad []string
	if slices.Equal(args, []string{"-"}) {
		var err error
		if set.Projects, err = readLines(os.Stdin); err != nil {
			return nil, fmt.Errorf("read slugs from stdin: %w", err)
		}
	}
	for _, slug := range set.Projects {
		if msg := catalog.CheckSlug(slug); msg != "" {
			bad = append(bad, fmt.Sprintf("%q is no slug: it %s", slug, msg))
		}
	}
	if f.status != "" && !slices.Contains(catalog.Statuses, f.status) {
		bad = append(bad, "--status takes one of "+strings.Join(catalog.Statuses, ", "))
	}
	for _, l := range f.labels {
		name, value, found := strings.Cut(l, "=")
		if !found {
			bad = append(bad, fmt.Sprintf("--label takes name=value, not %q", l))
		}
		set.Labels[name] = &value
	}
	for _, name := range f.removed {
		if set.Labels[name] != nil {
			bad = append(bad, fmt.Sprintf("label %q is both set and removed", name))
		}
		set.Labels[name] = nil
	}
	if f.status == "" && len(set.Labels) == 0 {
		bad = append(bad, "nothing to set: give --status, --label or --remove-label")
	}
	return set, cli.UsageAll(bad)
}

// readLines reads lines that are not blank.
func readLines(from io.Reader) (lines []string, err error) {
	scanner := bufio.NewScanner(from)
	for scanner.Scan() {
		if line := strings.TrimSpace(scanner.Text()); line != "" {
			lines = append(lines, line)
		}
	}
	return lines, scanner.Err()
}

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"fingerpost/cmd/fingerpost/progress"
)

// Exit codes (cmd/fingerpost/README.md).
const (
	exitOK     = 0
	exitNot    = 1 // the answer is "no"
	exitUsage  = 2
	exitFailed = 3 // could not run
)

// An exitError carries the process's exit code; any other error of a command is exitFailed. Its text goes to stderr
// unless it is empty.
type exitError struct {
	code int
	error
}

func (e *exitError) Unwrap() error { return e.error }

// errNot ends a command whose answer is "no" and already on stdout.
var errNot = no("")

// no ends a command with exit code 1 and a message.
func no(format string, args ...any) error {
	return &exitError{exitNot, fmt.Errorf(format, args...)}
}

// usage ends a command with exit code 2.
func usage(format string, args ...any) error {
	return &exitError{exitUsage, fmt.Errorf(format, args...)}
}

// usageAll is usage with all problems at once; nil if there are none.
func usageAll(problems []string) error {
	if len(problems) == 0 {
		return nil
	}
	return usage("%s", strings.Join(problems, "; "))
}

// endWithProblems ends a command that has done nothing because of problems, which its JSON document has, too. done is
// what it would have done, such as "sent".
func endWithProblems(t terminal, asJSON bool, document any, problems []string, done string) error {
	if asJSON {
		if err := printJSON(t.out, document); err != nil {
			return err
		}
	}
	for _, p := range problems {
		fmt.Fprintln(t.err, p)
	}
	return no("%s: nothing was %s", count(len(problems), "problem"), done)
}

// A terminal holds a command's input and outputs.
type terminal struct {
	in       io.Reader
	out, err io.Writer
}

// progress starts a display of long work if stderr is a terminal; otherwise it returns nil.
func (t terminal) progress(what string) *progress.Line {
	if !isTerminal(t.err) {
		return nil
	}
	return progress.Start(t.err, what)
}

func isTerminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// runContext is main without the process: it parses, runs and returns the exit code.
func runContext(ctx context.Context, args []string, t terminal) int {
	root := newRoot(t)
	root.SetArgs(args)
	root.SetIn(t.in)
	root.SetOut(t.out)
	root.SetErr(t.err)
	code := exitUsage // for what cobra refuses before it calls a command
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		code = exitFailed
		if cmd.Name() != cobra.ShellCompRequestCmd {
			warnOfVariables(t.err, root)
		}
		return flagsFromEnv(cmd.Flags())
	}
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	var exit *exitError
	if errors.As(err, &exit) {
		code = exit.code
	}
	if msg := err.Error(); msg != "" {
		fmt.Fprintf(t.err, "fingerpost: %s\n", msg)
		if code == exitUsage {
			fmt.Fprintln(t.err, `Run "fingerpost help" for usage.`)
		}
	}
	return code
}

func newRoot(t terminal) *cobra.Command {
	root := &cobra.Command{
		Use:   "fingerpost",
		Short: "Which project does this domain belong to, and how is it configured",
		Long: "fingerpost serves projects, domains and their settings from HCL files kept in git.\n\n" +
			"Every flag has an environment variable: --log-format is FINGERPOST_LOG_FORMAT. The flag wins.\n" +
			"Exit codes: 0 done; 1 the thing asked about is not so; 2 wrong usage; 3 could not run.",
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       versionLine(),
		Args:          wantsCommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cmd.SetOut(t.err)
			_ = cmd.Help()
			return usage("")
		},
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetFlagErrorFunc(flagError)
	root.SetHelpCommand(newHelp())
	root.PersistentFlags().String("config", "projects.d", "folder of the HCL files")
	root.AddCommand(newServe(t), newValidate(t), newFmt(t), newResolve(t), newKeys(t), newRename(t), newSecrets(t),
		newInit(t),
		newReload(t), newLogs(t), newAudit(t), newPlan(t), newPropose(t), newImport(t), newExport(t), newBackup(t),
		newRestore(t), newDomains(t), newEdges(t), newDoctor(t), newClusterServer(t), newDocs(t), newVersion(t))
	return root
}

// fromEnv marks flags that an environment variable has set.
const fromEnv = "from environment"

// given reports whether a flag is on the command line.
func given(cmd *cobra.Command, name string) bool {
	f := cmd.Flags().Lookup(name)
	_, env := f.Annotations[fromEnv]
	return f.Changed && !env
}

// flagsFromEnv sets every flag that is not on the command line from its FINGERPOST_ variable.
func flagsFromEnv(flags *pflag.FlagSet) error {
	var bad []string
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Changed || f.Name == "help" {
			return
		}
		name := envName(f.Name)
		if v, ok := os.LookupEnv(name); ok {
			if err := flags.Set(f.Name, v); err != nil {
				bad = append(bad, fmt.Sprintf("%s: %v", name, err))
			}
			_ = flags.SetAnnotation(f.Name, fromEnv, nil) // fails for unknown flags only
		}
	})
	return usageAll(bad)
}

func configDir(cmd *cobra.Command) string {
	dir, _ := cmd.Flags().GetString("config")
	return dir
}

// printJSON writes one JSON document.
func printJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"fingerpost/cmd/fingerpost/cli"
	"fingerpost/cmd/fingerpost/doctor"
	"fingerpost/resolver/catalog"
)

func newDoctor(t cli.Terminal) *cobra.Command {
	var f serveFlags
	asJSON, withSMTP, withLogin := false, false, false
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check an installation, and say what to do",
		Long: "Checks what serve needs, with the flags and variables of serve: files, permissions, owner, secrets, store, " +
			"disk,\n" +
			"open files, clock, git, names, NATS and addresses. It changes nothing, works before the first start, and asks a\n" +
			"running server at its ops listener. Run it as the service's user. Exit code 1 when there are failures; warnings\n" +
			"alone are 0.",
		Args: cobra.NoArgs,
		RunE: cli.Interruptible(func(cmd *cobra.Command, _ []string) error {
			f.Files.Config = cli.ConfigDir(cmd)
			if err := cli.UsageAll(f.CheckCluster(differs(cmd))); err != nil {
				return err
			}
			return examine(cmd.Context(), t, &f, doctor.Options{SMTP: withSMTP, Login: withLogin}, asJSON)
		}),
	}
	const groupDoctor = "Doctor"
	inGroup(cmd.Flags(), groupDoctor, func(fl *pflag.FlagSet) {
		fl.BoolVar(&withSMTP, "smtp", false,
			"connect to each SMTP server of the files, up to EHLO; nothing is sent, and nobody logs in")
		fl.BoolVar(&withLogin, "login", false,
			"ask each provider of the files for what a sign-in needs: discovery, keys, redirect URI and client; nobody signs in")
		fl.BoolVar(&asJSON, "json", false, "print one JSON document on stdout")
	})
	f.add(cmd, groupDoctor)
	return cmd
}

func examine(ctx context.Context, t cli.Terminal, f *serveFlags, o doctor.Options, asJSON bool) error {
	if err := f.parse(t); err != nil {
		return err
	}
	if err := cli.UsageAll(f.CheckListen()); err != nil {
		return err
	}
	f.readSealKey()
	o.Options = f.Options
	o.Built, _ = time.Parse(time.RFC3339, builtAs().date) // the zero time if it is unknown
	results := doctor.Examine(ctx, o)
	if ctx.Err() != nil {
		return errors.New("interrupted")
	}
	n := map[doctor.State]int{}
	for _, r := range results {
		n[r.State]++
	}
	var err error
	if asJSON {
		err = cli.PrintJSON(t.Out, results)
	} else {
		_, err = io.WriteString(t.Out, doctorText(results))
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(t.Err, "%s, %s\n", catalog.Count(n[doctor.Failure], "failure"),
		catalog.Count(n[doctor.Warning], "warning"))
	if n[doctor.Failure] > 0 {
		return cli.ErrNot
	}
	return nil
}

// doctorText has a line for each result, and another one for what to do.
func doctorText(results []doctor.Result) string {
	var b strings.Builder
	for _, r := range results {
		fmt.Fprintf(&b, "%-8s %-12s %s\n", r.State, r.Check, r.Message)
		if r.Todo != "" {
			fmt.Fprintf(&b, "%22s→ %s\n", "", r.Todo)
		}
	}
	return b.String()
}

package domains

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"fingerpost/api/client"
	"fingerpost/cmd/fingerpost/cli"
	"fingerpost/configsrc/verify/authdns"
	"fingerpost/configsrc/verify/dcv"
	"fingerpost/resolver/catalog"
)

// checkFlags are the flags of domains check.
type checkFlags struct {
	cli.ConnectFlags
	wait  string
	every time.Duration
	json  bool
	dns   cli.DNSFlags
}

func newCheck(t cli.Terminal) *cobra.Command {
	var f checkFlags
	cmd := &cobra.Command{
		Use:   "check NAME",
		Short: "Check a domain now: whose it is, where it points, and its certificate",
		Long: "With --url, has a server check the domain, which also notes the result. Without it, asks the name servers from here,\n" +
			"for a domain of the files, and changes nothing.\n" +
			"Exit code 0 when the domain is ready, 1 when it is not. With --wait ready it is checked again until it is, or until\n" +
			"--timeout has passed, and stderr has the states that it is in meanwhile.",
		Example:           "  fingerpost domains check shop.acme.example --wait ready --timeout 1h",
		Args:              cli.WantsNamed("NAME"),
		ValidArgsFunction: cli.CompleteArgs(everyDomain),
		RunE: cli.Interruptible(func(cmd *cobra.Command, args []string) error {
			return f.run(cmd, t, args[0])
		}),
	}
	f.Add(cmd, "write the domain's project")
	fl := cmd.Flags()
	fl.Lookup("timeout").Usage = "time that one request may take, and that --wait waits"
	fl.StringVar(&f.wait, "wait", "", `state to wait for: "ready"`)
	fl.DurationVar(&f.every, "every", 15*time.Second, "interval between two checks of --wait")
	f.dns.Add(fl)
	fl.BoolVar(&f.json, "json", false, "print one JSON document on stdout")
	_ = cmd.RegisterFlagCompletionFunc("wait",
		cobra.FixedCompletions([]string{"ready"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (f *checkFlags) run(cmd *cobra.Command, t cli.Terminal, name string) error {
	var bad []string
	lookUp, allow, err := f.dns.Parse()
	if err != nil {
		bad = append(bad, err.Error())
	}
	if f.wait != "" && f.wait != "ready" {
		bad = append(bad, fmt.Sprintf(`--wait must be "ready", not %q`, f.wait))
	}
	if f.every < 10*time.Millisecond {
		bad = append(bad, "--every must be at least 10ms")
	}
	if err := cli.UsageAll(bad); err != nil {
		return err
	}
	o := authdns.Options{Allow: allow}
	if lookUp.IsValid() {
		o.Resolver = lookUp.String()
	}
	checker, err := authdns.New(o)
	if err != nil {
		return err
	}
	check, err := f.checkOf(cmd, checker, name)
	if err != nil {
		return err
	}
	return f.waitReady(cmd.Context(), t, strings.TrimSpace(name), check)
}

// checkOf returns the function that checks a domain once.
func (f *checkFlags) checkOf(cmd *cobra.Command, checker *authdns.Checker, name string) (
	func(ctx context.Context) (catalog.VerificationView, error), error) {
	if f.URL == "" {
		d, err := declaredDomain(cli.ConfigDir(cmd), name)
		if err != nil {
			return nil, err
		}
		state := dcv.State{}
		return func(ctx context.Context) (catalog.VerificationView, error) {
			facts, err := checker.Check(ctx, d.subject, d.policy, dcv.Ways(d.subject, d.policy))
			if err != nil {
				return catalog.VerificationView{}, err
			}
			var found dcv.Decision
			state, found = dcv.Decide(state, d.subject, d.policy, facts, time.Now())
			if found.Write != "" { // a server would write it into the files; here it is only shown
				state, d.subject.Verified = dcv.Settle(state, true, time.Now()), found.Write
			}
			shown := state
			shown.NextAt = time.Time{} // nobody has planned one
			return dcv.Show(d.subject, shown, d.policy), nil
		}, nil
	}
	o, err := f.Options()
	if err != nil {
		return nil, err
	}
	o.Timeout = max(o.Timeout, cli.RequestTimeout) // else the time of --wait would end in a question
	server := client.New(o)
	d, err := domainOnServer(cmd, server, name)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) (catalog.VerificationView, error) {
		return server.CheckVerification(ctx, d.ProjectID, d.ID)
	}, nil
}

// waitReady checks until the domain is ready, with --wait, and prints the last result. On stderr it prints the states
// before that, each time they have changed.
func (f *checkFlags) waitReady(ctx context.Context, t cli.Terminal, name string,
	check func(ctx context.Context) (catalog.VerificationView, error)) error {
	shown := ""
	for end := time.Now().Add(f.Timeout); ; {
		v, err := check(ctx)
		if err != nil && (f.wait == "" || !cli.Passing(err) || time.Now().After(end)) {
			return err
		}
		if err == nil && (v.Ready || f.wait == "" || time.Now().After(end)) {
			if f.json {
				err = cli.PrintJSON(t.Out, v)
			} else {
				err = domainLine{name, &v}.write(t.Out)
			}
			if err == nil && !v.Ready {
				err = cli.ErrNot
			}
			return err
		}
		if text := states(&v, err); text != shown {
			fmt.Fprintf(t.Err, "not ready yet: %s; next check in %v\n", text, f.every)
			shown = text
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(min(f.every, max(time.Until(end), 0)+time.Millisecond)):
		}
	}
}

// states is what a check has found, in short, or why there was none.
func states(v *catalog.VerificationView, err error) string {
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("ownership %s, pointing %s, certificate %s",
		v.Ownership.State, v.Pointing.State, v.Certificate.State)
}

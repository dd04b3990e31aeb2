package webhooks

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"fingerpost/api/client"
	"fingerpost/cmd/fingerpost/cli"
	"fingerpost/resolver/catalog"
	"fingerpost/resolver/records"
)

func newTest(t cli.Terminal) *cobra.Command {
	var f flags
	cmd := named("test NAME", "Send a test event, and say what has become of it",
		"It is sent to an inactive webhook, too, and not tried again. Exit code 0 when it was delivered, 1 when it was not.",
		func(cmd *cobra.Command, args []string) error {
			server, err := f.connect(args[0])
			if err != nil {
				return err
			}
			out, err := server.TestWebhook(cmd.Context(), args[0])
			if err != nil {
				return cli.Answered(err)
			}
			if f.json {
				err = cli.PrintJSON(t.Out, out)
			} else {
				_, err = fmt.Fprintln(t.Out, outcome(&out.WebhookOutcome))
			}
			if err == nil && !out.Delivered {
				err = cli.ErrNot
			}
			return err
		})
	f.add(cmd)
	return cmd
}

// outcome says what has become of an attempt.
func outcome(o *client.WebhookOutcome) string {
	took := fmt.Sprintf(", %d ms", o.Millis)
	switch {
	case o.Error == nil && o.Status != nil:
		return fmt.Sprintf("delivered: the receiver answered %d%s", *o.Status, took)
	case o.Error == nil:
		return "delivered" + took
	}
	text := "not delivered: " + client.Printable(*o.Error) + took
	if o.Answer != nil && strings.TrimSpace(*o.Answer) != "" {
		text += "; its answer begins: " + shortened(*o.Answer)
	}
	return text
}

// maxShown is how many characters of an answer are shown.
const maxShown = 120

func shortened(text string) string {
	runes := []rune(client.Printable(strings.Join(strings.Fields(text), " ")))
	if len(runes) > maxShown {
		return string(runes[:maxShown]) + "…"
	}
	return string(runes)
}

func newResume(t cli.Terminal) *cobra.Command {
	var f flags
	cmd := named("resume NAME", "Switch a webhook on that was switched off by itself",
		"It goes on with the event that was refused. For a webhook that is on there is nothing to do.",
		func(cmd *cobra.Command, args []string) error {
			server, err := f.connect(args[0])
			if err != nil {
				return err
			}
			w, err := server.ResumeWebhook(cmd.Context(), args[0])
			if err != nil {
				return cli.Answered(err)
			}
			if f.json {
				return cli.PrintJSON(t.Out, w)
			}
			fmt.Fprintf(t.Err, "webhook %q is on\n", args[0])
			return nil
		})
	f.add(cmd)
	return cmd
}

// A period is what --from and --to select.
type period struct{ from, to string }

func (p *period) add(cmd *cobra.Command, what string) {
	cmd.Flags().StringVar(&p.from, "from", "", "beginning of the time of which "+what+": "+timeForm)
	cmd.Flags().StringVar(&p.to, "to", "", "end of the time of which "+what+": "+timeForm)
}

const timeForm = "a time in UTC, such as 2026-01-31T09:30:00, or how long ago, such as 2h"

// parse returns both as the API has them, "" for those that are not given.
func (p *period) parse(now time.Time) (from, to string, bad []string) {
	one := func(flag, text string) string {
		if text == "" {
			return ""
		}
		if at, err := catalog.ParseMoment(text); err == nil {
			return catalog.Moment(at)
		}
		ago, err := cli.ParseLifetime(text)
		if err != nil {
			bad = append(bad, fmt.Sprintf("--%s %q must be %s", flag, text, timeForm))
		}
		return catalog.Moment(now.Add(-ago))
	}
	return one("from", p.from), one("to", p.to), bad
}

// deliveriesFlags are the flags of deliveries.
type deliveriesFlags struct {
	flags
	period
	state, event string
	limit        int
}

func newDeliveries(t cli.Terminal) *cobra.Command {
	var f deliveriesFlags
	cmd := named("deliveries NAME", "List what a webhook was sent, the latest last, and what has become of it",
		"Deliveries are kept for 7 days, at most 10,000 of a webhook. --json has every attempt, with the beginning of its\n"+
			"answer.",
		func(cmd *cobra.Command, args []string) error { return f.run(cmd.Context(), t, args[0]) })
	cmd.Example = "  fingerpost webhooks deliveries crm --state dead --from 2d"
	f.flags.add(cmd)
	f.period.add(cmd, "deliveries are listed")
	fl := cmd.Flags()
	fl.StringVar(&f.state, "state", "", "state of the deliveries that are listed: "+strings.Join(records.HookStates, ", "))
	fl.StringVar(&f.event, "event", "", "event of the deliveries that are listed, such as domain.update")
	fl.IntVar(&f.limit, "limit", 20, "number of deliveries that are listed at most")
	_ = cmd.RegisterFlagCompletionFunc("state",
		cobra.FixedCompletions(records.HookStates, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("event",
		cobra.FixedCompletions(catalog.WebhookEvents(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (f *deliveriesFlags) run(ctx context.Context, t cli.Terminal, name string) error {
	from, to, bad := f.parse(time.Now())
	if f.state != "" && !slices.Contains(records.HookStates, f.state) {
		bad = append(bad, "--state must be one of "+strings.Join(records.HookStates, ", "))
	}
	if f.limit < 1 {
		bad = append(bad, "--limit must be at least 1")
	}
	server, err := f.connect(name, bad...)
	if err != nil {
		return err
	}
	filters := url.Values{"state": {f.state}, "event": {f.event}, "from": {from}, "to": {to}}
	rows, total, err := cli.FirstRows(filters, f.limit, func(r *client.WebhookDelivery) string { return r.ID },
		func(filters url.Values) (client.Page[client.WebhookDelivery], error) {
			return server.WebhookDeliveries(ctx, name, filters)
		})
	if err != nil {
		return cli.Answered(err)
	}
	slices.Reverse(rows)
	if f.json {
		return cli.PrintJSON(t.Out, append([]client.WebhookDelivery{}, rows...))
	}
	if more := total - len(rows); more > 0 {
		fmt.Fprintf(t.Err, "%d earlier ones are not listed: see --limit\n", more)
	}
	return writeDeliveries(t.Out, rows)
}

func writeDeliveries(out io.Writer, rows []client.WebhookDelivery) error {
	if len(rows) == 0 {
		_, err := io.WriteString(out, "no delivery\n")
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "WHEN\tEVENT\tOBJECT\tSTATE\tATTEMPTS\tID\tLAST ATTEMPT")
	for i := range rows {
		r := &rows[i]
		object, last := "-", "-"
		if r.Object != nil {
			object = client.Printable(*r.Object)
		}
		if n := len(r.Attempts); n > 0 {
			last = outcome(&r.Attempts[n-1].WebhookOutcome)
		}
		if r.NextAttemptAt != nil {
			last += "; again at " + said(*r.NextAttemptAt)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%s\t%s\n", said(r.CreatedAt), client.Printable(r.Event), object,
			client.Printable(r.State), len(r.Attempts), client.Printable(r.ID), last)
	}
	return w.Flush()
}

func newReplay(t cli.Terminal) *cobra.Command {
	var f flags
	var p period
	cmd := &cobra.Command{
		Use:   "replay NAME ID | NAME --from TIME",
		Short: "Send events again: a delivery, or what happened in a time",
		Long: "Sends again what the webhook wants now, next to what waits, with ids that end in .r and a number. The audit\n" +
			"trail has an entry of it. Only one replay of a webhook is at work at a time.",
		Example: "  fingerpost webhooks replay crm --from 3h --to 1h",
		Args:    cobra.MaximumNArgs(2),
		RunE: cli.Interruptible(func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cli.WantsNamed("NAME")(cmd, args)
			}
			from, to, bad := p.parse(time.Now())
			q := client.WebhookReplay{From: from, To: to}
			switch {
			case len(args) == 2 && (p.from != "" || p.to != ""):
				bad = append(bad, "ID is for one delivery, and --from and --to are for the events of a time: give one or the other")
			case len(args) == 2:
				q.ID = args[1]
			case p.from == "":
				bad = append(bad, "give the ID of a delivery, as \"fingerpost webhooks deliveries\" lists it, or --from")
			}
			server, err := f.connect(args[0], bad...)
			if err != nil {
				return err
			}
			count, err := server.ReplayWebhook(cmd.Context(), args[0], q)
			if err != nil {
				return cli.Answered(err)
			}
			if f.json {
				return cli.PrintJSON(t.Out, map[string]int{"count": count})
			}
			if count == 0 {
				fmt.Fprintln(t.Err, "no event of that time is for the webhook")
				return nil
			}
			fmt.Fprintf(t.Err, "sending %s again\n", catalog.Count(count, "event"))
			return nil
		}),
		ValidArgsFunction: cli.CompleteArgs(names, cli.Fixed()),
	}
	f.add(cmd)
	p.add(cmd, "events are sent again")
	return cmd
}

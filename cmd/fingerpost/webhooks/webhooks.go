package webhooks

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/url"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"fingerpost/api/client"
	"fingerpost/cmd/fingerpost/cli"
	"fingerpost/configsrc/offline"
	"fingerpost/resolver/catalog"
)

// New returns the command.
func New(t cli.Terminal) *cobra.Command {
	return cli.Group("webhooks", "Webhooks of a running server: who is told what changed, and what has become of it",
		"All need a key with write and secrets on every project. Webhooks stand in the files; a server writes them there,\n"+
			"with their secrets sealed.",
		newList(t), newAdd(t), newRemove(t), newRotate(t), newTest(t), newDeliveries(t), newResume(t), newReplay(t))
}

// flags are those of every command.
type flags struct {
	cli.ConnectFlags
	json bool
}

func (f *flags) add(cmd *cobra.Command) {
	f.Add(cmd, "write and see secrets of every project")
	f.Local(cmd)
	cmd.Flags().BoolVar(&f.json, "json", false, "print one JSON document on stdout")
}

// named makes the command for one webhook.
func named(use, short, long string, run func(cmd *cobra.Command, args []string) error) *cobra.Command {
	return &cobra.Command{Use: use, Short: short, Long: long, Args: cli.WantsNamed("NAME"),
		ValidArgsFunction: cli.CompleteArgs(names), RunE: cli.Interruptible(run)}
}

func names(checked *offline.Checked) (list []string) {
	for i := range checked.Files {
		for _, w := range checked.Files[i].Declared.Webhooks {
			list = append(list, w.Name)
		}
	}
	return list
}

// connect checks the name of a webhook, if there is one, and makes the client. problems are those of other flags.
func (f *flags) connect(name string, problems ...string) (*client.Client, error) {
	if msg := catalog.CheckSlug(name); name != "" && msg != "" {
		problems = append(problems, fmt.Sprintf("NAME %q %s", name, msg))
	}
	if err := cli.UsageAll(problems); err != nil {
		return nil, err
	}
	o, err := f.Options()
	o.NoMail, o.Once = true, true
	return client.New(o), err
}

func newList(t cli.Terminal) *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the webhooks, and how each does",
		Long: "Of an address only the host is shown: with some services, who has the address may post to it. --json has\n" +
			"all of it.",
		Args: cli.WantsCommand,
		RunE: cli.Interruptible(func(cmd *cobra.Command, _ []string) error {
			server, err := f.connect("")
			if err != nil {
				return err
			}
			list, err := server.Webhooks(cmd.Context())
			if err != nil {
				return cli.Answered(err)
			}
			if f.json {
				return cli.PrintJSON(t.Out, append([]client.Webhook{}, list...))
			}
			return writeList(t.Out, list)
		}),
	}
	f.add(cmd)
	return cmd
}

func writeList(out io.Writer, list []client.Webhook) error {
	if len(list) == 0 {
		_, err := io.WriteString(out, "no webhook\n")
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tHOST\tEVENTS\tPROJECTS\tSTATE\tWAITING\tLAST")
	for i := range list {
		h := &list[i]
		events, projects := cmp.Or(strings.Join(h.Events, ","), "all but mail.*"), "all"
		if h.Projects != nil {
			projects = cmp.Or(strings.Join(h.Projects, ","), "none")
		}
		state, waiting, last := stateOf(h)
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", h.Name, hostOf(h.URL), events, projects, state, waiting, last)
	}
	return w.Flush()
}

// stateOf returns how a webhook does, in words.
func stateOf(h *client.Webhook) (state, waiting, last string) {
	d := h.Delivery
	switch {
	case d == nil && !h.Active:
		return "inactive", "-", "-"
	case d == nil: // the server delivers nothing, or cannot tell now
		return "unknown", "-", "-"
	}
	state, waiting, last = d.State, "-", "never"
	if d.OffReason != nil {
		state += ": " + client.Printable(*d.OffReason)
	}
	if d.State != "inactive" {
		waiting = fmt.Sprint(d.Waiting)
		if d.Failing > 0 {
			waiting += fmt.Sprintf(" (%d failing)", d.Failing)
		}
	}
	if l := d.Last; l != nil {
		last = said(l.CreatedAt) + " " + l.State
	}
	return state, waiting, last
}

func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "?"
	}
	return client.Printable(u.Host)
}

// said writes a time of the API for people.
func said(moment string) string {
	at, err := catalog.ParseMoment(moment)
	if err != nil {
		return client.Printable(moment)
	}
	return catalog.SayMoment(at)
}

// addFlags are the flags of add.
type addFlags struct {
	flags
	events, projects []string
	inactive, stdin  bool
}

func newAdd(t cli.Terminal) *cobra.Command {
	var f addFlags
	cmd := &cobra.Command{
		Use:   "add NAME ADDRESS",
		Short: "Add a webhook, and print its secret, once",
		Long: "The server makes the secret, or takes the one of --secret-stdin, and writes it sealed. It is printed on\n" +
			"stdout, once: give it to the receiver, which verifies events with it (Standard Webhooks).",
		Example: "  fingerpost webhooks add crm https://hooks.crm.example/fingerpost --events 'domain.*,project.*'",
		Args:    cli.WantsNamed("NAME", "ADDRESS"),
		RunE: cli.Interruptible(func(cmd *cobra.Command, args []string) error {
			return f.run(cmd.Context(), t, args[0], args[1])
		}),
	}
	f.add(cmd)
	fl := cmd.Flags()
	fl.StringSliceVar(&f.events, "events", nil,
		"events that are sent, such as domain.update, domain.* or * (default everything but mail.*)")
	fl.StringSliceVar(&f.projects, "projects", nil,
		"slugs of the projects whose events are sent (default every project, and what belongs to none)")
	fl.BoolVar(&f.inactive, "inactive", false, "send nothing yet")
	fl.BoolVar(&f.stdin, "secret-stdin", false, "read the secret (whsec_…) from stdin, and print none")
	cli.CompleteFlag(cmd, "events", cli.Fixed(catalog.WebhookPatterns()...))
	cli.CompleteFlag(cmd, "projects", (*offline.Checked).Slugs)
	return cmd
}

func (f *addFlags) run(ctx context.Context, t cli.Terminal, name, address string) error {
	var bad []string
	if cli.NamesNothing(f.events) {
		bad = append(bad, "--events must name events; without it, everything but mail.* is sent")
	}
	if cli.NamesNothing(f.projects) {
		bad = append(bad, "--projects must name projects; without it, the events of every project are sent")
	}
	secret, err := f.secret(t.In)
	if err != nil {
		bad = append(bad, err.Error())
	}
	server, err := f.connect(name, bad...)
	if err != nil {
		return err
	}
	server.Hide(secret)
	made, err := server.CreateWebhook(ctx, &client.Webhook{Name: name, URL: address, Events: f.events,
		Projects: f.projects, Active: !f.inactive}, secret)
	if err != nil {
		return cli.Answered(err)
	}
	return f.print(t, &made, fmt.Sprintf("webhook %q is in the files now", name))
}

// maxSecret is more than any secret has, in bytes.
const maxSecret = 1 << 10

// secret reads the secret of --secret-stdin; the error never has it.
func (f *addFlags) secret(in io.Reader) (string, error) {
	if !f.stdin {
		return "", nil
	}
	text, err := io.ReadAll(io.LimitReader(in, maxSecret))
	if err != nil {
		return "", fmt.Errorf("--secret-stdin: %w", err)
	}
	secret := strings.TrimSpace(string(text))
	if msg := catalog.CheckWebhookSecret(secret); msg != "" {
		return "", fmt.Errorf("--secret-stdin: the secret %s", msg)
	}
	return secret, nil
}

// print prints a secret that the server has made, alone on stdout, and what was done on stderr.
func (f *flags) print(t cli.Terminal, made *client.WebhookSecret, done string) error {
	if f.json {
		return cli.PrintJSON(t.Out, made)
	}
	if made.Secret == "" {
		fmt.Fprintf(t.Err, "%s\n", done)
		return nil
	}
	fmt.Fprintf(t.Err, "%s. This is the secret; it cannot be shown again:\n", done)
	_, err := fmt.Fprintln(t.Out, made.Secret)
	return err
}

func newRemove(t cli.Terminal) *cobra.Command {
	var f flags
	cmd := named("remove NAME", "Remove a webhook from the files", "What waits for its receiver is not sent any more.",
		func(cmd *cobra.Command, args []string) error {
			server, err := f.connect(args[0])
			if err != nil {
				return err
			}
			if err := server.DeleteWebhook(cmd.Context(), args[0]); err != nil {
				return cli.Answered(err)
			}
			fmt.Fprintf(t.Err, "webhook %q is no longer in the files\n", args[0])
			return nil
		})
	f.Add(cmd, "write and see secrets of every project")
	f.Local(cmd)
	return cmd
}

func newRotate(t cli.Terminal) *cobra.Command {
	var f flags
	overlap := "24h"
	cmd := named("rotate NAME --overlap 24h", "Give a webhook a new secret, with the older ones good for a while",
		"Each event is signed with all secrets for the overlap, so the receiver can change to the new one without losing\n"+
			"any. Then the server takes the older ones out of the files. --overlap 0s ends them at once.",
		func(cmd *cobra.Command, args []string) error {
			var bad []string
			if _, err := catalog.ParseSpan(overlap); err != nil {
				bad = append(bad, fmt.Sprintf("--overlap: %v", err))
			}
			server, err := f.connect(args[0], bad...)
			if err != nil {
				return err
			}
			made, err := server.RotateWebhook(cmd.Context(), args[0], overlap)
			if err != nil {
				return cli.Answered(err)
			}
			done := fmt.Sprintf("webhook %q has a new secret, and the older ones are gone", args[0])
			if made.OverlapEndsAt != nil {
				done = fmt.Sprintf("webhook %q has a new secret; the older ones are good until %s", args[0],
					said(*made.OverlapEndsAt))
			}
			return f.print(t, &made, done)
		})
	f.add(cmd)
	cmd.Flags().StringVar(&overlap, "overlap", overlap, "time that the older secrets stay good, 720h at most")
	return cmd
}

// Package mailcare is the commands by which mail arrives, and none goes to those who do not want it.
//
// "fingerpost mail check" says what receivers find of the senders of projects, by a server or from the files, and what the
// server of a received test mail has found; the rules are those of package sender. "fingerpost suppressions" lists, adds,
// removes and imports the addresses to which a project does not send.
//
// What it needs. Suppressions are the server's, so a key that has read or write. Adding twice changes nothing, so a command
// that was cut off can be run again.
//
// What it does not do. It decides nothing about a mail.
package mailcare

import (
	"fmt"
	"io"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"fingerpost/api/client"
	"fingerpost/cmd/fingerpost/cli"
	"fingerpost/configsrc/offline"
	"fingerpost/mailer/sender"
	"fingerpost/resolver/catalog"
)

// NewMail returns the command "mail".
func NewMail(t cli.Terminal) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "mail",
		Short: "Whether receivers accept the mail of projects: SPF, DKIM and DMARC of their senders",
		Args:  cli.WantsCommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cmd.SetOut(t.Err)
			_ = cmd.Help()
			return cli.Usage("")
		},
	}
	cmd.AddCommand(newCheck(t))
	return cmd
}

// checkFlags are the flags of mail check.
type checkFlags struct {
	cli.ConnectFlags
	dns     cli.DNSFlags
	address string
	headers string
	json    bool
}

func newCheck(t cli.Terminal) *cobra.Command {
	var f checkFlags
	cmd := &cobra.Command{
		Use:   "check [PROJECT]",
		Short: "Check SPF, DKIM and DMARC of the address in From:, and print the records to set",
		Long: "Checks one project, or all that have an SMTP config. With --url, has a server check them, which also notes the\n" +
			"results. Without it, asks DNS from here, for the files, and changes nothing.\n" +
			"--headers reads a received test mail instead, and prints what the server that took it says of it, and whether\n" +
			"its DKIM signature covers the headers of one-click unsubscribe.\n" +
			"Exit code 1 when there is an error: receivers refuse the mail, or the received one has failed.",
		Example: "  fingerpost mail check acme\n  fingerpost mail check acme --address 203.0.113.9\n" +
			"  fingerpost mail check --headers received.eml",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: cli.CompleteArgs((*offline.Checked).Slugs),
		RunE: cli.Interruptible(func(cmd *cobra.Command, args []string) error {
			if f.headers != "" {
				return f.received(t, args)
			}
			return f.run(cmd, t, args)
		}),
	}
	f.Add(cmd, "write or mail for the projects")
	fl := cmd.Flags()
	fl.StringVar(&f.address, "address", "", "IP address from which the relay sends, which is checked, too")
	fl.StringVar(&f.headers, "headers", "", `file with a received mail or its headers; "-" for stdin`)
	fl.BoolVar(&f.json, "json", false, "print one JSON document on stdout")
	f.dns.Add(fl)
	return cmd
}

// A checked is the result of a project.
type checked struct {
	Project string `json:"project"`
	From    string `json:"from,omitempty"` // "": a server has not told
	catalog.SenderResult
}

func (f *checkFlags) run(cmd *cobra.Command, t cli.Terminal, args []string) error {
	var address netip.Addr
	if f.address != "" {
		var err error
		if address, err = netip.ParseAddr(f.address); err != nil || address.Zone() != "" {
			return cli.Usage("--address %q must be an IP address, such as 203.0.113.9", f.address)
		}
	}
	slug := ""
	if len(args) > 0 {
		slug = args[0]
	}
	check := f.fromFiles
	if f.URL != "" {
		check = f.byServer
	}
	all, err := check(cmd, slug, address)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		return cli.No("no project has an SMTP config with a sender")
	}
	return f.print(t, all, slug != "")
}

// print prints results, and returns what the exit code follows from.
func (f *checkFlags) print(t cli.Terminal, all []checked, one bool) (err error) {
	failed := false
	for i := range all {
		failed = failed || all[i].State == sender.Error
	}
	switch {
	case f.json && one:
		err = cli.PrintJSON(t.Out, all[0])
	case f.json:
		err = cli.PrintJSON(t.Out, all)
	default:
		for i := range all {
			c := &all[i]
			from := ""
			if c.From != "" {
				from = " (" + c.From + ")"
			}
			fmt.Fprintf(t.Out, "%s%s: %s\n", c.Project, from, c.State)
			writeLines(t.Out, c.Lines)
		}
	}
	if err == nil && failed {
		err = cli.ErrNot
	}
	return err
}

func writeLines(out io.Writer, lines []sender.Line) {
	for _, l := range lines {
		fmt.Fprintf(out, "  %-8s %-6s %s\n", client.Printable(l.Level), client.Printable(l.Check),
			client.Printable(l.Message))
		if l.Record != nil {
			fmt.Fprintf(out, "  %-15s set: %s\n", "", client.Printable(*l.Record))
		}
	}
}

// received prints what the server of a received mail says.
func (f *checkFlags) received(t cli.Terminal, args []string) error {
	if len(args) > 0 || f.URL != "" || f.address != "" {
		return cli.Usage("--headers stands alone: it reads a file, and asks nobody")
	}
	text, err := readHeaders(t, f.headers)
	if err != nil {
		return err
	}
	r := sender.ReadReceived(text)
	if f.json {
		err = cli.PrintJSON(t.Out, r)
	} else {
		writeReceived(t.Out, &r)
	}
	if err == nil && r.State == sender.Error {
		err = cli.ErrNot
	}
	return err
}

func writeReceived(out io.Writer, r *sender.Received) {
	if r.Server == "" {
		fmt.Fprintln(out, "the mail has no Authentication-Results above what its sender wrote: its server does not say "+
			"what it found")
	} else {
		fmt.Fprintf(out, "%s says: %s\n", r.Server, r.State)
		writeLines(out, r.Lines)
	}
	if len(r.Mail) > 0 {
		fmt.Fprintln(out, "its own headers:")
		writeLines(out, r.Mail)
	}
	if len(r.Others) > 0 {
		fmt.Fprintf(out, "not believed, because the sender may have written it: %s\n", strings.Join(r.Others, ", "))
	}
}

// maxHeaders is how much of a mail is read.
const maxHeaders = 1 << 20

func readHeaders(t cli.Terminal, name string) (string, error) {
	in := t.In
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return "", cli.No("read the mail: %v", err)
		}
		defer file.Close()
		in = file
	}
	text, err := io.ReadAll(io.LimitReader(in, maxHeaders))
	return string(text), err
}

// checkTime is how long the check of one project from here may take.
const checkTime = 20 * time.Second

// now is the time of a result.
func now() catalog.JSONMoment { return catalog.JSONMoment{Time: time.Now().UTC()} }

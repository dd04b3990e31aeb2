package logs

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"fingerpost/api/client"
	"fingerpost/cmd/fingerpost/cli"
	"fingerpost/resolver/catalog"
)

// mailFlags are the flags of logs.
type mailFlags struct {
	cli.RemoteFlags
	trailFlags
	status, template, to string
}

// NewMail returns the command logs.
func NewMail(t cli.Terminal) *cobra.Command {
	var f mailFlags
	cmd := &cobra.Command{
		Use:   "logs",
		Short: "Show the mail log of a running server",
		Long: "Prints the newest entries, the latest one last. With --follow it goes on: each new mail gets a line, and " +
			"so does each\n" +
			"step that a mail takes (an attempt, its end), until Ctrl-C.\n\n" +
			"With --json one array, or with --follow one object a line.",
		Args: cobra.NoArgs,
		RunE: cli.Interruptible(func(cmd *cobra.Command, _ []string) error {
			return logs(cmd.Context(), t, f)
		}),
	}
	f.ConnectFlags.Add(cmd, "read")
	f.AddMail(cmd)
	f.trailFlags.add(cmd, &f.ConnectFlags, "mail", "every project")
	fl := cmd.Flags()
	fl.StringVar(&f.status, "status", "", "state of the mails that are listed: "+strings.Join(mailStates, ", "))
	fl.StringVar(&f.template, "template", "", "code of the template that the listed mails were made from")
	fl.StringVar(&f.to, "to", "", "recipient of the mails that are listed")
	_ = cmd.RegisterFlagCompletionFunc("status", cobra.FixedCompletions(mailStates, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

var mailStates = []string{string(catalog.MailPending), string(catalog.MailSending), string(catalog.MailSent),
	string(catalog.MailRetrying), string(catalog.MailFailed), string(catalog.MailExpired),
	string(catalog.MailSuppressed)}

// check parses the flags that are not plain, and returns all problems at once.
func (f *mailFlags) check() error {
	var bad []string
	if f.status != "" && !slices.Contains(mailStates, f.status) {
		bad = append(bad, "--status must be one of "+strings.Join(mailStates, ", "))
	}
	return f.trailFlags.check(bad)
}

func logs(ctx context.Context, t cli.Terminal, f mailFlags) error {
	if err := f.check(); err != nil {
		return err
	}
	f.Parallel = client.MailTailParallel
	server, err := f.Connect()
	if err != nil {
		return err
	}
	mails := client.MailTail{Client: server, SkipGone: f.projects == nil,
		Query: client.LogQuery{Template: f.template, To: f.to, From: f.from()}}
	if !f.follow { // --follow looks at mails in all states
		mails.Query.Status = f.status
	}
	if err := f.findLogs(ctx, &mails); err != nil {
		return err
	}
	found := time.Now()
	log := tail[client.LoggedMail]{line: mailLine, passes: cli.Passing}
	log.newest = func(ctx context.Context, n int) ([]client.LoggedMail, error) {
		if f.projects == nil && !f.follow { // --follow has to know each project's newest entry
			if all, err := mails.NewestAcross(ctx, n); !client.Absent(err) {
				return f.only(all, err)
			}
		}
		return f.only(mails.Newest(ctx, n))
	}
	log.news = func(ctx context.Context) ([]client.LoggedMail, error) {
		news, err := f.only(mails.News(ctx))
		if err == nil && f.projects == nil && time.Since(found) > findEvery {
			err, found = f.findLogs(ctx, &mails), time.Now()
		}
		return news, err
	}
	return log.show(ctx, t.Out, t.Err, f.printing())
}

// findEvery is how often --follow looks for new projects.
const findEvery = 30 * time.Second

// findLogs adds the requested projects.
func (f *mailFlags) findLogs(ctx context.Context, mails *client.MailTail) error {
	if f.projects != nil {
		return f.find(ctx, mails.Client, mails.Add)
	}
	all, err := mails.Client.Projects(ctx)
	for i := range all {
		mails.Add(all[i].ID, all[i].Slug)
	}
	return err
}

// only returns the entries that have the state of --status. A project without a mail log is a wrong request.
func (f *mailFlags) only(entries []client.LoggedMail, err error) ([]client.LoggedMail, error) {
	if client.Status(err, http.StatusNotFound) {
		err = cli.No("%v", err)
	}
	other := func(e client.LoggedMail) bool { return f.status != "" && e.Status != f.status }
	return slices.DeleteFunc(entries, other), err
}

package mailcare

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"fingerpost/api/client"
	"fingerpost/cmd/fingerpost/cli"
	"fingerpost/configsrc/offline"
	"fingerpost/resolver/catalog"
)

// NewSuppressions returns the command "suppressions": to whom a project does not send.
func NewSuppressions(t cli.Terminal) *cobra.Command {
	return cli.Group("suppressions", "To whom a project of a running server does not send",
		"An address is listed as hard_bounce or complaint, which stops everything, as manual, or as unsubscribe, which\n"+
			"stops mail of a category.",
		newList(t), newAdd(t), newRemove(t), newImport(t))
}

// flags are those of every command.
type flags struct {
	cli.RemoteFlags
	project string
	json    bool
}

func (f *flags) add(cmd *cobra.Command, keyMay string) {
	f.ConnectFlags.Add(cmd, keyMay)
	f.AddMail(cmd)
	cmd.Flags().StringVar(&f.project, "project", "", "slug of the project whose list it is")
	cmd.Flags().BoolVar(&f.json, "json", false, "print one JSON document on stdout")
	cli.CompleteFlag(cmd, "project", (*offline.Checked).Slugs)
}

// connect makes the client and finds the project. problems are those of other flags.
func (f *flags) connect(ctx context.Context, problems ...string) (server *client.Client, project int64, err error) {
	if f.project == "" {
		problems = append(problems, "--project must name the project")
	} else if msg := catalog.CheckSlug(f.project); msg != "" {
		problems = append(problems, fmt.Sprintf("--project %q %s", f.project, msg))
	}
	if err := cli.UsageAll(problems); err != nil {
		return nil, 0, err
	}
	f.Parallel = 1
	if server, err = f.Connect(); err != nil {
		return nil, 0, err
	}
	p, err := server.ProjectBySlug(ctx, f.project)
	return server, p.ID, cli.Answered(err)
}

// A filter says which entries are meant.
type filter struct{ reason, category string }

func (f *filter) add(cmd *cobra.Command, what string) {
	cmd.Flags().StringVar(&f.reason, "reason", "", "reason of "+what+": "+strings.Join(catalog.SuppressionReasons, ", "))
	cmd.Flags().StringVar(&f.category, "category", "", "category of "+what+", such as newsletter")
	cli.CompleteFlag(cmd, "reason", cli.Fixed(catalog.SuppressionReasons...))
}

// check returns what is wrong with the flags. If it selects entries, NoCategory is right, too.
func (f *filter) check(selects bool) (bad []string) {
	if f.reason != "" && !slices.Contains(catalog.SuppressionReasons, f.reason) {
		bad = append(bad, "--reason must be one of "+strings.Join(catalog.SuppressionReasons, ", "))
	}
	none := f.category == "" || selects && f.category == catalog.NoCategory
	if msg := catalog.CheckCategory(f.category); !none && msg != "" {
		bad = append(bad, "--category "+msg)
	}
	return bad
}

// checkAddress returns what is wrong with the address of a command.
func checkAddress(address string) (bad []string) {
	if msg := catalog.CheckAddress(address); msg != "" {
		bad = append(bad, "ADDRESS "+msg)
	}
	return bad
}

func newList(t cli.Terminal) *cobra.Command {
	var f flags
	var only filter
	var text string
	limit := 20
	cmd := &cobra.Command{
		Use:     "list --project SLUG",
		Short:   "List the addresses to which a project does not send, and why",
		Example: "  fingerpost suppressions list --project acme --reason hard_bounce",
		Args:    cli.WantsCommand,
		RunE: cli.Interruptible(func(cmd *cobra.Command, _ []string) error {
			bad := only.check(true)
			if limit < 1 {
				bad = append(bad, "--limit must be at least 1")
			}
			server, project, err := f.connect(cmd.Context(), bad...)
			if err != nil {
				return err
			}
			filters := url.Values{"reason": {only.reason}, "category": {only.category}, "q": {text}}
			rows, total, err := cli.FirstRows(filters, limit, identity,
				func(filters url.Values) (client.Page[client.Suppression], error) {
					return server.Suppressions(cmd.Context(), project, filters)
				})
			if err != nil {
				return cli.Answered(err)
			}
			if f.json {
				return cli.PrintJSON(t.Out, append([]client.Suppression{}, rows...))
			}
			if more := total - len(rows); more > 0 {
				fmt.Fprintf(t.Err, "%d more are not listed: see --limit\n", more)
			}
			return write(t.Out, rows)
		}),
	}
	f.add(cmd, "read")
	only.add(cmd, "the entries that are listed")
	cmd.Flags().StringVar(&text, "search", "", "part of the addresses that are listed")
	cmd.Flags().IntVar(&limit, "limit", limit, "number of entries that are listed at most")
	return cmd
}

// identity tells entries of a list apart.
func identity(r *client.Suppression) string {
	return r.Reason + " " + shown(r.Category) + " " + r.Address
}

func write(out io.Writer, rows []client.Suppression) error {
	if len(rows) == 0 {
		_, err := io.WriteString(out, "no address\n")
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ADDRESS\tREASON\tCATEGORY\tSINCE\tBY\tNOTE")
	for i := range rows {
		r := &rows[i]
		since := client.Printable(r.CreatedAt)
		if at, err := catalog.ParseMoment(r.CreatedAt); err == nil {
			since = catalog.SayMoment(at)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", client.Printable(r.Address), client.Printable(r.Reason), shown(r.Category),
			since, shown(r.By), shown(r.Note))
	}
	return w.Flush()
}

// entries counts entries in words.
func entries(n int) string {
	if n == 1 {
		return "1 entry"
	}
	return strconv.Itoa(n) + " entries"
}

func shown(text *string) string {
	if text == nil {
		return "-"
	}
	return client.Printable(*text)
}

func newAdd(t cli.Terminal) *cobra.Command {
	var f flags
	var of filter
	var note string
	cmd := &cobra.Command{
		Use:   "add ADDRESS --project SLUG",
		Short: "Stop mail to an address",
		Long: "The reason is manual unless --reason names another one. With --category only mail of that category is stopped.\n" +
			"An entry that is there stays as it is.",
		Example: "  fingerpost suppressions add ada@example.com --project acme --note 'asked by phone'",
		Args:    cli.WantsNamed("ADDRESS"),
		RunE: cli.Interruptible(func(cmd *cobra.Command, args []string) error {
			server, project, err := f.connect(cmd.Context(), append(checkAddress(args[0]), of.check(false)...)...)
			if err != nil {
				return err
			}
			is, err := server.Suppress(cmd.Context(), project, client.NewSuppression{Address: args[0], Reason: of.reason,
				Category: of.category, Note: note})
			if err != nil {
				return cli.Answered(err)
			}
			if f.json {
				return cli.PrintJSON(t.Out, is)
			}
			fmt.Fprintf(t.Err, "%s is on the list of %s, as %s\n", client.Printable(is.Address), f.project,
				client.Printable(is.Reason))
			return nil
		}),
	}
	f.add(cmd, "write")
	of.add(cmd, "the entry")
	cmd.Flags().StringVar(&note, "note", "", "text for people who read the list")
	return cmd
}

func newRemove(t cli.Terminal) *cobra.Command {
	var f flags
	var of filter
	cmd := &cobra.Command{
		Use:   "remove ADDRESS --project SLUG",
		Short: "Let an address get mail again",
		Long: "All entries of the address are removed, or with --reason and --category some; --category - are those without a\n" +
			"category. Exit code 1 if there is none. Think twice about a complaint or an unsubscribe: it was the\n" +
			"recipient's wish.",
		Args: cli.WantsNamed("ADDRESS"),
		RunE: cli.Interruptible(func(cmd *cobra.Command, args []string) error {
			server, project, err := f.connect(cmd.Context(), append(checkAddress(args[0]), of.check(true)...)...)
			if err != nil {
				return err
			}
			n, err := server.Release(cmd.Context(), project, args[0], of.reason, of.category)
			if err != nil {
				return cli.Answered(err)
			}
			if f.json {
				return cli.PrintJSON(t.Out, map[string]int{"removed": n})
			}
			fmt.Fprintf(t.Err, "%s of %s removed from the list of %s\n", entries(n), client.Printable(args[0]), f.project)
			return nil
		}),
	}
	f.add(cmd, "write")
	of.add(cmd, "the entries that are removed")
	return cmd
}

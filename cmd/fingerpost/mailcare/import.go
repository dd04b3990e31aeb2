package mailcare

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"fingerpost/api/client"
	"fingerpost/cmd/fingerpost/cli"
	"fingerpost/resolver/catalog"
)

// columns are those that a table may have. Others are ignored: exports of mail services have many.
var columns = []string{"address", "reason", "category", "note"}

// maxShownProblems bounds the problems of a table that are printed.
const maxShownProblems = 20

func newImport(t cli.Terminal) *cobra.Command {
	var f flags
	var file, reason string
	cmd := &cobra.Command{
		Use:   "import --project SLUG --csv FILE",
		Short: "Add a table of addresses to the list of a project",
		Long: "The first line names the columns: address (or email), and where they are there reason, category and note. All lines\n" +
			"are checked before the first one is sent. They are sent by the thousand; what the list has stays as it is, so a\n" +
			"command that was cut off can be run again.",
		Example: "  fingerpost suppressions import --project acme --csv bounces.csv --reason hard_bounce",
		Args:    cli.WantsCommand,
		RunE: cli.Interruptible(func(cmd *cobra.Command, _ []string) error {
			var bad []string
			if file == "" {
				bad = append(bad, "--csv must name a file, or - for standard input")
			}
			if !slices.Contains(catalog.SuppressionReasons, reason) {
				bad = append(bad, "--reason must be one of "+strings.Join(catalog.SuppressionReasons, ", "))
			}
			if err := cli.UsageAll(bad); err != nil {
				return err
			}
			list, err := readFile(file, t.In, reason)
			if err != nil {
				return err
			}
			server, project, err := f.connect(cmd.Context())
			if err != nil {
				return err
			}
			return f.send(cmd.Context(), t, server, project, list)
		}),
	}
	f.add(cmd, "write")
	cmd.Flags().StringVar(&file, "csv", "", "file with the table; - is standard input")
	cmd.Flags().StringVar(&reason, "reason", string(catalog.SuppressManual),
		"reason of lines without one: "+strings.Join(catalog.SuppressionReasons, ", "))
	cli.CompleteFlag(cmd, "reason", cli.Fixed(catalog.SuppressionReasons...))
	return cmd
}

func readFile(name string, stdin io.Reader, reason string) ([]client.NewSuppression, error) {
	in := stdin
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer file.Close() // it was only read
		in = file
	}
	return readTable(in, reason)
}

// readTable reads the lines of a table. The error has all problems, with their lines.
func readTable(in io.Reader, reason string) (list []client.NewSuppression, err error) {
	r := csv.NewReader(in)
	r.FieldsPerRecord, r.ReuseRecord, r.TrimLeadingSpace = -1, true, true
	head, err := r.Read()
	if err != nil {
		return nil, cli.No("the table has no first line that names its columns")
	}
	at := map[string]int{}
	for i, name := range head {
		name = strings.ToLower(strings.TrimSpace(strings.TrimPrefix(name, "\uFEFF")))
		if name == "email" {
			name = "address"
		}
		if _, twice := at[name]; slices.Contains(columns, name) && !twice {
			at[name] = i
		}
	}
	if _, named := at["address"]; !named {
		return nil, cli.No("no column of the table is called address or email; it has %s",
			client.Printable(strings.Join(head, ", ")))
	}
	var bad []string
	for {
		row, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, cli.No("read the table: %v", err)
		}
		cell := func(name string) string {
			if i, named := at[name]; named && i < len(row) {
				return strings.Clone(strings.TrimSpace(row[i]))
			}
			return ""
		}
		line, _ := r.FieldPos(0)
		s := client.NewSuppression{Address: cell("address"), Reason: cell("reason"), Category: cell("category"),
			Note: cell("note")}
		if s.Reason == "" {
			s.Reason = reason
		}
		checked := catalog.Suppression{Address: s.Address, Reason: catalog.SuppressionReason(s.Reason), Category: s.Category,
			Note: s.Note}
		for _, p := range checked.Validate() {
			bad = append(bad, fmt.Sprintf("line %d: %s %s", line, p.Path, p.Message))
		}
		list = append(list, s)
	}
	if len(bad) > 0 {
		if more := len(bad) - maxShownProblems; more > 0 {
			bad = append(bad[:maxShownProblems], fmt.Sprintf("and %s", catalog.Count(more, "more problem")))
		}
		return nil, cli.No("nothing was sent:\n%s", strings.Join(bad, "\n"))
	}
	return list, nil
}

// send adds all entries to the list of a project.
func (f *flags) send(ctx context.Context, t cli.Terminal, server *client.Client, project int64,
	list []client.NewSuppression) error {
	var sum client.SuppressionsAdded
	progress := t.Progress("addresses sent")
	defer progress.End()
	done := 0
	for part := range slices.Chunk(list, catalog.MaxSuppressionsAtOnce) {
		n, err := server.SuppressAll(ctx, project, part)
		if err != nil {
			return fmt.Errorf("%w (%d of %d were sent; run the command again for the rest)", cli.Answered(err), done, len(list))
		}
		sum.Added, sum.Present = sum.Added+n.Added, sum.Present+n.Present
		done += len(part)
		progress.Set(done, len(list))
	}
	if f.json {
		return cli.PrintJSON(t.Out, sum)
	}
	fmt.Fprintf(t.Err, "%s added to the list of %s, %d were there\n", entries(sum.Added), f.project,
		sum.Present)
	return nil
}

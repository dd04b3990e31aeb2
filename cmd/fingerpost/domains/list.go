package domains

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"fingerpost/api/client"
	"fingerpost/cmd/fingerpost/cli"
	"fingerpost/configsrc/verify/dcv"
	"fingerpost/resolver/catalog"
	"fingerpost/resolver/datadir"
	"fingerpost/resolver/records"
	"fingerpost/resolver/rowjson"
)

// listFlags are the flags of domains list.
type listFlags struct {
	cli.ConnectFlags
	data                                    string
	ownership, pointing, certificate, ready string
	json                                    bool
}

// The states that domains list selects by.
var (
	ownershipStates   = []string{dcv.Trusted, dcv.Pending, dcv.Proven, dcv.Failing, dcv.Lost}
	pointingStates    = []string{dcv.Here, dcv.Elsewhere, dcv.Nowhere, dcv.Spreading, dcv.Unknown}
	certificateStates = []string{dcv.Good, dcv.Expiring, dcv.Wrong, dcv.NoCertificate, dcv.Unknown}
	readyStates       = []string{"true", "false"}
)

func newList(t cli.Terminal) *cobra.Command {
	var f listFlags
	cmd := &cobra.Command{
		Use:   "list [--url URL --key KEY | --data DIR]",
		Short: "The domains in a state, such as --ownership failing",
		Long: "Lists the domains of a running server, or with --data those of the store of a server that does not run. Flags select\n" +
			"by state; a domain must match all of them. An empty list is no error.",
		Example: "  fingerpost domains list --ownership failing",
		Args:    cli.WantsCommand,
		RunE: cli.Interruptible(func(cmd *cobra.Command, _ []string) error {
			if !cli.Given(cmd, "data") {
				f.data = "" // the variable is that of serve, whose store is open while it runs
			}
			return f.run(cmd.Context(), t)
		}),
	}
	f.ConnectFlags.Add(cmd, "read")
	f.Local(cmd)
	fl := cmd.Flags()
	fl.StringVar(&f.data, "data", "", "folder of the store of a server that does not run")
	for _, by := range f.states() {
		fl.StringVar(by.value, by.name, "", by.help+": "+strings.Join(by.states, ", "))
		_ = cmd.RegisterFlagCompletionFunc(by.name, cobra.FixedCompletions(by.states, cobra.ShellCompDirectiveNoFileComp))
	}
	fl.BoolVar(&f.json, "json", false, "print one JSON document on stdout")
	return cmd
}

// A stateFlag is a flag that selects domains by a state.
type stateFlag struct {
	name, help string
	value      *string
	states     []string
}

func (f *listFlags) states() []stateFlag {
	return []stateFlag{
		{"ownership", "state of the proof", &f.ownership, ownershipStates},
		{"pointing", "place where the domain leads", &f.pointing, pointingStates},
		{"certificate", "state of the certificate", &f.certificate, certificateStates},
		{"ready", "readiness of the domain", &f.ready, readyStates},
	}
}

func (f *listFlags) run(ctx context.Context, t cli.Terminal) error {
	var bad []string
	for _, by := range f.states() {
		if *by.value != "" && !slices.Contains(by.states, *by.value) {
			bad = append(bad, fmt.Sprintf("--%s must be one of %s", by.name, strings.Join(by.states, ", ")))
		}
	}
	if err := cli.UsageAll(bad); err != nil {
		return err
	}
	if f.data != "" {
		return f.listStored(t)
	}
	o, err := f.Options()
	if err != nil {
		return err
	}
	return f.listServer(ctx, t, client.New(o))
}

// listServer lists the domains of a server.
func (f *listFlags) listServer(ctx context.Context, t cli.Terminal, server *client.Client) error {
	filters := url.Values{"limit": {"100"}}
	for _, by := range f.states() {
		filters.Set(by.name, *by.value)
	}
	var rows []json.RawMessage
	for n := 1; ; n++ {
		filters.Set("page", strconv.Itoa(n))
		page, err := server.DomainRows(ctx, filters)
		if err != nil {
			return err
		}
		rows = append(rows, page.Rows...)
		if n >= page.Pages || len(page.Rows) == 0 {
			break
		}
	}
	slugs := map[int64]string{}
	return printDomains(t.Out, f.json, rows, func(id int64) string {
		if _, known := slugs[id]; !known {
			p, err := server.ProjectByID(ctx, id)
			if slugs[id] = p.Slug; err != nil {
				slugs[id] = strconv.FormatInt(id, 10) // it is gone by now
			}
		}
		return slugs[id]
	})
}

// listStored lists the domains of the store of a server that does not run, by what its ledger has of their checks.
func (f *listFlags) listStored(t cli.Terminal) error {
	s, err := datadir.OpenStored(f.data, slog.New(slog.DiscardHandler))
	if err != nil {
		return fmt.Errorf("%w (--data reads the store of a server that does not run; ask one that runs by --url)", err)
	}
	defer s.Close()
	states := map[dcv.Subject]dcv.State{}
	err = datadir.DomainNotes(f.data, func(n records.DomainNote) error {
		if st, err := dcv.DecodeState(n.Note); err == nil { // else it counts as never checked
			states[dcv.Subject{Project: n.Project, Name: n.Domain}] = st
		}
		return nil
	})
	if err != nil && !errors.Is(err, datadir.ErrNoStore) {
		return fmt.Errorf("read the checks of domains in %s: %w", f.data, err)
	}
	defaults, err := s.Defaults()
	if err != nil {
		return err
	}
	policy := dcv.Policy{}
	if defaults != nil {
		policy = dcv.PolicyOf(defaults.Verification)
	}
	projects, err := s.Projects()
	if err != nil {
		return err
	}
	var found []*catalog.Domain
	slugs := map[int64]string{}
	for i := range projects {
		slugs[projects[i].ID] = projects[i].Slug
		p, err := s.Project(projects[i].ID)
		if err != nil {
			return err
		}
		for j := range p.Domains {
			of := subjectOf(&projects[i], &p.Domains[j])
			v := dcv.Show(of, states[dcv.Subject{Project: of.Project, Name: of.Name}], policy)
			if f.selects(&v) {
				found = append(found, &p.Domains[j])
			}
		}
	}
	slices.SortFunc(found, func(a, b *catalog.Domain) int { return cmp.Compare(a.ID, b.ID) })
	var rows []json.RawMessage
	for _, d := range found {
		rows = append(rows, rowjson.AppendDomain(nil, d))
	}
	return printDomains(t.Out, f.json, rows, func(id int64) string { return slugs[id] })
}

func (f *listFlags) selects(v *catalog.VerificationView) bool {
	for want, is := range map[*string]string{&f.ownership: v.Ownership.State, &f.pointing: v.Pointing.State,
		&f.certificate: v.Certificate.State, &f.ready: strconv.FormatBool(v.Ready)} {
		if *want != "" && *want != is {
			return false
		}
	}
	return true
}

// printDomains prints rows as the API has them, or for people.
func printDomains(out io.Writer, asJSON bool, rows []json.RawMessage, slug func(project int64) string) error {
	if asJSON {
		return cli.PrintJSON(out, append([]json.RawMessage{}, rows...))
	}
	if len(rows) == 0 {
		_, err := io.WriteString(out, "no domain\n")
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "DOMAIN\tPROJECT\tCHANGED")
	for _, row := range rows {
		var d struct {
			Domain, UpdatedAt string
			ProjectID         int64
		}
		if err := json.Unmarshal(row, &d); err != nil {
			return fmt.Errorf("read the list of domains: %w", err)
		}
		changed, _, _ := strings.Cut(strings.Replace(d.UpdatedAt, "T", " ", 1), ".")
		fmt.Fprintf(w, "%s\t%s\t%s UTC\n", d.Domain, slug(d.ProjectID), changed)
	}
	return w.Flush()
}

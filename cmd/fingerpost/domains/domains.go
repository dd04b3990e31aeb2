package domains

import (
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"fingerpost/api/client"
	"fingerpost/cmd/fingerpost/cli"
	"fingerpost/configsrc/offline"
	"fingerpost/configsrc/verify/dcv"
	"fingerpost/resolver/catalog"
	"fingerpost/resolver/hostname"
)

// New returns the command.
func New(t cli.Terminal) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "domains",
		Short: "Customers' domains: the records to set, what name servers say, and which need a person",
		Args:  cli.WantsCommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cmd.SetOut(t.Err)
			_ = cmd.Help()
			return cli.Usage("")
		},
	}
	cmd.AddCommand(newRecords(t), newCheck(t), newList(t))
	return cmd
}

func newRecords(t cli.Terminal) *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:   "records NAME",
		Short: "The DNS records that prove a domain and make it point here",
		Long: "Prints the records that prove that a domain of the files is the customer's, of which one is enough, and those that\n" +
			"make it point here. Nobody is asked: the records follow from the files. Wildcards are named as in the files,\n" +
			"*.NAME.",
		Args:              cli.WantsNamed("NAME"),
		ValidArgsFunction: cli.CompleteArgs(everyDomain),
		RunE: func(cmd *cobra.Command, args []string) error {
			d, err := declaredDomain(cli.ConfigDir(cmd), args[0])
			if err != nil {
				return err
			}
			records := dcv.Records(d.subject, d.policy, dcv.Facts{})
			if asJSON {
				return cli.PrintJSON(t.Out, records)
			}
			v := catalog.VerificationView{Records: records}
			return writeRecords(t.Out, &v, !dcv.NeedsProof(d.subject, d.policy))
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document on stdout")
	return cmd
}

// everyDomain lists all domains, wildcards among them.
func everyDomain(checked *offline.Checked) (names []string) {
	for _, p := range checked.Projects() {
		for i := range p.Domains {
			names = append(names, p.Domains[i].Name)
		}
	}
	return names
}

// A declared is a domain of the files, with the rules that they have for it.
type declared struct {
	subject dcv.Subject
	policy  dcv.Policy
}

// declaredDomain finds a domain in the files.
func declaredDomain(dir, text string) (found declared, err error) {
	name, err := parseDomain(text)
	if err != nil {
		return found, err
	}
	checked, err := offline.Check(dir)
	if err != nil {
		return found, err
	}
	for i := range checked.Files {
		if d := checked.Files[i].Declared.Defaults; d != nil {
			found.policy = dcv.PolicyOf(d.Verification)
		}
	}
	for _, p := range checked.Projects() {
		for i := range p.Domains {
			if p.Domains[i].Name == name {
				found.subject = subjectOf(&p.Project, &p.Domains[i])
				return found, nil
			}
		}
	}
	return found, cli.No("no file in %s declares the domain %s", dir, name)
}

func parseDomain(text string) (name string, err error) {
	if name, err = hostname.ParseDomain(text); err != nil {
		return "", cli.Usage("the domain %v", err)
	}
	return name, nil
}

func subjectOf(p *catalog.Project, d *catalog.Domain) dcv.Subject {
	s := dcv.Subject{Project: p.UUID, Name: d.Name}
	if d.Verified != nil {
		s.Verified = *d.Verified
	}
	return s
}

// A domainLine is the name of a domain with what is known of it.
type domainLine struct {
	name string
	view *catalog.VerificationView
}

// write writes it for people: a line for each state, the records, hints last.
func (l domainLine) write(out io.Writer) error {
	v, word := l.view, "not ready"
	if v.Ready {
		word = "ready"
	}
	o, p, c := &v.Ownership, &v.Pointing, &v.Certificate
	spreading := ""
	if o.Spreading {
		spreading = "; name servers disagree"
	}
	fmt.Fprintf(out, "%s is %s\n\n", l.name, word)
	axis := func(name, state, text string) { fmt.Fprintf(out, "  %-12s %-10s %s\n", name, state, text) }
	axis("ownership", o.State, ownershipWords[o.State]+since(o.Since)+spreading)
	axis("pointing", p.State, pointingWords[p.State]+listed(p.Addresses)+since(p.Since))
	axis("certificate", c.State, certificateWords[c.State]+issued(c)+since(c.Since))
	fmt.Fprintf(out, "\n  last check   %s\n", moment(v.CheckedAt, "never"))
	if v.NextCheckAt != nil {
		fmt.Fprintf(out, "  next check   %s\n", moment(v.NextCheckAt, ""))
	}
	if err := writeRecords(out, v, o.State == dcv.Trusted); err != nil {
		return err
	}
	for i, h := range v.Hints {
		if i == 0 {
			fmt.Fprint(out, "\nHints\n")
		}
		fmt.Fprintf(out, "  %s: %s\n", h.Code, h.Message)
		if h.Line != "" {
			fmt.Fprintf(out, "    %s\n", h.Line)
		}
	}
	return nil
}

// What each state means for the customer.
var (
	ownershipWords = map[string]string{
		dcv.Trusted: "no proof is needed",
		dcv.Pending: "not proven yet, so it is not answered",
		dcv.Proven:  "the proof is there",
		dcv.Failing: "the proof is gone; it is answered for now",
		dcv.Lost:    "the proof has been gone for too long",
	}
	pointingWords = map[string]string{
		dcv.Here:      "it leads here",
		dcv.Elsewhere: "it leads to another place",
		dcv.Nowhere:   "it has no address",
		dcv.Spreading: "name servers disagree",
		dcv.Unknown:   "not known yet",
	}
	certificateWords = map[string]string{
		dcv.Good:          "it works",
		dcv.Expiring:      "it ends within 14 days",
		dcv.Wrong:         "browsers refuse it",
		dcv.NoCertificate: "there is none",
		dcv.Unknown:       "not known yet",
	}
)

func since(t *catalog.JSONMoment) string {
	if t == nil {
		return ""
	}
	return ", since " + moment(t, "")
}

func moment(t *catalog.JSONMoment, never string) string {
	if t == nil {
		return never
	}
	return catalog.SayMoment(t.Time)
}

func listed(addresses []string) string {
	if len(addresses) == 0 {
		return ""
	}
	return ": " + strings.Join(addresses, ", ")
}

func issued(c *catalog.CertificateView) (text string) {
	if c.Issuer != nil {
		text = ", from " + *c.Issuer
	}
	if c.ExpiresAt != nil {
		text += ", ends " + moment(c.ExpiresAt, "")
	}
	return text
}

// writeRecords writes the records to set, as tables to copy from, and then what servers say about them. trusted is whether
// the domain needs no proof.
func writeRecords(out io.Writer, v *catalog.VerificationView, trusted bool) error {
	aliased := slices.ContainsFunc(v.Records, func(r catalog.RecordView) bool {
		return r.Purpose == "ownership" && r.Type == "CNAME"
	})
	for _, purpose := range []string{"ownership", "pointing"} {
		w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
		title := recordTitles[purpose]
		if trusted && purpose == "ownership" {
			title = "No proof is needed. One of these records would give it"
		}
		for i := range v.Records {
			r := &v.Records[i]
			if r.Purpose != purpose {
				continue
			}
			if title != "" {
				if purpose == "pointing" && r.Type == "CNAME" && aliased {
					title += ", unless the CNAME above is set" // a name has one
				}
				fmt.Fprintf(out, "\n%s\n", title)
				fmt.Fprintln(w, "\tTYPE\tNAME\tVALUE")
				title = ""
			}
			or := ""
			if r.Alternative {
				or = "or"
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", or, r.Type, r.Name, r.Value)
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
	title := "\nWhat name servers say\n"
	for i := range v.Records {
		r := &v.Records[i]
		for j := range r.Found {
			fmt.Fprintf(out, "%s  %s %s: %s\n", title, r.Type, r.Name, foundText(&r.Found[j]))
			title = ""
		}
	}
	return nil
}

var recordTitles = map[string]string{
	"ownership": "Set one of these records to prove that the domain is yours",
	"pointing":  "Set these records to let it lead here",
}

// foundText is what a server says about a record, in words.
func foundText(f *catalog.FoundView) string {
	switch {
	case f.Error != nil && f.Server == "":
		return "no server was found: " + *f.Error
	case f.Error != nil:
		return f.Server + " has no answer: " + *f.Error
	case len(f.Values) == 0:
		return f.Server + " has no such record"
	}
	return f.Server + " has " + strings.Join(f.Values, ", ")
}

// domainOnServer finds a domain on a server.
func domainOnServer(c *cobra.Command, server *client.Client, text string) (*catalog.Domain, error) {
	name, err := parseDomain(text)
	if err != nil {
		return nil, err
	}
	// Names that begin with it come first.
	page, err := server.DomainPage(c.Context(), url.Values{"q": {name}, "limit": {"100"}})
	if err != nil {
		return nil, err
	}
	for i := range page.Rows {
		if page.Rows[i].Name == name {
			return &page.Rows[i], nil
		}
	}
	return nil, cli.No("%s has no domain %s that the key covers", server.URL(), name)
}

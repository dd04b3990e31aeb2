package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"fingerpost/cmd/fingerpost/cli"
	"fingerpost/configsrc/atomicfile"
	"fingerpost/configsrc/hcledit"
	"fingerpost/configsrc/offline"
	"fingerpost/configsrc/seal"
	"fingerpost/resolver/catalog"
)

// sealingFile is the file of a new sealing block.
const sealingFile = "sealing.hcl"

func newSecrets(t cli.Terminal) *cobra.Command {
	var keyFile string
	var of sealOwner
	sealing := &cobra.Command{
		Use:   "seal PROJECT FIELD",
		Short: "Seal a value from stdin, or asked for, and print the expression for the file",
		Long: "FIELD is jwt_secret, password or oauth_client_secret. The sealed value works in that field of that project " +
			"only; with --defaults,\n" +
			"which takes no PROJECT, it is a secret of the smtp_config in the defaults block. --webhook NAME, --login NAME and\n" +
			"--inbound NAME stand alone, and seal a secret of that webhook or inbound block, or the client_secret of that login.\n" +
			"It is never taken from an argument: those show in process lists and shell histories.",
		Example: "  fingerpost secrets seal acme jwt_secret\n  fingerpost secrets seal --defaults password\n" +
			"  fingerpost secrets seal --webhook crm\n  fingerpost secrets seal --login company\n" +
			"  fingerpost secrets seal --inbound ses",
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case of.many():
				return cli.Usage("--webhook, --login, --inbound and --defaults: give one of them")
			case of.webhook+of.login+of.inbound != "":
				return cobra.NoArgs(cmd, args)
			case of.defaults:
				return cli.WantsNamed("FIELD")(cmd, args)
			}
			return cli.WantsNamed("PROJECT", "FIELD")(cmd, args)
		},
		ValidArgsFunction: cli.CompleteArgs((*offline.Checked).Slugs, cli.Fixed(seal.Attributes()...), cli.Fixed()),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch dir := cli.ConfigDir(cmd); {
			case of.webhook != "":
				return sealWebhook(t, dir, of.webhook)
			case of.login != "":
				return sealLogin(t, dir, of.login)
			case of.inbound != "":
				return sealInbound(t, dir, of.inbound)
			case of.defaults:
				return sealRelay(t, dir, args[0])
			default:
				return sealValue(t, dir, args[0], args[1])
			}
		},
	}
	sealing.Flags().BoolVar(&of.defaults, "defaults", false, "seal a secret of the smtp_config in the defaults block")
	sealing.Flags().StringVar(&of.webhook, "webhook", "", "seal a secret of the webhook with this name")
	sealing.Flags().StringVar(&of.login, "login", "", "seal the client_secret of the login with this name")
	sealing.Flags().StringVar(&of.inbound, "inbound", "", "seal a secret of the inbound block with this name")
	cmd := cli.Group("secrets", "Seal secrets, so that they can stand in the files", "",
		&cobra.Command{
			Use:   "keygen",
			Short: "Make an identity that opens sealed values, and add its recipient to the files",
			Args:  cobra.NoArgs,
			RunE:  func(cmd *cobra.Command, _ []string) error { return sealKeygen(t, cli.ConfigDir(cmd), keyFile) },
		},
		sealing,
		&cobra.Command{
			Use:   "reseal",
			Short: "Encrypt all sealed values anew, for the recipients that the files name now",
			Args:  cobra.NoArgs,
			RunE:  func(cmd *cobra.Command, _ []string) error { return reseal(t, cli.ConfigDir(cmd), keyFile) },
		})
	cmd.PersistentFlags().StringVar(&keyFile, "seal-key", defaultSealKey(), "file with the age identity")
	return cmd
}

// A sealOwner says whose secret is sealed, if it is not a project's.
type sealOwner struct {
	defaults                bool
	webhook, login, inbound string
}

// many reports whether more than one owner is given.
func (o sealOwner) many() bool {
	n := 0
	for _, given := range []bool{o.defaults, o.webhook != "", o.login != "", o.inbound != ""} {
		if given {
			n++
		}
	}
	return n > 1
}

// defaultSealKey is seal.key in the user's config folder.
func defaultSealKey() string {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "seal.key"
	}
	return filepath.Join(dir, "fingerpost", "seal.key")
}

func sealKeygen(t cli.Terminal, dir, keyFile string) error {
	checked, err := offline.Check(dir)
	if err != nil {
		return err
	}
	recipient, err := seal.Keygen(keyFile)
	if errors.Is(err, fs.ErrExist) {
		return cli.No("%s exists and is not overwritten: what it sealed could not be opened any more; name another file "+
			"with --seal-key", keyFile)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(t.Err, "%s holds the identity: keep a copy in a safe place, and never in git\n", keyFile)
	where, err := addRecipient(dir, checked, recipient)
	if err != nil {
		return fmt.Errorf("add the recipient %s to sealing in the files: %w", recipient, err)
	}
	fmt.Fprintf(t.Err, "%s names its recipient:\n", where)
	_, err = fmt.Fprintln(t.Out, recipient)
	return err
}

// addRecipient adds a recipient to the sealing block, or creates the block.
func addRecipient(dir string, checked *offline.Checked, recipient string) (where string, err error) {
	for _, f := range checked.Files {
		if f.Declared.Sealing == nil {
			continue
		}
		list := hcledit.QuoteList(append(f.Declared.Sealing.Recipients, recipient))
		return f.Display, atomicfile.Edit(dir, f.Path, func(src []byte) ([]byte, error) {
			return hcledit.SetAttribute(src, hcledit.BlockPath{"sealing"}, "recipients", list)
		})
	}
	block := "# Who can open sealed values; a service opens them with --seal-key.\nsealing {\n  recipients = " +
		hcledit.QuoteList([]string{recipient}) + "\n}\n"
	return filepath.Join(dir, sealingFile), addBlock(dir, sealingFile, block)
}

func sealValue(t cli.Terminal, dir, slug, field string) error {
	i := slices.IndexFunc(seal.Fields, func(f seal.Field) bool { return field == f.Attr || field == f.Block+"."+f.Attr })
	if i < 0 {
		return cli.Usage("FIELD must be one of %s", strings.Join(seal.Attributes(), ", "))
	}
	at := seal.Fields[i]
	checked, recipients, err := recipientsIn(dir)
	if err != nil {
		return err
	}
	_, p := checked.Project(slug)
	if p == nil {
		return cli.No("there is no project %q in the good files of %s", slug, dir)
	}
	return printSealed(t, recipients, at.Attr, slug, seal.Context(p.Project.UUID, at.Attr),
		fmt.Sprintf("the %s block of project %q", at.Block, slug))
}

// sealRelay seals a secret of the relay. The defaults block need not have it yet.
func sealRelay(t cli.Terminal, dir, field string) error {
	attr := strings.TrimPrefix(field, "smtp_config.")
	if !slices.ContainsFunc(seal.Fields, func(f seal.Field) bool { return f.Block == "smtp_config" && f.Attr == attr }) {
		return cli.Usage("FIELD must be password or oauth_client_secret: with --defaults there are no others")
	}
	_, recipients, err := recipientsIn(dir)
	if err != nil {
		return err
	}
	return printSealed(t, recipients, attr, "the defaults block", seal.RelayContext(attr),
		"the smtp_config block of the defaults block")
}

// sealWebhook seals a secret of a webhook. No file need have the webhook yet.
func sealWebhook(t cli.Terminal, dir, name string) error {
	if msg := catalog.CheckSlug(name); msg != "" {
		return cli.Usage("--webhook %q %s", name, msg)
	}
	_, recipients, err := recipientsIn(dir)
	if err != nil {
		return err
	}
	return sealChecked(t, recipients, fmt.Sprintf("webhook %q", name), catalog.NewWebhook(name).SecretContext(),
		catalog.CheckWebhookSecret)
}

// sealInbound seals a secret of an inbound block. No file need have the block yet.
func sealInbound(t cli.Terminal, dir, name string) error {
	if msg := catalog.CheckSlug(name); msg != "" {
		return cli.Usage("--inbound %q %s", name, msg)
	}
	_, recipients, err := recipientsIn(dir)
	if err != nil {
		return err
	}
	return sealChecked(t, recipients, fmt.Sprintf("inbound %q", name), catalog.NewInbound(name).SecretContext(),
		catalog.CheckInboundSecret)
}

// sealChecked reads the secret of an owner, and seals it if check finds nothing wrong with it.
func sealChecked(t cli.Terminal, recipients []string, owner, context string, check func(string) string) error {
	value, err := readSecret(t, "secret of "+owner+": ")
	if err != nil {
		return err
	}
	if msg := check(value); msg != "" {
		return cli.No("the secret %s", msg)
	}
	return sealAttribute(t, recipients, "secret", value, context, "the block of "+owner)
}

// sealLogin seals the client secret of a login. No file need have the login yet.
func sealLogin(t cli.Terminal, dir, name string) error {
	if msg := catalog.CheckSlug(name); msg != "" {
		return cli.Usage("--login %q %s", name, msg)
	}
	_, recipients, err := recipientsIn(dir)
	if err != nil {
		return err
	}
	owner := fmt.Sprintf("login %q", name)
	return printSealed(t, recipients, "client_secret", owner, catalog.NewLogin(name).SecretContext(),
		"the block of "+owner)
}

// printSealed reads a value, seals it for a context and prints the attribute.
func printSealed(t cli.Terminal, recipients []string, attr, owner, context, place string) error {
	value, err := readSecret(t, fmt.Sprintf("%s of %s: ", attr, owner))
	if err != nil {
		return err
	}
	if value == "" {
		return cli.No("nothing was given on stdin to seal")
	}
	return sealAttribute(t, recipients, attr, value, context, place)
}

// sealAttribute seals a value for a context and prints the attribute.
func sealAttribute(t cli.Terminal, recipients []string, attr, value, context, place string) error {
	sealed, err := seal.Seal(recipients, context, value)
	if err != nil {
		return err
	}
	fmt.Fprintf(t.Err, "put this into %s:\n", place)
	_, err = fmt.Fprintf(t.Out, "%s = sealed(%s)\n", attr, hcledit.Quote(sealed))
	return err
}

// recipientsIn checks a config folder, and returns who can open what is sealed for it.
func recipientsIn(dir string) (*offline.Checked, []string, error) {
	checked, err := offline.Check(dir)
	if err != nil {
		return nil, nil, err
	}
	recipients, err := recipientsOf(checked)
	return checked, recipients, err
}

func recipientsOf(checked *offline.Checked) ([]string, error) {
	for _, f := range checked.Files {
		if s := f.Declared.Sealing; s != nil && len(s.Recipients) > 0 {
			return s.Recipients, nil
		}
	}
	return nil, cli.No(`no good file has a sealing block with recipients: run "fingerpost secrets keygen" first`)
}

// readSecret reads stdin to its end, as a file with the secret; from a terminal, one line that is not echoed.
func readSecret(t cli.Terminal, prompt string) (string, error) {
	if f, ok := t.In.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		fmt.Fprint(t.Err, prompt)
		b, err := term.ReadPassword(int(f.Fd()))
		fmt.Fprintln(t.Err)
		return string(b), err
	}
	b, err := io.ReadAll(io.LimitReader(t.In, 64<<10))
	return seal.Text(b), err
}
